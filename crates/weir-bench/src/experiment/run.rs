//! `weir-bench run`: experiments by name.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;

use super::digest::Digest;
use super::result::{Fault, Run};
use super::{Entry, Outcome, Settings, html, rounds, text};
use crate::failure::{Failure, failed};
use crate::interfaces::Interface;
use crate::machine::Machine;
use crate::{interfaces, style, two_processors, units};

const EXAMPLES: &str = "\
Examples:
  weir-bench run all
        Run every experiment, five rounds each; the report is weir-bench.html.
  weir-bench run capture stat --rounds 9
        Run two of them; nine rounds say more than five.
  weir-bench run all --quick
        Check that everything works; the figures mean little.
  weir-bench run all --resume
        Go on where a run was interrupted, with the file it left.

weir-bench list shows the experiments, weir-bench compare what changed between two runs, and weir-bench document puts \
results into the documentation. Requires root and two \
otherwise idle processors. Traffic stays in private networks that are removed at the end, unless --rx and --tx name \
interfaces.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// Names of experiments, or all.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    /// Number of rounds; default: 5. Four or fewer never show a difference.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Make one short round of everything.
    #[arg(long)]
    quick: bool,

    /// File of the results, which is whole after every round.
    #[arg(long, value_name = "FILE", default_value = "weir-bench.json")]
    json: PathBuf,

    /// File of the report: one page with its figures in it.
    #[arg(long, value_name = "FILE", default_value = "weir-bench.html")]
    html: PathBuf,

    /// Keep what the file of the results has, and measure the rest.
    #[arg(long)]
    resume: bool,

    /// Folder for files of captures; should be a tmpfs with 2 GiB to spare.
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    dir: PathBuf,

    /// Receive on this interface instead of a private network; a cable leads to that of --tx. Both are moved to namespaces
    /// of their own, where the host cannot use them, and come back as they were. After an interrupted run they are down, in
    /// the initial namespace.
    #[arg(long, value_name = "IF", requires = "tx")]
    rx: Option<String>,

    /// Send on this interface.
    #[arg(long, value_name = "IF", requires = "rx")]
    tx: Option<String>,
}

/// What to run, and where its results go.
pub(super) struct Plan<'a> {
    pub(super) settings: Settings,
    pub(super) rounds: Option<u32>,
    pub(super) json: Option<&'a Path>,
    pub(super) html: Option<&'a Path>,
    pub(super) resume: bool,
}

/// Runs those that are wanted of `all`.
pub(crate) fn run(args: &RunArgs, all: &'static [Entry]) -> Result<(), Failure> {
    let entries = wanted(&args.names, all)?;
    let cards = args.tx.clone().zip(args.rx.clone()).map(|(tx, rx)| [tx, rx]);
    let settings = Settings { quick: args.quick, dir: args.dir.clone(), cards, ..Settings::default() };
    let (json, html) = (Some(args.json.as_path()), Some(args.html.as_path()));
    measure(&Plan { settings, rounds: args.rounds, json, html, resume: args.resume }, &entries)
}

pub(super) fn measure(plan: &Plan<'_>, entries: &[&Entry]) -> Result<(), Failure> {
    two_processors()?;
    // Before anything is written, and also if a run is resumed: they may be refused.
    let interfaces = interfaces::used(plan.settings.cards.as_ref())?;
    let mut run = begin(plan, interfaces)?;
    style::say(format_args!("{}", run.summary));
    if cfg!(debug_assertions) {
        let warning = "a debug build, many times slower than others: the figures mean nothing";
        style::say(format_args!("{}", style::stderr().yellow(warning)));
    }
    // Fails now rather than after all measurements.
    plan.save(&run)?;
    let began = Instant::now();
    for (number, entry) in (1..).zip(entries) {
        if entries.len() > 1 {
            let so_far = units::elapsed(began.elapsed());
            style::say(format_args!("\n{number} of {}: {} ({so_far} so far)", entries.len(), entry.name));
        }
        one(entry, plan, &mut run)?;
    }
    let mut stdout = io::stdout().lock();
    for outcome in &run.outcomes {
        let told = stdout.write_all(text::outcome(&Digest::of(outcome)).as_bytes());
        told.map_err(failed("write to standard output"))?;
    }
    if let Some(path) = plan.html {
        write(path, &html::page(&run).map_err(failed("draw"))?)?;
    }
    let files = [("results", plan.json), ("report", plan.html)];
    let files = files.into_iter().filter_map(|(what, path)| Some(format!("{what}: {}", path?.display())));
    let files: Vec<_> = files.collect();
    style::say(format_args!("{}{}", if files.is_empty() { "" } else { "\n" }, files.join(", ")));
    verdict(&run)
}

impl Plan<'_> {
    fn save(&self, run: &Run) -> Result<(), Failure> {
        self.json.map_or(Ok(()), |path| run.save(path))
    }
}

pub(super) fn wanted(names: &[String], all: &'static [Entry]) -> Result<Vec<&'static Entry>, Failure> {
    if names.iter().any(|name| name == "all") {
        return Ok(all.iter().collect());
    }
    let one = |name: &String| {
        all.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let known = all.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
            Failure::new(format_args!("cannot run {name}: there is no such experiment; try all, or {known}"))
        })
    };
    names.iter().map(one).collect()
}

/// A new run, or one that was interrupted.
fn begin(plan: &Plan<'_>, interfaces: Vec<Interface>) -> Result<Run, Failure> {
    let Settings { quick, dir, .. } = &plan.settings;
    if let Some(path) = plan.json.filter(|path| plan.resume && path.exists()) {
        let run = Run::load(path)?;
        if run.quick == *quick {
            return Ok(run);
        }
        let what = format_args!(
            "cannot resume {}: its rounds are of another length; try without --resume",
            path.display()
        );
        return Err(Failure::new(what));
    }
    let machine = Machine::describe(dir).with(interfaces);
    let summary = format!("{}, {machine}", machine.date());
    Ok(Run::new(summary, serde_json::to_value(&machine).map_err(failed("describe the machine"))?, *quick))
}

/// Runs one. If it cannot even begin, the others go on.
fn one(entry: &Entry, plan: &Plan<'_>, run: &mut Run) -> Result<(), Failure> {
    let rounds = plan.rounds.unwrap_or(if plan.settings.quick { 1 } else { 5 });
    let place = run.outcomes.iter().position(|outcome| outcome.about.name == entry.name);
    let place = place.unwrap_or_else(|| {
        run.outcomes.push(Outcome::default());
        run.outcomes.len() - 1
    });
    let mut outcome = Outcome { rounds, ..std::mem::take(&mut run.outcomes[place]) };
    let made = (entry.make)(&plan.settings);
    let measured = made.map(|mut experiment| {
        outcome.about = experiment.about();
        rounds::take(experiment.as_mut(), &mut outcome, |outcome| {
            run.outcomes[place] = outcome.clone();
            plan.save(run)
        })
    });
    let result = measured.unwrap_or_else(|failure| {
        let message = failure.told();
        style::say(format_args!("{}", style::stderr().red(&message)));
        outcome.about.name = entry.name.to_owned();
        outcome.about.title = entry.question.to_owned();
        outcome.faults = vec![Fault { turn: entry.name.to_owned(), round: 0, message }];
        Ok(())
    });
    run.outcomes[place] = outcome;
    result.and_then(|()| plan.save(run))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(failed(format_args!("write {}", path.display())))
}

/// Whether everything was measured. A missed target is a result, not a failure.
fn verdict(run: &Run) -> Result<(), Failure> {
    let bars = || run.outcomes.iter().flat_map(|outcome| &outcome.bars);
    let met = bars().filter(|bar| bar.met == Some(true)).count();
    let judged = bars().filter(|bar| bar.met.is_some()).count();
    if bars().next().is_some() {
        style::say(format_args!("{met} of {judged} targets met, {} not measured", bars().count() - judged));
    }
    let faults: usize = run.outcomes.iter().map(|outcome| outcome.faults.len()).sum();
    if faults == 0 {
        return Ok(());
    }
    Err(Failure::new(format_args!("turns that failed or are wrong: {faults}; see above")))
}
