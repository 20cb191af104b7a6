//! The question and method of the comparison, and what was published.

use super::method::Method;
use crate::experiment::{About, Better, Measure, Published};

const METHOD: &str = "\
iperf3 sends TCP over IPv4 through a private veth pair while one method after the other intercepts what arrives. Each does \
the same for every packet: it checks that this is TCP over IPv4 to one address, copies all bytes from the IP header on, \
sums the copy, and calls a function that does nothing; netfilter queues also give verdicts. Before iperf3 a fresh reader \
gets known frames, each different, and its sum has to be theirs. During iperf3 the sum has to fit the checksums in the \
packets, packets intercepted and lost have to be those that the interface and its stack counted, and bytes those of the \
stack. All offloads that make super-frames are off, on both ends: with them, readers behind the driver get up to 64 KiB as \
one packet where XDP, which switches them off, gets some forty, so that a packet would not be the same work.";

const DIFFERS: [&str; 6] = [
    "A veth pair on one machine instead of 10 Gbit/s cards: sender, receiver and reader share its processors, and no wire \
     limits the rate.",
    "Linux instead of Windows Server 2008 R2: libpcap replaces WinPcap, BPF programs NDIS, a netfilter queue WFP.",
    "Every method does the work that the article describes. The published programs do not: WinPcap's counts in the kernel \
     (MODE_STAT) and copies nothing, NDIS's passes packets on untouched, and WFP's blocks, clones and re-injects them.",
    "Only received packets are intercepted.",
    "Native XDP on veth copies each packet that a socket has sent before the program sees it, and delivers by NAPI instead of \
     the backlog of a processor.",
    "Three of the four published deviations are greater than any sample with that minimum and maximum can have; here that \
     would be a fault.",
];

/// Average, least, greatest and standard deviation: Gbit/s.
const PUBLISHED: [(&str, [f64; 4]); 4] = [
    ("native", [9.33, 9.25, 9.54, 0.25]),
    ("WinPcap", [9.15, 9.09, 9.39, 0.33]),
    ("NDIS 6.0", [8.01, 7.02, 9.3, 0.95]),
    ("WFP", [2.11, 1.25, 2.44, 1.1]),
];
pub(super) const RATES: [&str; 4] = ["rate", "rate_min", "rate_max", "rate_sd"];

pub(super) fn about() -> About {
    let measures = [
        (RATES[0], "received, average of intervals", "Gbit/s", Better::Higher),
        (RATES[1], "received, slowest interval", "Gbit/s", Better::Higher),
        (RATES[2], "received, fastest interval", "Gbit/s", Better::Neither),
        (RATES[3], "standard deviation of intervals", "Gbit/s", Better::Lower),
        ("cpu", "processor time of the whole machine for a gigabyte", "s/GB", Better::Lower),
        ("lost", "packets that the method did not see", "%", Better::Lower),
        ("intercepted", "packets intercepted", "packets", Better::Neither),
    ];
    let published = PUBLISHED.iter().flat_map(|(series, figures)| {
        RATES.iter().zip(figures).map(|(measure, &value)| Published::new(*series, measure, None, value))
    });
    About {
        name: "methods".to_owned(),
        title: "Interception methods".to_owned(),
        method: METHOD.to_owned(),
        differs: DIFFERS.map(str::to_owned).to_vec(),
        measures: measures
            .map(|(name, title, unit, better)| Measure::new(name, title, unit, better))
            .to_vec(),
        series: Method::all().map(Method::series).to_vec(),
        published: published.collect(),
        ..About::default()
    }
}
