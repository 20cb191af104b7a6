//! Captures of real traffic in private networks: each test has its own, and nothing is left of it.

mod account;
mod af_xdp;
mod by_time;
mod coexistence;
mod contents;
mod delivery;
mod filter;
mod handlers;
mod segment;
mod steering;
mod tagged;
mod tc;
mod writers;

use std::time::Duration;

use weir::{Account, Builder, Capture, Chunk, Mode, SourceChoice};
use weir_lab::{FrameSender, Generator, Network, Port, SendReport, SequenceCheck, SequenceReport, Traffic};

/// A capture on the receiving end of the first pair. The calling thread must be in the namespace.
fn on_rx(network: &Network) -> Builder {
    Capture::builder().interface(&network.pair().rx.name)
}

/// A frame as it was on the wire, with its `tags`; `beside`: the first of them is not in the frame.
fn on_wire(traffic: &Traffic, sequence: u64, beside: bool, tags: &[u8]) -> Vec<u8> {
    let mut wire = traffic.frame(sequence);
    if beside {
        wire.splice(12..12, tags[..4].iter().copied());
    }
    assert_eq!(wire[12..12 + tags.len()], *tags);
    wire
}

/// Stops, and takes what is left.
fn drain(capture: &mut Capture, mut each: impl FnMut(Chunk)) {
    capture.stop().expect("the capture stops");
    while let Some(chunk) = capture.next(Duration::ZERO).expect("what was captured can be taken") {
        each(chunk);
    }
}

/// Takes chunks until nothing has come for a while.
fn take_all(capture: &mut Capture, mut each: impl FnMut(&Chunk)) {
    while let Some(chunk) = capture.next(Duration::from_millis(100)).expect("the capture goes on") {
        each(&chunk);
    }
}

/// Sends these frames from `tx`, and gives what is captured of them, with their lengths on the wire.
fn send_and_take(capture: &mut Capture, tx: &Port, frames: &[Vec<u8>]) -> Vec<(Vec<u8>, usize)> {
    FrameSender::new(tx).expect("a socket").send_frames(frames).expect("frames are sent");
    let mut taken = Vec::new();
    take_all(capture, |chunk| {
        taken.extend(chunk.packets().map(|packet| (packet.data.to_vec(), packet.original_len as usize)));
    });
    taken
}

/// The sums of the account that always close, and those that close once everything was taken.
fn assert_closed(account: &Account) {
    for interface in &account.interfaces {
        for queue in &interface.queues {
            let tally = queue.tally;
            let ends =
                tally.filtered.unwrap_or(0) + tally.sampled_out + tally.captured + tally.lost + tally.errors;
            assert_eq!(tally.seen, ends, "{tally:?}");
            assert_eq!(tally.captured, tally.delivered + tally.discarded, "{tally:?}");
            let pool = queue.pool;
            assert_eq!(pool.free + pool.open + pool.ready + pool.held, pool.total, "{pool:?}");
            assert_eq!((pool.ready, pool.held), (0, 0), "{pool:?}");
        }
    }
}

/// Captures `count` frames of `traffic` and says what became of them.
fn capture_frames(
    network: &Network,
    builder: Builder,
    traffic: &Traffic,
    count: u64,
) -> (SequenceReport, Account) {
    let mut generator = Generator::new(network.pair(), traffic).expect("the generator loads").cpu(1);
    network.rx().run(|| {
        let mut capture = builder.open().expect("the capture opens");
        let mut check = SequenceCheck::new(traffic, 0..count);
        let sending = std::thread::spawn(move || generator.send(count).expect("frames are sent"));
        while !sending.is_finished() {
            if let Some(chunk) = capture.next(Duration::from_millis(10)).expect("the capture goes on") {
                chunk.packets().for_each(|packet| check.frame(packet.data));
            }
        }
        let report: SendReport = sending.join().expect("the sender does not panic");
        assert_eq!(report.accepted, count, "{report:?}");
        take_all(&mut capture, |chunk| chunk.packets().for_each(|packet| check.frame(packet.data)));
        drain(&mut capture, |chunk| chunk.packets().for_each(|packet| check.frame(packet.data)));
        (check.finish(), capture.account().expect("the account can be had"))
    })
}

/// Each source in each of its modes.
const WAYS: [(SourceChoice, Mode); 6] = [
    (SourceChoice::Xdp, Mode::Pass),
    (SourceChoice::Xdp, Mode::Exclusive),
    (SourceChoice::Tc, Mode::Pass),
    (SourceChoice::XdpTc, Mode::Pass),
    (SourceChoice::AfPacket, Mode::Pass),
    (SourceChoice::AfXdp, Mode::Exclusive),
];
