//! `weir-bench run methods`: what each method of intercepting packets costs TCP.
//!
//! ```text
//!  iperf3 -> tx0 -> rx0 -> the method: check, copy, sum, call -> stack -> iperf3
//!                   |                 |                           |
//!                   interface's       judge.rs: sums and          stack's
//!                   counters          counters agree              counters
//! ```

mod about;
mod field;
mod judge;
mod method;
mod reader;
mod traffic;
mod work;

pub(crate) use reader::{InterceptArgs, run as intercept};

use std::path::PathBuf;

use tempfile::TempDir;
use weir_lab::Pair;

use crate::experiment::{About, Experiment, Judged, Outcome, Settings, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::libpcap::counter;
use crate::process::busy;
use crate::tidy;
use crate::wanted::Wanted;
use field::{Field, Held};
use judge::Arrived;
use method::Method;
use traffic::{Rates, Streams};
use work::Seen;

/// The C program of libpcap's method.
const C: (&str, &str) = ("intercept", include_str!("intercept.c"));
/// Known frames of each size before each turn.
const KNOWN: u64 = 250;

struct Methods {
    quick: bool,
    dir: TempDir,
    /// The C program, once it is compiled.
    libpcap: Option<PathBuf>,
}

/// Prepares it.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    if settings.cards.is_some() {
        return Err(Failure::new(
            "cannot compare methods on interfaces of this machine: iperf3 needs a host at each end; try without --rx \
             and --tx",
        ));
    }
    let dir = tidy::folder().map_err(failed("make a temporary folder"))?;
    Ok(Box::new(Methods { quick: settings.quick, dir, libpcap: None }))
}

impl Experiment for Methods {
    fn about(&self) -> About {
        about::about()
    }

    fn turns(&self) -> Vec<Turn> {
        Method::all().map(|method| Turn::of(method.name(), None)).to_vec()
    }

    fn take(&mut self, turn: &Turn, _: u32) -> Result<Taken, Failure> {
        let method = Method::parse(&turn.series).map_err(failed("take a turn"))?;
        let mut taken = Taken::default();
        taken
            .problems
            .extend(self.known(method)?.into_iter().map(|problem| format!("known frames: {problem}")));
        let streams = if self.quick {
            Streams { count: 4, seconds: 1, interval: 0.25 }
        } else {
            Streams { count: 16, seconds: 5, interval: 0.5 }
        };
        let time = || busy().map_err(failed("read /proc/stat"));
        let Held { came: (received, time), seen, arrived, ends } = self.held(method, |pair| {
            let before = time()?;
            let received = traffic::run(pair, streams)?;
            let time = time()?.saturating_sub(before);
            field::still(pair)?;
            Ok((received, time))
        })?;
        if !received.rates.are_possible() {
            taken.problems.push(format!("no sample has these statistics: {:?}", received.rates));
        }
        let Rates { mean, min, max, sd, .. } = received.rates;
        for (measure, rate) in about::RATES.into_iter().zip([mean, min, max, sd]) {
            taken.add(turn, measure, rate / 1e9);
        }
        taken.add(turn, "cpu", time.as_secs_f64() / (received.bytes / 1e9));
        let Some(seen) = seen else {
            taken.problems.extend(judge::arrival(&arrived));
            return Ok(taken);
        };
        taken.add(turn, "lost", percent(&seen, &arrived));
        taken.add(turn, "intercepted", seen.packets as f64);
        taken.problems.extend(judge::stream(&seen, &arrived, &ends));
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        [Method::Xdp, Method::Tc].into_iter().flat_map(|ours| bars(ours.name(), outcome)).collect()
    }
}

impl Methods {
    /// Has a method intercept frames whose bytes are known. Returns what is wrong.
    fn known(&mut self, method: Method) -> Result<Vec<String>, Failure> {
        let Held { came: frames, seen, arrived, .. } = self.held(method, |pair| {
            let frames = traffic::frames([pair.tx.mac, pair.rx.mac], field::ends(pair), KNOWN)?;
            field::send(pair, &frames)?;
            Ok(frames)
        })?;
        Ok(seen.map_or_else(Vec::new, |seen| judge::burst(&seen, &arrived, &frames)))
    }

    /// Has a method intercept everything that `traffic` sends, in a network of its own.
    fn held<T>(
        &mut self,
        method: Method,
        traffic: impl FnOnce(&Pair) -> Result<T, Failure>,
    ) -> Result<Held<T>, Failure> {
        let libpcap = match (method, &self.libpcap) {
            (Method::Libpcap, None) => {
                let (name, source) = C;
                self.libpcap = Some(counter::compile_source(self.dir.path(), name, source)?);
                self.libpcap.clone()
            }
            (_, compiled) => compiled.clone(),
        };
        Field::new()?.hold(method, libpcap.as_deref(), traffic)
    }
}

/// The share of packets that the method did not see.
fn percent(seen: &Seen, arrived: &Arrived) -> f64 {
    100.0 * arrived.packets.saturating_sub(seen.packets) as f64 / arrived.packets.max(1) as f64
}

/// A method of weir against libpcap, round by round.
fn bars(ours: &str, outcome: &Outcome) -> Vec<Judged> {
    let both = [ours, Method::Libpcap.name()];
    let worst =
        |what: &str, values: Vec<f64>| Judged::worst(&format!("weir {ours}: {what}"), 0.0, "%", values);
    let beyond = outcome.added(both, "lost", None).into_iter().map(|(_, more)| more).collect();
    let rates = outcome.ratios(both, "rate", None);
    vec![
        Judged::new(&format!("weir {ours}: rate / libpcap's"), Wanted::AtLeast(1.0), "times", rates),
        worst("lost beyond libpcap's", beyond),
        worst("lost", outcome.values_of(ours, "lost", None)),
    ]
}
