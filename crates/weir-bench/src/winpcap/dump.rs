//! Dumps to a file: the first 68 bytes of each packet, or whole packets.

use super::{DIFFERS, Pair};
use crate::contestants::{Contestant, ContestantKind, ours};
use crate::experiment::{About, Contest, Experiment, Judged, Outcome, Settings};
use crate::failed;
use crate::failure::Failure;
use crate::peers;
use crate::program::{Program, WEIR};
use crate::tidy;
use crate::wanted::Wanted;

/// Bytes of a frame, all more than are kept of it.
const SIZES: [u16; 3] = [88, 500, 1514];
/// Bytes kept of a packet: tcpdump's default at the time.
const KEPT: [&str; 2] = ["-s", "68"];

const OURS: [&str; 4] = ["weir-exclusive-68", "weir-68", "weir-exclusive-whole", "weir-whole"];
const PEERS: [&str; 4] = ["tcpdump-68", "dumpcap-68", "tcpdump-whole", "dumpcap-whole"];

fn contestants() -> Vec<Contestant> {
    let weir = |how: &[&'static str]| {
        let words = ["capture", "--json", "--source", "xdp", "--chunks", "64", "-w", "{file}"];
        ours(WEIR, "source xdp", &[&words, how].concat())
    };
    let kept = |program: Program| Program { arguments: [&program.arguments, &KEPT[..]].concat(), ..program };
    let exclusive: &[&str] = &["--mode", "exclusive"];
    let program = Contestant::program;
    vec![
        Contestant { name: "stack", title: "stack alone", kind: ContestantKind::Stack, stack: true },
        program(OURS[0], "weir exclusive, 68 bytes", false, kept(weir(exclusive))),
        program(OURS[1], "weir, 68 bytes", true, kept(weir(&[]))),
        program(PEERS[0], "tcpdump, 68 bytes", true, kept(peers::tcpdump("{file}"))),
        program(PEERS[1], "dumpcap, 68 bytes", true, kept(peers::dumpcap())),
        program(OURS[2], "weir exclusive, whole packets", false, weir(exclusive)),
        program(OURS[3], "weir, whole packets", true, weir(&[])),
        program(PEERS[2], "tcpdump, whole packets", true, peers::tcpdump("{file}")),
        program(PEERS[3], "dumpcap, whole packets", true, peers::dumpcap()),
    ]
}

/// Makes the network.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let versus = [(OURS[1], PEERS[0]), (OURS[1], PEERS[1]), (OURS[3], PEERS[2]), (OURS[3], PEERS[3])];
    let about = About {
        name: "winpcap-dump".to_owned(),
        title: "Dumps to a file (WinPcap)".to_owned(),
        method: "Frames come at full rate, and a program writes them to a file in memory: the first 68 bytes of each, or all. \
                 The file is then read back, and must hold these bytes in this order."
            .to_owned(),
        differs: vec![DIFFERS.to_owned(), "The file is in memory (tmpfs), so no disk is measured.".to_owned()],
        versus: versus.map(|(ours, theirs)| [ours, theirs].map(str::to_owned)).to_vec(),
        ..About::default()
    };
    let dir = tidy::folder().map_err(failed("create a folder"))?;
    Ok(Box::new(Contest::new(settings, about, contestants(), &SIZES, dir, bars)?))
}

/// Rates against tcpdump's.
fn bars(outcome: &Outcome) -> Vec<Judged> {
    let bars = |name, contestants| {
        let (measure, wanted) = ("rate", Wanted::AtLeast(1.0));
        Pair { name, contestants, measure, wanted, unit: "times", value: |times| times }.bars(outcome)
    };
    [
        bars("68 bytes: weir / tcpdump", [OURS[1], PEERS[0]]),
        bars("whole packets: weir / tcpdump", [OURS[3], PEERS[2]]),
    ]
    .concat()
}
