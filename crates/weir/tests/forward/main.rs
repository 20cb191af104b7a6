//! Forwarding between real interfaces: what goes in at one end comes out at the other, packet by packet.
//!
//! ```text
//!  namespace tx: tx0             tx1     sends at one, captures at the other
//!                 |               |
//!  namespace rx: rx0 == weir ==> rx1
//! ```
#![forbid(unsafe_code)]

#[path = "../common/mod.rs"]
mod common;
mod handler;
mod kernel;
#[path = "../../examples/middlebox.rs"]
mod middlebox;
mod rules;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use weir::forward::{ForwardBuilder, ForwardCounters, ForwardHandler, ForwardLane, ForwardStats};
use weir::{Capture, Error, Forward, Mode, SourceChoice};
use weir_lab::{Network, Pair, Rate, Veth};

/// Slow enough that no ring of a disturbed machine overflows.
const RATE: Rate = Rate::PerSecond(50_000);

/// Two pairs.
fn lab(first: Veth, second: Veth) -> Network {
    let mut network = Network::new(first).expect("a private network");
    network.connect(second).expect("a second pair");
    network
}

fn two() -> Network {
    lab(Veth::default(), Veth::default())
}

fn forth() -> ForwardBuilder {
    between("rx0", "rx1")
}

/// Before Linux 6.8 veth does not tell XDP of VLAN tags beside the frame; most tests have none.
fn between(from: &str, to: &str) -> ForwardBuilder {
    Forward::between(from, to).lose_tags(true)
}

fn open(network: &Network, builder: ForwardBuilder) -> Result<Forward, Error> {
    network.rx().run(|| builder.open())
}

fn open_with<H: ForwardHandler>(
    network: &Network,
    builder: ForwardBuilder,
    handler: impl FnMut(ForwardLane) -> H + Send,
) -> Result<Forward, Error> {
    network.rx().run(|| builder.open_with(handler))
}

/// Everything that arrives at the pair's `tx`, and nowhere else.
fn at(pair: &Pair) -> Capture {
    // Room for all that a test sends.
    let builder = common::with_room_for(40_000, 60).interface(&pair.tx.name);
    let builder = builder.source(SourceChoice::Xdp).mode(Mode::Exclusive);
    pair.tx.netns.run(|| builder.open()).expect("the capture opens")
}

/// All that was captured, once there are `packets`.
fn frames(mut capture: Capture, packets: u64) -> Vec<Vec<u8>> {
    common::wait_for(&mut capture, |account| account.total().captured >= packets);
    let mut frames = Vec::new();
    common::drain(&mut capture, |chunk| frames.extend(chunk.packets().map(|packet| packet.data.to_vec())));
    assert_eq!(capture.stats().expect("it counts").total().lost, 0);
    frames
}

/// Waits until it is known what became of so many packets.
fn wait_for(forward: &mut Forward, packets: u64) -> ForwardCounters {
    let began = Instant::now();
    loop {
        let counters = forward.stats().expect("it counts").total();
        if counters.seen >= packets && counters.in_flight() == 0 {
            return counters;
        }
        assert!(began.elapsed() < common::PATIENCE, "{packets} are on their way: {counters:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The account at the end, which closes.
fn closed(mut forward: Forward) -> ForwardStats {
    forward.stop().expect("it stops");
    let account = forward.stats().expect("it counts");
    for way in &account.directions {
        for queue in &way.queues {
            assert_eq!(queue.counters.in_flight(), 0, "{queue:?}");
            let counters = queue.counters;
            let ends = counters.filtered
                + counters.blocked
                + counters.bounced
                + counters.forwarded
                + counters.dropped
                + counters.passed
                + counters.lost();
            assert_eq!(counters.seen, ends, "{queue:?}");
        }
    }
    account
}

fn ip(network: &Network, line: &str) -> String {
    let mut command = Command::new("ip");
    let output = network.rx().run(|| command.args(line.split(' ')).output()).expect("ip runs");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
