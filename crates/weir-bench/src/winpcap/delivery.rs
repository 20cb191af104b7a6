//! Packets of 88 to 1514 bytes delivered to an application that only counts and reads them.

use std::path::Path;

use super::DIFFERS;
use crate::contestants::{Contestant, ContestantKind, receiving};
use crate::experiment::{About, Contest, Experiment, Settings};
use crate::failed;
use crate::failure::Failure;
use crate::libpcap::counter::{self, Counted};
use crate::program::{Counts, Program};
use crate::tidy;

const SIZES: [u16; 4] = [88, 500, 1000, 1514];
const LIBPCAP: &str = "libpcap";
/// Sources that leave all packets to the stack, as libpcap does.
const PASS: [&str; 3] = ["weir-xdp", "weir-tc", "weir-af-packet"];

fn contestants(counting: &Path) -> Vec<Contestant> {
    let program = Contestant::program;
    let libpcap = Program { parse: same_size, ..counter::counting(counting.to_owned(), "loop") };
    vec![
        program("weir-exclusive", "weir xdp, exclusive", false, receiving("xdp", "exclusive", false)),
        Contestant { name: "stack", title: "stack alone", kind: ContestantKind::Stack, stack: true },
        program(PASS[0], "weir xdp", true, receiving("xdp", "pass", false)),
        program(PASS[1], "weir tc", true, receiving("tc", "pass", false)),
        program(PASS[2], "weir af_packet", true, receiving("af_packet", "pass", false)),
        program(LIBPCAP, "libpcap, pcap_loop", true, libpcap),
    ]
}

/// Parses the output of libpcap's program if all packets are whole, in order and of one of the sizes.
fn same_size(stdout: &str, _: &str) -> Option<Counts> {
    let counted = Counted::parse(stdout)?;
    let right = SIZES.iter().any(|&size| counted.is_right(size.into()));
    right.then(|| counted.counts())
}

/// Compiles the C program and makes the network.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let dir = tidy::folder().map_err(failed("create a folder"))?;
    let contestants = contestants(&counter::compile(dir.path())?);
    let about = About {
        name: "winpcap-delivery".to_owned(),
        title: "Packets delivered to an application (WinPcap)".to_owned(),
        method: "Frames come at full rate, and an application counts them. weir's reads all bytes, which must be right if nothing \
                 was lost; libpcap's reads the numbers of the frames."
            .to_owned(),
        differs: vec![DIFFERS.to_owned()],
        versus: PASS.map(|ours| [ours, LIBPCAP].map(str::to_owned)).to_vec(),
        ..About::default()
    };
    Ok(Box::new(Contest::new(settings, about, contestants, &SIZES, dir, |_| Vec::new())?))
}
