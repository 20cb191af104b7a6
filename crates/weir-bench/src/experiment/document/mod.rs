//! `weir-bench document`: puts results into the documentation.
//!
//! ```text
//!  weir-bench.json -> results.json -> blocks of experiments.md (markers.rs, block.rs)
//!                     (results.rs)    figures/*.svg (figure.rs)
//! ```

mod block;
mod markers;
mod results;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use self::results::Results;
use super::Entry;
use super::figure::{Drawn, Figure, figures};
use super::result::{Run, json, replace};
use crate::failure::{Failure, failed};
use crate::style;

const EXAMPLES: &str = "\
Examples:
  weir-bench document --from weir-bench.json
        Put the results of a run into docs: results.json, the tables in experiments.md, the figures. Experiments
        that the run has not made keep what was measured before.
  weir-bench document
        Make tables and figures again from docs/results.json.
  weir-bench document --check
        Say whether they are what that file gives; write nothing.

A table of experiments.md stands between the lines <!-- weir-bench: NAME --> and <!-- /weir-bench -->. Everything between them \
is replaced.";

/// What to do if there are no documents.
const ELSEWHERE: &str =
    "try it in the folder of the sources, or with --docs; results of a run are read by --from";

/// The figures that README shows, by experiment. Each is for the first place on the axis.
const FIGURES: [&str; 2] = ["capture", "imbalance"];
/// Characters of a line below a figure.
const NOTE: usize = 160;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DocumentArgs {
    /// Results of weir-bench run, which replace older ones of the same experiments; default: nothing new.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// Exit with status 1 if a document is out of date, and write nothing.
    #[arg(long)]
    check: bool,

    /// Folder of the documents.
    #[arg(long, value_name = "DIR", default_value = "docs")]
    docs: PathBuf,
}

/// A document and its contents.
struct Document {
    path: PathBuf,
    text: String,
}

pub(crate) fn run(args: &DocumentArgs, all: &[Entry]) -> Result<(), Failure> {
    let path = args.docs.join("results.json");
    let old = || Results::load(&path).map_err(|failure| failure.hint(ELSEWHERE));
    let results = match &args.from {
        Some(run) => {
            let run = Run::load(run)?;
            let mut results = if path.exists() { old()? } else { Results::empty() };
            results.add(&run);
            results
        }
        None => old()?,
    };
    let documents = documents(args, path, &results, all)?;
    let stale: Vec<&Document> = documents.iter().filter(|document| !document.is_up_to_date()).collect();
    if !args.check {
        return stale.into_iter().try_for_each(Document::write);
    }
    if stale.is_empty() {
        return Ok(());
    }
    let paths: Vec<_> = stale.iter().map(|document| document.path.display().to_string()).collect();
    let from = args.from.as_ref().map_or_else(String::new, |run| format!(" --from {}", run.display()));
    let paths = paths.join(", ");
    Err(Failure::new(format_args!("out of date: {paths}; try weir-bench document{from}")))
}

fn documents(
    args: &DocumentArgs,
    path: PathBuf,
    results: &Results,
    all: &[Entry],
) -> Result<Vec<Document>, Failure> {
    let experiments = args.docs.join("experiments.md");
    let old = fs::read_to_string(&experiments)
        .map_err(|error| failed(format_args!("read {}", experiments.display()))(error).hint(ELSEWHERE))?;
    let names: Vec<&str> = all.iter().map(|entry| entry.name).collect();
    let blocks = markers::Blocks { names: &names, results };
    let new = blocks.fill(&old).map_err(failed(format_args!("make {}", experiments.display())))?;
    let mut documents =
        vec![Document { path, text: json(results)? }, Document { path: experiments, text: new }];
    for name in FIGURES {
        let path = args.docs.join("figures").join(format!("{name}.svg"));
        let text = figure(results, name).map_err(failed("draw"))?;
        documents.push(Document { path, text: text + "\n" });
    }
    Ok(documents)
}

/// The first figure of an experiment, with what, where and when was measured below it.
fn figure(results: &Results, name: &str) -> Drawn<String> {
    let found = results.find(name);
    let found = found.and_then(|(digest, origin)| Some((figures(digest).into_iter().next()?, origin)));
    match found {
        Some((figure, origin)) => {
            let notes = [figure.legend(), origin];
            figure.svg(&notes.iter().flat_map(|note| wrapped(note)).collect::<Vec<_>>())
        }
        None => Figure::empty(format!("{name}: not measured")).svg(&[]),
    }
}

/// Wraps text into lines short enough for a figure.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= NOTE => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

impl Document {
    fn is_up_to_date(&self) -> bool {
        fs::read(&self.path).is_ok_and(|text| text == self.text.as_bytes())
    }

    fn write(&self) -> Result<(), Failure> {
        let dir = self.path.parent().unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(dir).map_err(failed(format_args!("create {}", dir.display())))?;
        replace(&self.path, &self.text)?;
        style::say(format_args!("{}", self.path.display()));
        Ok(())
    }
}
