//! `xdp:eth0@0-3`: tcpdump captures on some receive queues only.

mod beside;
mod programs;

use beside::{Bench, Library, packets};
use weir_lab::{Generator, StackCounters, Traffic, Veth, root_test};

/// Sends `frames` frames of `size` bytes, which arrive on receive queue `queue`.
fn send(bench: &Bench, queue: u32, size: usize, frames: u64) {
    let pair = bench.network.pair();
    let traffic = Traffic::new(size).expect("a size").between(pair);
    let mut generator = Generator::new(pair, &traffic).expect("a generator").cpu(queue);
    assert_eq!(generator.queue(), queue);
    assert_eq!(generator.send(frames).expect("frames").accepted, frames);
}

#[root_test]
fn root_tcpdump_captures_on_chosen_queues() {
    let Some(bench) = Bench::new(Veth::default().queues(2), &["tcpdump"]) else { return };
    let rx = bench.network.rx();
    for (device, left) in [("xdp:rx0@1", 800), ("xdp!:rx0@1-1", 300), ("xdp:rx0@0-1", 800)] {
        let both = device.ends_with("0-1");
        let wanted = if both { "800" } else { "500" };
        let to_stack = || StackCounters::read(rx).expect("counters").get("IpInReceives");
        let before = to_stack();
        let arguments = ["-i", device, "-n", "-c", wanted, "-w", "it"];
        let running = bench.start(rx, "tcpdump", &arguments, Library::Ours);
        running.says("listening on");
        send(&bench, 0, 60, 300);
        send(&bench, 1, 100, 500);
        let outcome = running.end();
        assert!(outcome.status.success(), "{outcome:?}");
        let packets = packets(&outcome.place.join("it"));
        let long = packets.iter().filter(|packet| packet.contains("length 100:")).count();
        assert_eq!(
            (packets.len(), long),
            (if both { 800 } else { 500 }, 500),
            "{device}: {:?}",
            packets.first()
        );
        // Generators wait until the other end has taken their frames.
        assert_eq!(to_stack() - before, left, "{device}");
    }
}

#[root_test]
fn root_tcpdump_is_told_why_queues_cannot_be_chosen() {
    let Some(bench) = Bench::new(Veth::default().queues(2), &["tcpdump"]) else { return };
    for (device, why) in [
        ("rx0@1", "cannot choose receive queues of rx0: a packet socket does not know them; try xdp:rx0@0"),
        ("tc:rx0@1", "this source does not know on which queue a packet arrived; try the xdp source"),
        ("xdp:any@0", "cannot choose receive queues of any: its packets do not tell"),
        ("xdp:rx0@1-2", "cannot capture on queue 2 of `rx0`: it has 2 receive queues; try 0-1"),
        ("xdp:none@0", "No such device exists"),
    ] {
        let outcome = bench.start(bench.network.rx(), "tcpdump", &["-i", device], Library::Ours).end();
        assert!(!outcome.status.success() && outcome.err.contains(why), "{device}: {outcome:?}");
    }
}
