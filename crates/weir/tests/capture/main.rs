//! Captures of real traffic in private networks; each test has its own and leaves nothing behind.

#[path = "../common/mod.rs"]
mod common;

/// `$check` as a test for each source in each of its modes, so that they can run at the same time.
macro_rules! each_way {
    ($check:ident) => {
        each_way!($check:
            root_xdp(Xdp, Pass),
            root_xdp_exclusive(Xdp, Exclusive),
            root_tc(Tc, Pass),
            root_xdp_tc(XdpTc, Pass),
            root_af_packet(AfPacket, Pass),
            root_af_xdp(AfXdp, Exclusive),
        );
    };
    ($check:ident: $($test:ident($source:ident, $mode:ident)),+ $(,)?) => {
        mod $check {
            $(
                #[test]
                fn $test() {
                    if weir_lab::require_root(concat!(stringify!($test), "_", stringify!($check))) {
                        super::$check(weir::SourceChoice::$source, weir::Mode::$mode);
                    }
                }
            )+
        }
    };
}

mod af_xdp;
mod by_time;
mod coexistence;
mod contents;
mod counting;
mod delivery;
mod event_loop;
mod filter;
mod handlers;
mod marked;
mod queues;
mod refused;
mod rules;
mod sample;
mod segment;
mod stats;
mod steering;
mod tagged;
mod tc;
mod writers;

use std::time::Duration;

use weir::{Builder, Capture, CaptureStats};
use weir_lab::{FrameSender, Generator, Network, Port, SendReport, SequenceCheck, SequenceReport, Traffic};

use common::{drain, on_one_processor, take, take_of, with_room_for};

/// A capture on the receiving end of the first pair. The calling thread must be in the namespace.
fn on_rx(network: &Network) -> Builder {
    common::capture().interface(&network.pair().rx.name)
}

/// The same with room for so many packets of `size` bytes.
fn on_rx_with_room(network: &Network, packets: u64, size: usize) -> Builder {
    with_room_for(packets, size).interface(&network.pair().rx.name)
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

/// Sends these frames from `tx`, and gives what is captured of them, with their lengths on the wire.
fn send_and_take(capture: &mut Capture, tx: &Port, frames: &[Vec<u8>]) -> Vec<(Vec<u8>, usize)> {
    let sender = FrameSender::new(tx).expect("a socket");
    let send = || on_one_processor(|| sender.send_frames(frames).expect("frames are sent"));
    let mut taken = Vec::new();
    take_of(capture, send, |chunk| {
        taken.extend(chunk.packets().map(|packet| (packet.data.to_vec(), packet.original_len as usize)));
    });
    taken
}

/// The sums of the account that always close, and those that close once everything was taken.
fn assert_closed(account: &CaptureStats) {
    for interface in &account.interfaces {
        for queue in &interface.queues {
            let counters = queue.counters;
            let ends = counters.filtered.unwrap_or(0)
                + counters.sampled_out
                + counters.counted
                + counters.captured
                + counters.lost
                + counters.errors;
            assert_eq!(counters.seen, ends, "{counters:?}");
            assert_eq!(counters.captured, counters.delivered + counters.discarded, "{counters:?}");
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
) -> (SequenceReport, CaptureStats) {
    let mut capture = network.rx().run(|| builder.open().expect("the capture opens"));
    let mut check = send_past(&mut capture, network, traffic, count);
    drain(&mut capture, |chunk| chunk.packets().for_each(|packet| check.frame(packet.data)));
    (check.finish(), capture.stats().expect("the account can be had"))
}

/// Sends `count` frames of `traffic`, and looks at all that a capture takes of them.
fn send_past(capture: &mut Capture, network: &Network, traffic: &Traffic, count: u64) -> SequenceCheck {
    let before = common::ended(&capture.stats().expect("the account can be had").total());
    let mut generator = Generator::new(network.pair(), traffic).expect("the generator loads").cpu(1);
    let mut check = SequenceCheck::new(traffic, 0..count);
    let sending = std::thread::spawn(move || generator.send(count).expect("frames are sent"));
    while !sending.is_finished() {
        if let Some(chunk) = capture.next(Duration::from_millis(10)).expect("the capture goes on").taken() {
            chunk.packets().for_each(|packet| check.frame(packet.data));
        }
    }
    let report: SendReport = sending.join().expect("the sender does not panic");
    assert_eq!(report.accepted, count, "{report:?}");
    take(capture, before + count, |chunk| chunk.packets().for_each(|packet| check.frame(packet.data)));
    check
}
