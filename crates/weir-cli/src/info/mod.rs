//! `weir info`: what is in capture files, and where packets were lost.

mod gather;
mod text;
mod timeline;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use self::gather::Summary;
pub(crate) use self::text::local as local_time;
use crate::confine::{ConfineArgs, Needs};
use crate::failure::Failure;
use crate::read::failure;
use crate::{json, style};

const EXAMPLES: &str = "\
Examples:
  weir info trace.pcapng
        Format, packets, times, rates, sizes, interfaces, and a time line of losses.
  weir info *.pcapng
        A line for each file, in the order in which they are named. -l tells all of each.
  weir info trace.pcapng --json | jq .packets
        One JSON object a file, for programs.
  zcat old.pcap.gz | weir info -
        Standard input. Compressed files are read as they are, too: weir info old.pcap.gz

Losses are what the capture has left in the file: pcapng has a place for them, pcap has none.
Events are what happened to the capture meanwhile, such as another filter by `weir ctl filter`.
Exit status: 0 all well, 1 a file is damaged or cannot be read (the message says where and why),
2 the command line is wrong.";

/// Which files, and for whom.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    confine: ConfineArgs,

    /// Capture files, pcap or pcapng, also compressed by gzip, zstd or lz4; -: standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// One JSON object a file.
    #[arg(long)]
    json: bool,

    /// Each file in full, also where there are several.
    #[arg(short, long)]
    long: bool,
}

/// Tells what is in each file. Goes on after a file that cannot be read.
pub(crate) fn run(args: &InfoArgs) -> Result<(), Failure> {
    args.confine.confine(|| Needs::to_read(&args.files, None))?;
    let mut summaries = Vec::new();
    let mut failures = Vec::new();
    for path in &args.files {
        match Summary::of(path) {
            Ok(summary) if args.json => {
                let mut line = Vec::new();
                json::to_writer(&mut line, &summary).map_err(Failure::new)?;
                line.push(b'\n');
                if !print(&line)? {
                    return Ok(());
                }
                failures.extend(summary.error.map(failure));
            }
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
        summaries.iter().map(full).collect::<Vec<_>>().join("\n")
    };
    print(style::lines(&text).as_bytes())?;
    failures.extend(summaries.into_iter().filter_map(|summary| summary.error).map(failure));
    // The last one is told by who called us.
    let last = failures.pop();
    for failure in failures {
        failure.report();
    }
    last.map_or(Ok(()), Err)
}

/// False: whoever reads has enough.
fn print(text: &[u8]) -> Result<bool, Failure> {
    let mut output = io::stdout().lock();
    match output.write_all(text).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(format_args!("cannot write to standard output: {error}"))),
    }
}
