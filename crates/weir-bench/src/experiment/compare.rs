//! `weir-bench compare`: what changed between two runs, beyond noise.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;

use super::confidence::LEAST;
use super::digest::Digest;
use super::result::Run;
use super::text::interval;
use super::{Better, Estimate, Role, place};
use crate::failure::{Failure, failed};
use crate::table::table;

const EXAMPLES: &str = "\
Examples:
  weir-bench compare before.json after.json
        Show what is faster or slower after a change.
  weir-bench compare --fail before.json after.json
        The same for a script: exit status 1 if anything is worse.

A value has changed if the intervals that hold the two medians have nothing in common and the medians are more than \
2 % apart. Four rounds or fewer are not enough to say so.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// Results of the earlier run.
    #[arg(value_name = "A.json")]
    before: PathBuf,

    /// Results of the later run.
    #[arg(value_name = "B.json")]
    after: PathBuf,

    /// Exit with status 1 if anything is worse.
    #[arg(long)]
    fail: bool,
}

/// How a value has changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Change {
    Better,
    Worse,
    None,
    /// Too few rounds.
    Unknown,
}

#[derive(Debug, Default)]
struct Found {
    rows: Vec<Vec<String>>,
    same: usize,
    unknown: usize,
    worse: usize,
    /// Limits: what the machine does without a capture.
    limits: Vec<f64>,
}

pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let (before, after) = (Run::load(&args.before)?, Run::load(&args.after)?);
    let mut found = Found::default();
    for earlier in &before.outcomes {
        if let Some(later) = after.outcomes.iter().find(|later| later.about.name == earlier.about.name) {
            found.outcome(&Digest::of(earlier), &Digest::of(later));
        }
    }
    let text = found.tell(&before, &after);
    io::stdout().lock().write_all(text.as_bytes()).map_err(failed("write to standard output"))?;
    if found.same + found.unknown + found.rows.len() == 0 {
        let (a, b) = (args.before.display(), args.after.display());
        return Err(Failure::new(format_args!(
            "cannot compare {a} with {b}: they have no experiment in common"
        )));
    }
    if args.fail && found.worse > 0 {
        return Err(Failure::new(format_args!("values that are worse: {}", found.worse)));
    }
    Ok(())
}

impl Found {
    fn outcome(&mut self, earlier: &Digest, later: &Digest) {
        for series in &earlier.about.series {
            for measure in &earlier.about.measures {
                for at in earlier.places() {
                    let of = |digest: &Digest| digest.estimate(&series.name, &measure.name, at);
                    let Some((a, b)) = of(earlier).zip(of(later)) else { continue };
                    let headline = earlier.about.measures.first() == Some(measure);
                    if series.role == Role::Limit && headline && a.median != 0.0 {
                        self.limits.push(b.median / a.median);
                    }
                    let change = change(a, b, measure.better);
                    match change {
                        Change::None => self.same += 1,
                        Change::Unknown => self.unknown += 1,
                        Change::Better | Change::Worse => {
                            self.worse += usize::from(change == Change::Worse);
                            self.rows.push(vec![
                                format!("{}: {}", earlier.about.name, series.title),
                                format!("{}, {}{}", measure.name, measure.unit, earlier.place(at)),
                                interval(a),
                                interval(b),
                                difference(a, b),
                                if change == Change::Worse { "WORSE" } else { "better" }.to_owned(),
                            ]);
                        }
                    }
                }
            }
        }
    }

    fn tell(&self, before: &Run, after: &Run) -> String {
        let mut text = format!("before: {}\nafter:  {}\n", before.summary, after.summary);
        let machine = place::differences(&before.machine, &after.machine);
        if !machine.is_empty() {
            text.push_str("The machines differ, and with them perhaps the values:\n");
            text.push_str(&table(&machine.into_iter().map(Vec::from).collect::<Vec<_>>()));
        }
        if !self.rows.is_empty() {
            text.push_str(&table(&self.rows));
        }
        let (changed, worse) = (self.rows.len(), self.worse);
        let total = changed + self.same + self.unknown;
        let _infallible = writeln!(
            text,
            "values compared: {total}, changed: {changed} (worse: {worse}), too few rounds to say: {}",
            self.unknown
        );
        if let Some(limits) = Estimate::of(self.limits.iter().copied()) {
            let percent = (limits.median - 1.0) * 100.0;
            let _infallible = writeln!(
                text,
                "The machine's own limits changed by {percent:+.1} %: differences of that size may be the machine's."
            );
        }
        text
    }
}

fn change(a: Estimate, b: Estimate, better: Better) -> Change {
    if a.confidence < LEAST || b.confidence < LEAST {
        return Change::Unknown;
    }
    if !a.differs_from(&b) {
        return Change::None;
    }
    let higher = b.median > a.median;
    if higher == (better == Better::Higher) { Change::Better } else { Change::Worse }
}

fn difference(a: Estimate, b: Estimate) -> String {
    if a.median == 0.0 {
        return "from nothing".to_owned();
    }
    format!("{:+.1} %", (b.median / a.median - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Estimate {
        Estimate::of(values.iter().copied()).expect("values")
    }

    #[test]
    fn a_change_is_for_better_or_worse() {
        let slow = of(&[1.0, 1.01, 1.02, 1.0, 0.99]);
        let fast = of(&[2.0, 2.01, 2.02, 2.0, 1.99]);
        assert_eq!(change(slow, fast, Better::Higher), Change::Better);
        assert_eq!(change(slow, fast, Better::Lower), Change::Worse);
        assert_eq!(change(fast, slow, Better::Higher), Change::Worse);
        assert_eq!(change(slow, slow, Better::Higher), Change::None);
        assert_eq!(change(slow, of(&[2.0; 4]), Better::Higher), Change::Unknown);
        assert_eq!(difference(slow, fast), "+100.0 %");
    }

    #[test]
    fn loss_that_was_not_there_is_worse() {
        assert_eq!(change(of(&[0.0; 5]), of(&[3.0; 5]), Better::Lower), Change::Worse);
        assert_eq!(difference(of(&[0.0; 5]), of(&[3.0; 5])), "from nothing");
    }
}
