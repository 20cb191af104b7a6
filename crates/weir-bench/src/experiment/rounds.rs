//! Rounds of turns: every contestant has its turn in each round, so a disturbance of the machine affects all of them.
//! After the last round the first is repeated, as round 0, which shows how far the machine has drifted.

use std::time::Instant;

use super::result::{Fault, Outcome, Value};
use super::text::number;
use super::{Better, Experiment, Measure, Turn};
use crate::failure::Failure;
use crate::style;

/// The repetition of the first round.
pub(crate) const AGAIN: u32 = 0;

/// Takes all turns that `outcome` does not have yet. `keep` is called after each round.
pub(crate) fn take(
    experiment: &mut dyn Experiment,
    outcome: &mut Outcome,
    mut keep: impl FnMut(&Outcome) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let turns = experiment.turns();
    let name = outcome.about.name.clone();
    // Measuring the drift of a single round is not worth the time.
    let again = (outcome.rounds > 1).then_some(AGAIN);
    let rounds: Vec<u32> = (1..=outcome.rounds).chain(again).collect();
    let total = rounds.len() * turns.len();
    let mut done = 0;
    for round in rounds {
        for turn in &turns {
            done += 1;
            if outcome.has(turn, round) {
                continue;
            }
            let start = Instant::now();
            let taken = experiment.take(turn, round);
            outcome.seconds += start.elapsed().as_secs_f64();
            let said = outcome.add(turn, round, taken);
            style::say(format_args!("{name} [{done:>3}/{total}] {:<44} {said}", turn.name));
        }
        // Some know all their series only now.
        outcome.about = experiment.about();
        keep(outcome)?;
    }
    outcome.bars = experiment.bars(outcome);
    keep(outcome)
}

impl Outcome {
    fn has(&self, turn: &Turn, round: u32) -> bool {
        self.values.iter().any(|value| value.turn == turn.name && value.round == round)
    }

    /// Adds the result of a turn. Returns what to print about it.
    fn add(&mut self, turn: &Turn, round: u32, taken: Result<super::Taken, Failure>) -> String {
        self.faults.retain(|fault| fault.turn != turn.name || fault.round != round);
        let fault = |message: String| Fault { turn: turn.name.clone(), round, message };
        let taken = match taken {
            Ok(taken) => taken,
            Err(failure) => {
                self.faults.push(fault(failure.message().to_owned()));
                return style::stderr().red(failure.message());
            }
        };
        let mut said = Vec::new();
        // A turn that measures several series is none of them: it gives one value of each.
        let is_several = !self.about.series.iter().any(|series| series.name == turn.series);
        let main = taken.found.first().map(|found| found.measure.clone());
        // JSON has no infinity and no NaN: a ratio to nothing is no value.
        let finite = taken.found.into_iter().filter(|found| found.value.is_finite());
        for super::Found { series, measure, at, value } in finite {
            let known = self.about.measures.iter().find(|known| known.name == measure);
            if let Some(Measure { unit, .. }) = known.filter(|known| known.better != Better::Neither) {
                let number = number(value);
                if series == turn.series {
                    said.push(format!("{measure} {number} {unit}").trim_end().to_owned());
                } else if is_several && main.as_ref() == Some(&measure) {
                    said.push(format!("{series} {number} {unit}"));
                }
            }
            let turn = turn.name.clone();
            self.values.push(Value { series, measure, at, round, value, turn });
        }
        for problem in taken.problems {
            said.push(style::stderr().red(&problem));
            self.faults.push(fault(problem));
        }
        said.join(if is_several { "; " } else { ", " })
    }

    /// The relative change from the first round to its repetition: the median over all series of the first measure,
    /// 0.01 for a percent more.
    pub(crate) fn drift(&self) -> Option<f64> {
        let measure = &self.about.measures.first()?.name;
        let again = self.values.iter().filter(|value| value.round == AGAIN && value.measure == *measure);
        let changes = again.filter_map(|again| {
            let is_first = |value: &&Value| {
                value.round == 1
                    && value.measure == *measure
                    && value.series == again.series
                    && value.at == again.at
            };
            let first = self.values.iter().find(is_first)?.value;
            (first != 0.0).then(|| again.value / first - 1.0)
        });
        super::confidence::Estimate::of(changes).map(|drift| drift.median)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Found, Taken, result};
    use super::*;

    /// Two series; the second fails in the second round, and has drifted at the end.
    #[derive(Default)]
    struct Two(Vec<(String, u32)>);

    impl Experiment for Two {
        fn about(&self) -> result::About {
            let measure = Measure::higher("rate", "rate", "pps");
            result::About { name: "two".to_owned(), measures: vec![measure], ..result::About::default() }
        }

        fn turns(&self) -> Vec<Turn> {
            ["a", "b"].map(|name| Turn::of(name, None)).to_vec()
        }

        fn take(&mut self, turn: &Turn, round: u32) -> Result<Taken, Failure> {
            self.0.push((turn.name.clone(), round));
            if turn.series == "b" && round == 2 {
                return Err(Failure::new("cannot measure b: it is gone"));
            }
            let value = if round == AGAIN { 11.0 } else { 10.0 };
            Ok(Taken { found: vec![Found::new(&turn.series, "rate", None, value)], problems: Vec::new() })
        }
    }

    #[test]
    fn what_is_no_number_is_no_value() {
        let (mut outcome, mut taken) = (Outcome::default(), Taken::default());
        for value in [f64::NAN, f64::INFINITY, 1.0] {
            taken.put("a", "rate", None, value);
        }
        let _said = outcome.add(&Turn::of("a", None), 1, Ok(taken));
        assert_eq!(outcome.values.len(), 1);
    }

    #[test]
    fn rounds_are_interleaved_and_the_first_is_repeated() {
        let mut two = Two::default();
        let mut outcome = Outcome { about: two.about(), rounds: 2, ..Outcome::default() };
        let mut kept = 0;
        take(&mut two, &mut outcome, |_| {
            kept += 1;
            Ok(())
        })
        .expect("taken");
        let order: Vec<(&str, u32)> = two.0.iter().map(|(name, round)| (name.as_str(), *round)).collect();
        assert_eq!(order, [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 0), ("b", 0)]);
        assert_eq!((outcome.values.len(), outcome.faults.len(), kept), (5, 1, 4));
        assert!(outcome.drift().is_some_and(|drift| (drift - 0.1).abs() < 1e-9), "{:?}", outcome.drift());
    }

    #[test]
    fn what_is_there_is_not_measured_again_and_what_failed_is() {
        let mut first = Two::default();
        let mut outcome = Outcome { about: first.about(), rounds: 2, ..Outcome::default() };
        take(&mut first, &mut outcome, |_| Ok(())).expect("taken");
        let mut second = Two::default();
        take(&mut second, &mut outcome, |_| Ok(())).expect("taken");
        assert_eq!(second.0, [("b".to_owned(), 2)]);
        assert_eq!((outcome.values.len(), outcome.faults.len()), (5, 1));
    }
}
