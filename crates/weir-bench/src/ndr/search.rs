//! The search for the highest rate: a trial, and bisection.

use std::time::Duration;

use weir_lab::{Generator, Pair, Rate, Traffic};

use crate::experiment::{Measure, Settings, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::highest::highest;
use crate::program::Reader;
use crate::sample::GENERATOR_CPU;
use crate::units::whole;

/// The lowest rate is this much below the highest that the interface takes.
const RANGE: f64 = 256.0;
/// Halvings of that, which leave 4.4 %; and in a short run.
const STEPS: u32 = 7;
const FEW_STEPS: u32 = 2;
/// Share of the sending time for which a program may be busy after it, but at least [`LEAST_BEHIND`].
const BEHIND: u32 = 10;
pub(super) const LEAST_BEHIND: Duration = Duration::from_millis(150);

/// Halvings of a search.
pub(super) fn steps(settings: &Settings) -> u32 {
    if settings.quick { FEW_STEPS } else { STEPS }
}

/// Of a trial.
pub(super) fn duration(settings: &Settings) -> Duration {
    settings.time(500).max(Duration::from_millis(50))
}

/// What a trial sends.
pub(super) struct Sending {
    /// Packets a second; none for all that the interface takes.
    pub(super) rate: Option<f64>,
    pub(super) duration: Duration,
    /// No more packets than these.
    pub(super) most: f64,
}

/// What came of one rate.
#[derive(Clone, Copy)]
pub(super) struct Trial {
    /// Packets a second that came.
    pub(super) rate: f64,
    /// Packets that the interface took.
    pub(super) accepted: u64,
    /// Whether none was lost, and the program was soon done.
    pub(super) kept_up: bool,
}

/// Sends to a program that has begun, and ends it.
pub(super) fn trial(
    pair: &Pair,
    reader: Reader,
    traffic: &Traffic,
    sending: &Sending,
    problems: &mut Vec<String>,
) -> Result<Trial, Failure> {
    let Sending { rate, duration, most } = *sending;
    let count = |rate: f64| whole((rate * duration.as_secs_f64()).min(most)).max(1);
    let mut generator = Generator::new(pair, traffic).map_err(failed("prepare to send"))?.cpu(GENERATOR_CPU);
    let (accepted, sent) = match rate {
        None => {
            let seen = generator.send_for(duration / 10).map_err(failed("send"))?;
            let sent = generator.send(count(seen.rate())).map_err(failed("send"))?;
            (seen.accepted + sent.accepted, sent)
        }
        Some(rate) => {
            let rate = rate.max(1.0);
            generator = generator.rate(Rate::PerSecond(whole(rate))).map_err(failed("prepare to send"))?;
            let sent = generator.send(count(rate)).map_err(failed("send"))?;
            (sent.accepted, sent)
        }
    };
    let rate = sent.accepted as f64 / sent.elapsed.as_secs_f64();
    let allowed = (sent.elapsed / BEHIND).max(LEAST_BEHIND);
    let Ok(behind) = reader.settle_within(sent.elapsed + Duration::from_secs(3)) else {
        reader.give_up()?;
        return Ok(Trial { rate, accepted, kept_up: false });
    };
    let counts = reader.finish()?;
    if counts.delivered > accepted {
        problems.push(format!("{} packets received of {accepted}", counts.delivered));
    }
    Ok(Trial { rate, accepted, kept_up: counts.delivered == accepted && behind <= allowed })
}

/// What a search has found.
pub(super) struct Found {
    /// The fastest trial in which a program kept up; none if it never did.
    pub(super) best: Option<Trial>,
    /// The first: all that the interface takes.
    full: Trial,
    trials: u32,
}

/// Finds the highest rate with which a program keeps up.
pub(super) fn search(
    steps: u32,
    mut trial: impl FnMut(Option<f64>) -> Result<Trial, Failure>,
) -> Result<Found, Failure> {
    // What the interface takes at all; the program may be slow then.
    let full = trial(None)?;
    if full.kept_up {
        return Ok(Found { best: Some(full), full, trials: 1 });
    }
    let mut trials = 1;
    let best = highest([full.rate / RANGE, full.rate], steps, |rate| {
        trials += 1;
        let trial = trial(Some(rate))?;
        Ok::<_, Failure>(trial.kept_up.then_some(trial))
    })?;
    Ok(Found { best, full, trials })
}

impl Found {
    /// Adds the values of [`measures`].
    pub(super) fn add_to(&self, taken: &mut Taken, turn: &Turn) {
        taken.add(turn, "rate", self.best.map_or(0.0, |best| best.rate) / 1e6);
        taken.add(turn, "offered", self.full.rate / 1e6);
        taken.add(turn, "trials", f64::from(self.trials));
    }
}

/// What a search gives.
pub(super) fn measures() -> Vec<Measure> {
    vec![
        Measure::higher("rate", "highest rate without loss", "Mpps"),
        Measure::fact("offered", "highest rate that was tried", "Mpps"),
        Measure::fact("trials", "trials", ""),
    ]
}
