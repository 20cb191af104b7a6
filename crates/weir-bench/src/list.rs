//! All experiments.

use std::io::{self, Write};

use crate::experiment::{About, Contest, Entry, Experiment, Settings};
use crate::failure::Failure;
use crate::table::table;
use crate::{
    bars, compress, contestants, failed, files, filter, forward, host, libpcap, look, methods, ndr, pf_ring,
    queues, replay, send, stat, steer, tidy, trials, winpcap, wirecap,
};

/// In the order in which they run.
pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "capture",
        question: "how many packets a second each program captures, beside what the machine can do",
        make: capture,
    },
    Entry {
        name: "trials",
        question: "a burst while the reader is stopped, the first packet, lone packets, a capture that is idle",
        make: trials::make,
    },
    Entry {
        name: "chunks",
        question: "what the size of a chunk does to the rate of an exclusive capture",
        make: chunks,
    },
    Entry {
        name: "ndr",
        question: "the highest rate without loss, by size, to /dev/null, tmpfs and disk (RFC 2544)",
        make: ndr::make,
    },
    Entry {
        name: "ndr-host",
        question: "the same beside a host whose application wants the packets, too",
        make: ndr::make_host,
    },
    Entry {
        name: "ndr-burst",
        question: "the longest burst at full rate that 64 MiB hold without loss",
        make: ndr::make_burst,
    },
    Entry {
        name: "methods",
        question: "what interception costs TCP: libpcap, weir, BPF programs in the kernel, netfilter queues",
        make: methods::make,
    },
    Entry {
        name: "stat",
        question: "how fast packets are counted by filter, in the kernel and in user space",
        make: stat::make,
    },
    Entry {
        name: "bursts",
        question: "what is lost of a burst while the reader is held up, beside arithmetic (WireCAP, Fig. 10)",
        make: wirecap::bursts::make,
    },
    Entry {
        name: "imbalance",
        question: "what is lost when one queue gets too much: basic, advanced, without a pool (WireCAP, Fig. 11)",
        make: wirecap::imbalance::make,
    },
    Entry {
        name: "threshold",
        question: "how full a queue should be before others help (WireCAP, Fig. 12)",
        make: wirecap::imbalance::make_threshold,
    },
    Entry {
        name: "forwarding",
        question: "what is lost on the way through handlers when one queue gets too much (WireCAP, Fig. 13)",
        make: wirecap::imbalance::make_forwarding,
    },
    Entry {
        name: "scaling",
        question: "how forwarding both ways grows with queues, beside what memory allows, 60 bytes (WireCAP, Fig. 14)",
        make: wirecap::scaling::make,
    },
    Entry {
        name: "scaling-96",
        question: "the same with 96 bytes (WireCAP, Fig. 14)",
        make: wirecap::scaling::make_longer,
    },
    Entry {
        name: "simulate",
        question: "what 64 queues at 100 Gbit/s would lose, by load: a simulation",
        make: wirecap::simulate::make,
    },
    Entry {
        name: "counters",
        question: "packet counters on a ring and on libpcap, by mode, waiting, queues and NAPI (PF_RING)",
        make: pf_ring::counters::make,
    },
    Entry {
        name: "winpcap-send",
        question: "how fast packets of 88 to 1514 bytes are sent, beside sendto, pcap_inject and tcpreplay (WinPcap)",
        make: winpcap::send::make,
    },
    Entry {
        name: "winpcap-filter",
        question: "what filters of 3 and 13 instructions cost that accept nothing (WinPcap)",
        make: winpcap::filter::make,
    },
    Entry {
        name: "winpcap-delivery",
        question: "how fast an application gets packets of 88 to 1514 bytes (WinPcap)",
        make: winpcap::delivery::make,
    },
    Entry {
        name: "winpcap-dump",
        question: "how fast packets get to a file, whole or their first 68 bytes (WinPcap)",
        make: winpcap::dump::make,
    },
    Entry {
        name: "winpcap-statistics",
        question: "counting in the kernel beside counting in user space (WinPcap)",
        make: winpcap::statistics::make,
    },
    Entry {
        name: "winpcap-gains",
        question: "what a compiled filter, other time stamps and a copy less gain alone (WinPcap)",
        make: winpcap::gains::make,
    },
    Entry { name: "host", question: "what capturing costs a host that is busy itself", make: host::make },
    Entry {
        name: "filter",
        question: "filters beside libpcap's: length, speed, time to compile, cost in XDP",
        make: filter::make,
    },
    Entry {
        name: "queues",
        question: "handlers that help one another, beside arithmetic",
        make: queues::make,
    },
    Entry { name: "steer", question: "what steering adds to a packet", make: steer::make },
    Entry {
        name: "forward",
        question: "forwarding beside XDP redirect, AF_XDP, the bridge and tc mirred",
        make: forward::make,
    },
    Entry {
        name: "read",
        question: "reading and rewriting files beside tcpdump, tshark and editcap",
        make: files::make,
    },
    Entry {
        name: "compress",
        question: "compression on the fly at the highest rate that tcpdump sustains without it",
        make: compress::make,
    },
    Entry { name: "libpcap", question: "unchanged programs on libpcap and on weir's", make: libpcap::make },
    Entry { name: "look", question: "lines and objects beside tcpdump and tshark", make: look::make },
    Entry {
        name: "send",
        question: "sending beside a bare live-frames loop, trafgen and tcpreplay",
        make: send::make,
    },
    Entry {
        name: "replay",
        question: "replaying a file beside tcpreplay: top speed, and gaps",
        make: replay::make,
    },
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
        title: "Capture: packets a second".to_owned(),
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
