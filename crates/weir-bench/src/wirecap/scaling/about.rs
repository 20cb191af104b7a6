//! Who takes part, and what is asked.

use super::engines::{CHUNKS, Engine};
use super::{LOST, RATE};
use crate::experiment::{About, Axis, Measure, Published, Role, Series};

pub(super) struct Contestant {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) role: Role,
    pub(super) engine: Engine,
    /// Whether more of its queues are simulated.
    is_simulated: bool,
}

impl Contestant {
    /// The series of its simulation.
    pub(super) fn simulated(&self) -> Option<String> {
        self.is_simulated.then(|| format!("simulated-{}", self.name))
    }
}

const fn one(name: &'static str, title: &'static str, role: Role, engine: Engine) -> Contestant {
    Contestant { name, title, role, engine, is_simulated: false }
}

const fn simulated(name: &'static str, title: &'static str, threshold: Option<u8>) -> Contestant {
    let engine = Engine::Pools(CHUNKS, threshold);
    Contestant { name, title, role: Role::Ours, engine, is_simulated: true }
}

/// Contestants that do the same work take their turns one after another.
pub(super) const CONTESTANTS: [Contestant; 8] = {
    use Role::{Ours, Peer};
    let short = "bare rings of a NIC's size: AF_XDP with 4096 frames each";
    let large = "weir, advanced, M = 256, R = 500, T = 60 %";
    [
        one("kernel", "weir, in the kernel", Ours, Engine::Kernel),
        one("redirect", "bare XDP redirect", Peer, Engine::Redirect),
        one("handler", "weir, with a handler", Ours, Engine::Handler),
        one("nic-ring", short, Peer, Engine::Loop),
        simulated("basic-100", "weir, basic, M = 256, R = 100", None),
        simulated("advanced-100", "weir, advanced, M = 256, R = 100, T = 60 %", Some(60)),
        one("advanced-500", large, Ours, Engine::Pools(500, Some(60))),
        one("ring", "copying rings without a pool: TPACKET_V3", Peer, Engine::Copying),
    ]
};

/// What memory allows.
pub(super) struct Memory {
    pub(super) name: &'static str,
    title: &'static str,
    /// Whether all processors copy at once, or one.
    pub(super) all: bool,
    /// How many times a packet is moved.
    pub(super) times: u32,
}

const fn memory(name: &'static str, title: &'static str, all: bool, times: u32) -> Memory {
    Memory { name, title, all, times }
}

pub(super) const MEMORIES: [Memory; 3] = [
    memory("memory", "memory, all threads, each byte moved once", true, 1),
    memory("memory-copied", "memory, all threads, each byte moved three times", true, 3),
    memory("memory-one", "memory, one thread, each byte moved once", false, 1),
];

/// `simulated`: queues of the machines that are simulated.
pub(super) fn about(name: &str, size: usize, simulated: &[u32]) -> About {
    let contestants = CONTESTANTS.iter().map(|one| Series::new(one.name, one.title, one.role));
    let memories = MEMORIES.iter().map(|memory| Series::new(memory.name, memory.title, Role::Limit));
    let models = CONTESTANTS.iter().filter(|_| !simulated.is_empty()).filter_map(|one| {
        let title = format!("simulated: {}", one.title.trim_start_matches("weir, "));
        Some(Series::new(&one.simulated()?, &title, Role::Model))
    });
    let mut differs: Vec<String> = DIFFERS.map(str::to_owned).to_vec();
    if !simulated.is_empty() {
        differs.push(SIMULATION.to_owned());
    }
    About {
        name: name.to_owned(),
        title: format!("Two devices forwarded both ways, frames of {size} bytes (WireCAP, Fig. 14)"),
        method: METHOD.to_owned(),
        differs,
        axis: Some(Axis {
            title: "queues of each device".to_owned(),
            unit: "queues".to_owned(),
            logarithmic: true,
        }),
        measures: vec![
            Measure::higher(RATE, "forwarded, both ways together", "Mpps"),
            Measure::lower(LOST, "packets lost", "%"),
            Measure::lower("cpu", "processor time of a packet that was forwarded", "ns"),
            Measure::higher("bandwidth", "memory read and written", "GB/s"),
            Measure::fact("offered", "packets that the devices took, both ways together", "Mpps"),
            Measure::fact("sent", "packets that the devices took", "packets"),
            Measure::fact("received", "packets that arrived at the far ends", "packets"),
            Measure::fact("dropped", "packets that the engine itself counts as lost", "packets"),
            Measure::fact("no-room", "packets for which the way out had no room", "packets"),
        ],
        series: contestants.chain(memories).chain(models).collect(),
        versus: VERSUS.map(|pair| pair.map(str::to_owned)).to_vec(),
        published: if size == 60 { Vec::new() } else { published() },
        ..About::default()
    }
}

const VERSUS: [[&str; 2]; 4] =
    [["kernel", "redirect"], ["handler", "nic-ring"], ["basic-100", "ring"], ["advanced-100", "ring"]];

/// What the text of the publication says of frames of 100 bytes, checksum included.
fn published() -> Vec<Published> {
    let lost = |series| format!("{series}, 100 bytes at wire rate, 1 to 6 queues");
    ["DNA", "WireCAP-A"].map(|series| Published::new(lost(series), LOST, None, 0.0)).to_vec()
}

const METHOD: &str = "\
Frames come on two devices at once, as fast as the machine makes them, and leave by the other one; an XDP program counts them at the \
far end. One generator for each queue of each device, on as many processors as there are, which receive what they send, too. Of \
each way, packets sent have to be packets that arrived, that the engine counts as lost, and for which the way out had no room. The \
rate is what arrives while all generators are at work; lost is what has not arrived when all is done. Processor time is that of \
everything, the making of frames included, by packet that arrived. Limit: threads that copy from one half of 256 MiB each to the \
other, read and written bytes together. A packet is in whole lines of 64 bytes. In the kernel each byte is moved once, written where \
it comes and read where it leaves: lines x 64 x 2 bytes. Through user space it is moved three times, since it is copied to the \
program's memory and from there to the kernel's: three times as many bytes. Packets that stay in a cache need less.";

const DIFFERS: [&str; 5] = [
    "WireCAP forwarded 64 and 100 bytes with the checksum at 10 GbE's wire rate, 10^9 packets on each of two cards. Here veth pairs \
     take as many as the machine makes, and making them needs the same processors; so the rate says more than the share lost.",
    "WireCAP and DNA send a packet from the memory in which it arrived. In weir, forwarding with a handler does so, which \
     has no pool behind it; captures in basic and advanced mode send by packet sockets, and so do copying rings.",
    "A chunk has room for 256 packets, as one of WireCAP's has, but records are as long as their packets.",
    "DNA is not part of a stock kernel. Engines of the same kind stand in for it: bare rings as short as that of a NIC, and copying \
     rings without a pool, one for each device whatever its queues.",
    "The publication says that at 64 bytes about 30 Mpps came, the bus was full, and DNA and WireCAP both lost packets. Its curves have \
     no figures in the text, so none are shown.",
];

const SIMULATION: &str = "\
For more queues than this machine has processors, pools are simulated, not measured: in virtual time, two 10 GbE cards at wire rate \
whose packets are spread evenly, and handlers that take for a packet as much processor time as in the same round with the fewest queues, \
each on a processor of its own. The speed of caches and memory is not modelled there.";
