//! `weir info`: shows the contents of capture files, and losses.

mod gather;
mod text;
mod timeline;
mod total;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use weir_render::json;
use weir_service::confine::Needs;

use self::gather::Summary;
use self::total::Total;
use crate::args::ConfineArgs;
use crate::failure::{self, Failure};
use crate::read::failure;
use crate::{out, style};

const EXAMPLES: &str = "\
Examples:
  weir info trace.pcapng
        Show format, packets, times, rates, sizes, interfaces and a timeline of losses.
  weir info *.pcapng
        Print one line per file, in the order given, and one for all. -l shows every file in full.
  weir info trace.pcapng --json | jq .packets
        Print one JSON object per file.
  weir info --json ring*.pcapng | jq 'select(.type == \"total\") | .lost'
        With several files, the last object is the sum: here, packets lost in a whole ring.
  zcat old.pcap.gz | weir info -
        Read standard input. Compressed files can also be read directly:
        weir info old.pcap.gz

Losses are those that the capture recorded in the file; pcapng can record them, pcap cannot. \
Where a file does not say, they are unknown: ? in the table, null in JSON. \
Events are changes during the capture, such as a new filter set with `weir ctl filter`.
Exit status: 0 success, 1 a file is damaged or unreadable (the message says where and why), 2 usage error.";

/// Which files, and for whom.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InfoArgs {
    /// Capture files: pcap or pcapng, plain or compressed with gzip, zstd or lz4; - is standard
    /// input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print one JSON object per file, and one for all.
    #[arg(long)]
    json: bool,

    /// Show every file in full, even if there are several.
    #[arg(short, long)]
    long: bool,

    #[command(flatten)]
    confine: ConfineArgs,
}

/// Runs the command. It continues after a file that cannot be read.
pub(crate) fn run(args: &InfoArgs) -> Result<(), Failure> {
    args.confine.confine(|| Needs::to_read(&args.files, None))?;
    let mut failures = Vec::new();
    let printed = if args.json { print_each(args, &mut failures) } else { print_all(args, &mut failures) };
    failures.extend(printed.err());
    Failure::each(failures)
}

/// Prints an object per file, and one for all, as long as the reader of the output wants more.
fn print_each(args: &InfoArgs, failures: &mut Vec<Failure>) -> Result<(), Failure> {
    let mut total = Total::new();
    for path in &args.files {
        match Summary::of(path) {
            Ok(summary) => {
                total.add(&summary);
                let printed = print_json(&summary);
                failures.extend(summary.error.map(failure));
                if !printed? {
                    return Ok(());
                }
            }
            Err(failure) => failures.push(failure),
        }
    }
    if total.files > 1 {
        print_json(&total)?;
    }
    Ok(())
}

/// Prints a table, or each file in full.
fn print_all(args: &InfoArgs, failures: &mut Vec<Failure>) -> Result<(), Failure> {
    let mut summaries = Vec::new();
    for path in &args.files {
        match Summary::of(path) {
            Ok(summary) => summaries.push(summary),
            Err(failure) => failures.push(failure),
        }
    }
    let paint = style::stdout();
    let text = if summaries.len() > 1 && !args.long {
        text::table(&summaries, paint)
    } else {
        let full =
            |summary: &Summary| format!("{}\n{}", style::visible(&summary.file), text::full(summary, paint));
        let mut all: Vec<_> = summaries.iter().map(full).collect();
        if summaries.len() > 1 {
            all.push(text::total(&summaries));
        }
        all.join("\n")
    };
    let printed = print(style::lines(&text).as_bytes());
    failures.extend(summaries.into_iter().filter_map(|summary| summary.error).map(failure));
    printed.map(|_| ())
}

fn print_json(object: &impl Serialize) -> Result<bool, Failure> {
    let mut line = Vec::new();
    json::to_writer(&mut line, object).map_err(Failure::new)?;
    line.push(b'\n');
    print(&line)
}

/// Prints text. Returns false if the reader of the output has enough.
fn print(text: &[u8]) -> Result<bool, Failure> {
    let mut output = out::stdout();
    match output.write_all(text).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(failure::unprinted(&error)),
    }
}
