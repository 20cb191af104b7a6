//! Monitoring: packets and bytes counted in the kernel (`weir stat`, WinPcap's statistics mode), and by a program that gets each
//! matching packet.

use std::path::Path;

use super::{DIFFERS, Pair};
use crate::contestants::{Contestant, ContestantKind, receiving};
use crate::experiment::{About, Contest, Experiment, Judged, Outcome, Settings, TIME};
use crate::failed;
use crate::failure::Failure;
use crate::libpcap::counter;
use crate::program::Program;
use crate::stat::counting_by;
use crate::tidy;
use crate::wanted::Wanted;

/// Bytes of the frames by which the counting program is checked.
const SIZES: [u16; 1] = [60];
/// What all contestants count; every frame matches, as its name in `weir stat` says.
const FILTER: &str = "udp dst port 9";
const NAMED: &str = "all of the service: udp dst port 9";

const KERNEL: [&str; 3] = ["stat-tc", "stat-xdp", "stat-exclusive"];
const USER: [&str; 3] = ["user-tc", "user-xdp", "user-exclusive"];
const LIBPCAP: &str = "libpcap";

fn contestants(counting: &Path) -> Vec<Contestant> {
    let stat = |how: &[&'static str]| counting_by(how, &[NAMED]);
    let user = |source, mode| {
        let program = receiving(source, mode, false);
        Program { arguments: [&program.arguments[..], &["--filter", FILTER]].concat(), ..program }
    };
    let mut libpcap = counter::counting(counting.to_owned(), "loop");
    libpcap.arguments.push(FILTER);
    let program = Contestant::program;
    let exclusive = ["--source", "xdp", "--mode", "exclusive"];
    vec![
        Contestant { name: "stack", title: "stack alone", kind: ContestantKind::Stack, stack: true },
        program(KERNEL[0], "weir stat, tc", true, stat(&["--source", "tc"])),
        program(USER[0], "weir, counted in user space, tc", true, user("tc", "pass")),
        program(KERNEL[1], "weir stat, xdp", true, stat(&["--source", "xdp"])),
        program(USER[1], "weir, counted in user space, xdp", true, user("xdp", "pass")),
        program(LIBPCAP, "libpcap, counted in user space", true, libpcap),
        program(KERNEL[2], "weir stat, xdp, exclusive", false, stat(&exclusive)),
        program(USER[2], "weir, counted in user space, xdp, exclusive", false, user("xdp", "exclusive")),
    ]
}

/// Compiles the C program and makes the network.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let dir = tidy::folder().map_err(failed("create a folder"))?;
    let contestants = contestants(&counter::compile(dir.path())?);
    let pairs = [[KERNEL[0], LIBPCAP], [KERNEL[1], LIBPCAP], [USER[0], LIBPCAP], [USER[1], LIBPCAP]];
    let about = About {
        name: "winpcap-statistics".to_owned(),
        title: "Monitoring in the kernel and in user space (WinPcap)".to_owned(),
        method: "Frames of 60 bytes come at full rate, and those that match a filter are counted, with their bytes. Every frame \
                 matches. weir stat counts in the kernel; the others get each packet and count it."
            .to_owned(),
        differs: vec![DIFFERS.to_owned()],
        versus: pairs.map(|pair| pair.map(str::to_owned)).to_vec(),
        ..About::default()
    };
    Ok(Box::new(Contest::new(settings, about, contestants, &SIZES, dir, bars)?))
}

/// Processor time of counting in the kernel, against that of counting in user space.
fn bars(outcome: &Outcome) -> Vec<Judged> {
    let bars = |(kernel, user): (&'static str, &'static str)| {
        let (name, wanted) = (format!("processor time of a packet: {kernel} / {user}"), Wanted::AtMost(1.0));
        let contestants = [kernel, user];
        Pair { name: &name, contestants, measure: TIME, wanted, unit: "times", value: |times| times }
            .bars(outcome)
    };
    KERNEL.into_iter().zip(USER).flat_map(bars).collect()
}
