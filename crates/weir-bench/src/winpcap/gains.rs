//! What each improvement gains by itself: a compiled filter, cheaper timestamps, one copy less.
//!
//! Compared captures differ in one thing only. All are exclusive, since the stack would hide much of the difference.

use super::{DIFFERS, Pair};
use crate::contestants::{Contestant, limit, receive};
use crate::experiment::{About, Contest, Experiment, Judged, Outcome, Published, Settings, TIME};
use crate::failed;
use crate::failure::Failure;
use crate::program::Program;
use crate::tidy;
use crate::wanted::Wanted;

const SIZES: [u16; 2] = [60, 1514];
/// Every frame matches, after all of its tests.
const FILTER: &str = "ip and udp port 9";

const STAMPS: [&str; 3] = ["stamps-none", "stamps-batch", "stamps-kernel"];
const COPIES: [&str; 3] = ["copies-1", "copies-2", "copies-3"];
const FILTERS: [&str; 2] = ["filter-native", "filter-interpreted"];

fn contestants() -> Vec<Contestant> {
    let program = |name, title, stamps, how: &[&'static str]| {
        let capture = receive("xdp", "exclusive", stamps);
        let capture = Program { arguments: [&capture.arguments[..], how].concat(), ..capture };
        Contestant::program(name, title, false, capture)
    };
    let asked = |engine| ["--ask", FILTER, "--engine", engine];
    vec![
        limit(),
        program(STAMPS[0], "weir, no stamps", "none", &[]),
        program(STAMPS[1], "weir, stamps of a batch", "batch", &[]),
        program(STAMPS[2], "weir, stamps of the kernel", "kernel", &[]),
        program(COPIES[0], "weir, one copy", "none", &[]),
        program(COPIES[1], "weir, two copies", "none", &["--copies", "1"]),
        program(COPIES[2], "weir, three copies", "none", &["--copies", "2"]),
        program(FILTERS[0], "weir, filter compiled to machine code", "none", &asked("native")),
        program(FILTERS[1], "weir, filter interpreted", "none", &asked("interpreter")),
    ]
}

/// Makes the network.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let about = About {
        name: "winpcap-gains".to_owned(),
        title: "The gain of each improvement alone (WinPcap)".to_owned(),
        method: "Compared captures differ in one thing only. The filter runs in the application, as machine code or in an \
                 interpreter; every frame matches. The program in the kernel makes timestamps: none, one for a batch, or one for each \
                 packet. A capture of weir copies a packet once; the application makes a second and a third copy, as captures with a \
                 buffer in the kernel and another in the application do. A gain is how many more packets the same processor time, \
                 in kernel and application, suffices for."
            .to_owned(),
        differs: vec![
            DIFFERS.to_owned(),
            "WinPcap ran its compiled filter in the kernel. There Linux compiles all filters, unless this is switched off for the \
             whole machine, which an experiment should not do."
                .to_owned(),
            "WinPcap replaced a clock that took microseconds to read with the processor's counter. Linux reads that \
             counter anyway."
                .to_owned(),
            "WinPcap made a copy cheaper: memcpy replaced a function of the driver's interface.".to_owned(),
        ],
        ..About::default()
    };
    let published = [
        ("filter compiled (JIT)", 8.0),
        ("time stamps of the processor's counter (TSC)", 27.0),
        ("one copy by memcpy (tap)", 5.0),
    ];
    let published = published.map(|(series, value)| Published {
        series: series.to_owned(),
        measure: "gain, %".to_owned(),
        at: None,
        value,
    });
    let about = About { published: published.to_vec(), ..about };
    let dir = tidy::folder().map_err(failed("create a folder"))?;
    Ok(Box::new(Contest::new(settings, about, contestants(), &SIZES, dir, bars)?))
}

/// Gains in percent, with published ones as targets where they measure the same thing.
fn bars(outcome: &Outcome) -> Vec<Judged> {
    let gain = |name, contestants, least| {
        let (wanted, value) = (Wanted::AtLeast(least), |times: f64| 100.0 * (1.0 / times - 1.0));
        Pair { name, contestants, measure: TIME, wanted, unit: "%", value }.bars(outcome)
    };
    [
        gain("gain: filter compiled, not interpreted", FILTERS, 8.0),
        gain("gain: no stamps, not the kernel's", [STAMPS[0], STAMPS[2]], 0.0),
        gain("gain: stamps of a batch, not the kernel's", [STAMPS[1], STAMPS[2]], 0.0),
        gain("gain: one copy, not two", [COPIES[0], COPIES[1]], 5.0),
        gain("gain: two copies, not three", [COPIES[1], COPIES[2]], 0.0),
    ]
    .concat()
}
