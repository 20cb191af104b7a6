//! All experiments.

use std::io::{self, Write};

use crate::experiment::{About, Contest, Entry, Experiment, Settings};
use crate::failure::{Failure, failed};
use crate::table::table;
use crate::{
    bars, compress, contestants, files, filter, flow_rates, flows, forward, host, libpcap, look, methods,
    ndr, pf_ring, queues, replay, rules, send, stat, steer, tidy, trials, winpcap, wirecap,
};

type Make = fn(&Settings) -> Result<Box<dyn Experiment>, Failure>;

const fn entry(name: &'static str, question: &'static str, make: Make) -> Entry {
    Entry { name, question, make }
}

/// In the order in which they run.
#[rustfmt::skip]
pub(super) const ALL: &[Entry] = &[
    entry("capture", "how many packets per second each program captures, compared with the machine's limits", capture),
    entry("trials", "a burst while the reader is stopped, the first packet, lone packets, an idle capture", trials::make),
    entry("chunks", "what the size of a chunk does to the rate of an exclusive capture", chunks),
    entry("ndr", "the highest rate without loss, by size, to /dev/null, tmpfs and disk (RFC 2544)", ndr::make),
    entry("ndr-host", "the same beside a host whose application wants the packets, too", ndr::make_host),
    entry("ndr-burst", "the longest burst at full rate that 64 MiB hold without loss", ndr::make_burst),
    entry("methods", "what interception costs TCP: libpcap, weir, BPF programs in the kernel, netfilter queues", methods::make),
    entry("stat", "how fast packets are counted by filter, in the kernel and in user space", stat::make),
    entry("bursts", "what is lost of a burst while the reader is held up, beside arithmetic (WireCAP, Fig. 10)", wirecap::bursts::make),
    entry("imbalance", "what is lost when one queue gets too much: basic, advanced, without a pool (WireCAP, Fig. 11)", wirecap::imbalance::make),
    entry("threshold", "how full a queue should be before others help (WireCAP, Fig. 12)", wirecap::imbalance::make_threshold),
    entry("forwarding", "what is lost on the way through handlers when one queue gets too much (WireCAP, Fig. 13)", wirecap::imbalance::make_forwarding),
    entry("scaling", "how forwarding both ways grows with queues, beside what memory allows, 60 bytes (WireCAP, Fig. 14)", wirecap::scaling::make),
    entry("scaling-96", "the same with 96 bytes (WireCAP, Fig. 14)", wirecap::scaling::make_longer),
    entry("simulate", "what 64 queues at 100 Gbit/s would lose, by load: a simulation", wirecap::simulate::make),
    entry("counters", "packet counters on a ring and on libpcap, by mode, waiting, queues and NAPI (PF_RING)", pf_ring::counters::make),
    entry("winpcap-send", "how fast packets of 88 to 1514 bytes are sent, beside sendto, pcap_inject and tcpreplay (WinPcap)", winpcap::send::make),
    entry("winpcap-filter", "what filters of 3 and 13 instructions cost that accept nothing (WinPcap)", winpcap::filter::make),
    entry("winpcap-delivery", "how fast an application gets packets of 88 to 1514 bytes (WinPcap)", winpcap::delivery::make),
    entry("winpcap-dump", "how fast packets get to a file, whole or their first 68 bytes (WinPcap)", winpcap::dump::make),
    entry("winpcap-statistics", "counting in the kernel beside counting in user space (WinPcap)", winpcap::statistics::make),
    entry("winpcap-gains", "what a compiled filter, other time stamps and a copy less gain alone (WinPcap)", winpcap::gains::make),
    entry("host", "what capturing costs a host that is busy itself", host::make),
    entry("filter", "filters beside libpcap's: length, speed, time to compile, cost in XDP", filter::make),
    entry("queues", "handlers that help one another, beside arithmetic", queues::make),
    entry("steer", "what steering adds to a packet", steer::make),
    entry("forward", "forwarding beside XDP redirect, AF_XDP, the bridge and tc mirred", forward::make),
    entry("rules", "rules of networks and ports beside nft, dropping and passing", rules::make),
    entry("rules-exact", "10,000 rules of single flows beside nft's sets", rules::make_exact),
    entry("rules-changes", "whether packets are lost or counted twice while 10,000 exact rules a second change", rules::make_changes),
    entry("read", "reading and rewriting files beside tcpdump, tshark and editcap", files::make),
    entry("flows", "processor time for the flows of a file, beside softflowd, nfpcapd, argus and ndpiReader", flows::make),
    entry("flows-live", "flows of packets that come at full rate: copied, or counted in the kernel", flow_rates::make),
    entry("compress", "compression on the fly at the highest rate that tcpdump sustains without it", compress::make),
    entry("libpcap", "unchanged programs on libpcap and on weir's", libpcap::make),
    entry("look", "lines and objects beside tcpdump and tshark", look::make),
    entry("send", "sending beside a bare live-frames loop, trafgen and tcpreplay", send::make),
    entry("replay", "replaying a file beside tcpreplay: top speed, and gaps", replay::make),
];

/// Prints the table of them.
pub(super) fn list() -> Result<(), Failure> {
    let rows: Vec<Vec<String>> =
        ALL.iter().map(|entry| vec![entry.name.to_owned(), entry.question.to_owned()]).collect();
    io::stdout().lock().write_all(table(&rows).as_bytes()).map_err(failed("write to standard output"))
}

fn capture(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let about = About {
        name: "capture".to_owned(),
        title: "Capture: packets per second".to_owned(),
        method: "One processor makes frames of one flow and receives them, the other reads. Every reader touches every byte; \
                 bytes and order are checked where nothing was lost. Exclusive captures take packets from the network stack, \
                 as on a mirror port; all others leave them to it."
            .to_owned(),
        versus: contestants::VERSUS.map(|pair| pair.map(str::to_owned)).to_vec(),
        ..About::default()
    };
    let dir = tidy::folder().map_err(failed("create a folder"))?;
    let contest = Contest::new(settings, about, contestants::all(), &[60, 256, 1514], dir, bars::judge)?;
    Ok(Box::new(contest))
}

fn chunks(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let about = About {
        name: "chunks".to_owned(),
        title: "The size of a chunk".to_owned(),
        method: "As in capture: one processor makes and receives frames, the other reads every byte. Exclusive, without time \
                 stamps, 64 MiB a queue."
            .to_owned(),
        ..About::default()
    };
    let dir = tidy::folder().map_err(failed("create a folder"))?;
    let contestants = contestants::by_chunk_size();
    let contest = Contest::new(settings, about, contestants, &[60, 256, 1514], dir, |_| Vec::new())?;
    Ok(Box::new(contest))
}
