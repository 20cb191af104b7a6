//! Exact rules as a contestant: a hidden command that adds one to a guard for each flow, waits for SIGINT, and says how many packets
//! they have counted.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use clap::Args;
use weir::guard::{ExactFlow, ExactRule, Fate, Rules};
use weir::{Direction, Filter, Guard, SourceChoice};

use super::set::RuleTexts;
use crate::failure::{Failure, failed};
use crate::receive::interrupted;
use crate::style;

#[derive(Debug, Args)]
pub(crate) struct AddedArgs {
    #[arg(short)]
    interface: String,
    /// Flows of the lab, each of which has a rule.
    #[arg(long)]
    flows: u32,
}

/// Adds the rules, waits, and prints the number of packets. What none of them blocks passes.
pub(crate) fn run(args: &AddedArgs) -> Result<(), Failure> {
    let stop = interrupted()?;
    let rules = Rules::new().rule("rest", Filter::new("udp"), Fate::Pass);
    let builder = Guard::on(&args.interface).source(SourceChoice::Xdp).direction(Direction::In);
    let mut guard = builder.exact(args.flows).rules(rules).start().map_err(failed("start a guard"))?;
    for (from, to) in RuleTexts::flows(args.flows as usize).ends() {
        let flow = ExactFlow::new(17, SocketAddr::from(from), SocketAddr::from(to));
        let rule = ExactRule::new(flow, Fate::Block, Some(Duration::from_secs(3600)));
        guard.add_exact(&rule).map_err(failed("add an exact rule"))?;
    }
    style::say(format_args!("ready"));
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(5));
    }
    guard.stop().map_err(failed("stop the guard"))?;
    let reading = guard.read().map_err(failed("read the guard's counters"))?;
    writeln!(io::stdout(), "{}", reading.exact.packets).map_err(failed("write to standard output"))
}
