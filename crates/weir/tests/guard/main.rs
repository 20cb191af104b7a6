//! Guards on real interfaces whose packets come at the machine's full rate, and beside nft.

mod beside_nft;
mod rate;

use weir::guard::Rules;
use weir::{Direction, Guard, SourceChoice};
use weir_lab::{Network, Veth};

/// A pair of interfaces with so many queues.
fn network(queues: u32) -> Network {
    Network::new(Veth::default().queues(queues)).expect("a private network")
}

/// A guard of what the receiving end receives, and whatever else it needs.
fn guard(
    network: &Network,
    source: SourceChoice,
    rules: Rules,
    with: impl FnOnce(weir::guard::GuardBuilder) -> weir::guard::GuardBuilder,
) -> Guard {
    let builder = Guard::on(&network.pair().rx.name).source(source).direction(Direction::In).rules(rules);
    let builder = with(builder);
    network.rx().run(|| builder.start()).expect("a guard")
}
