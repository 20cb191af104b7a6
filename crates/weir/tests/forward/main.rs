//! Forwarding between real interfaces: what was sent at one end and what came out at the other, packet by packet.
//!
//! ```text
//!  namespace tx: tx0             tx1     sends at one, captures at the other
//!                 |               |
//!  namespace rx: rx0 == weir ==> rx1
//! ```
#![forbid(unsafe_code)]

mod handler;
mod kernel;
#[path = "../../examples/middlebox.rs"]
mod middlebox;

use std::process::Command;
use std::time::Duration;

use weir::forward::{ForwardAccount, ForwardBuilder, Handler, Lane};
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
    Forward::between("rx0", "rx1")
}

fn open(network: &Network, builder: ForwardBuilder) -> Result<Forward, Error> {
    network.rx().run(|| builder.open())
}

fn open_with<H: Handler>(
    network: &Network,
    builder: ForwardBuilder,
    handler: impl FnMut(Lane) -> H + Send,
) -> Result<Forward, Error> {
    network.rx().run(|| builder.open_with(handler))
}

/// Everything that arrives at the pair's `tx`, and nowhere else.
fn at(pair: &Pair) -> Capture {
    let builder = Capture::builder().interface(&pair.tx.name).source(SourceChoice::Xdp).mode(Mode::Exclusive);
    pair.tx.netns.run(|| builder.open()).expect("the capture opens")
}

/// All that was captured, once nothing more is on its way.
fn frames(mut capture: Capture) -> Vec<Vec<u8>> {
    std::thread::sleep(Duration::from_millis(100));
    capture.stop().expect("it stops");
    let mut frames = Vec::new();
    while let Some(chunk) = capture.next(Duration::ZERO).expect("what was captured can be taken") {
        frames.extend(chunk.packets().map(|packet| packet.data.to_vec()));
    }
    assert_eq!(capture.account().expect("it counts").total().lost, 0);
    frames
}

/// The account at the end, which closes.
fn closed(mut forward: Forward) -> ForwardAccount {
    forward.stop().expect("it stops");
    let account = forward.account().expect("it counts");
    for way in &account.ways {
        for queue in &way.queues {
            assert_eq!(queue.tally.in_flight(), 0, "{queue:?}");
            let tally = queue.tally;
            let ends = tally.filtered + tally.forwarded + tally.dropped + tally.passed + tally.lost();
            assert_eq!(tally.seen, ends, "{queue:?}");
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
