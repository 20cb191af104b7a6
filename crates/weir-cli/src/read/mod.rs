//! `weir read`: capture files as lines, as JSON, or as other capture files.
//!
//! ```text
//! files -> Input (one, or merged by time) -> Choice (-c, --from, --to, -s) -> Sink: lines, objects, files, count
//! ```

mod args;
mod choice;
mod clock;
mod files;
mod input;
mod lines;
mod objects;
mod progress;
mod repair;
mod sink;
mod split;
mod when;

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use weir::reader::{Item, ReadError, ReadReason};
use weir::writer::WriterOptions;
use weir_dissect::Dissector;

pub(crate) use self::args::ReadArgs;
use self::choice::{Choice, Verdict};
use self::clock::Clock;
use self::files::{Files, Total};
use self::input::Input;
pub(crate) use self::lines::harmless;
use self::lines::{Count, Lines};
use self::objects::Objects;
pub(crate) use self::objects::time as rfc3339;
pub(crate) use self::progress::Progress;
use self::sink::{End, Sink};
use crate::confine::{ConfineArgs, Needs};
use crate::failure::Failure;
use crate::info::local_time;
use crate::keeper::Helpers;
use crate::{style, units};

/// Reads what `args` names.
pub(crate) fn run(args: &ReadArgs) -> Result<(), Failure> {
    args.check()?;
    let files = args.files();
    if let Some(path) = &args.write {
        not_onto_itself(path, &files)?;
    }
    // Names are looked up while that is allowed; for which link types code is made is known once the files are open.
    let filter = args.filter()?;
    // A single file is opened by a process of its own, so that this one needs no directory; of several it is not known yet
    // what they will be called. Both, and what files are written through, before there are other threads and fewer rights.
    let (single, mut options) = (args.single(), WriterOptions::default());
    let helpers =
        if args.confine.is_on() { Helpers::start(single, &options, None, Vec::new())? } else { None };
    options.keeper = helpers.as_ref().map(Helpers::keeper);
    let held = args.confine.confine(|| {
        let needs = Needs::to_read(&files, args.write.as_deref().filter(|_| single.is_none()));
        if filter.is_some() { needs.make_code() } else { needs }
    })?;
    if let (Some(path), true) = (&args.write, args.repair) {
        return repair::run(&files[0], path);
    }
    let mut input = Input::open(&files, args.sort(), filter.as_ref())?;
    if filter.is_some() {
        ConfineArgs::end_of_code(held.as_ref())?;
    }
    let mut choice = Choice::new(args, input.meters());
    let mut progress = Progress::new(input.meters(), input.size(), args.prints());
    let result = if let Some(path) = &args.write {
        let options = WriterOptions {
            format: args.format(&input),
            section: input.section(),
            compression: args.compression(),
            user_application: concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..options
        };
        let mut files = Files::new(path.clone(), options, args.resolution(), args.split);
        let result = pass(&mut input, &mut choice, &mut progress, &mut files);
        drop(progress);
        let (total, wanted) = (files.total(), path.as_os_str() != "-" && !args.quick);
        // What a conversion that failed has left is told in any case.
        if wanted || (result.is_err() && total.bytes > 0) {
            say_total(path, total, filter.is_some().then(|| input.filtered()));
        }
        result
    } else if args.only_count {
        pass(&mut input, &mut choice, &mut progress, &mut Count::default())
    } else if args.json {
        let result = pass(&mut input, &mut choice, &mut progress, &mut Objects::new(args.dissect()));
        if filter.is_some() && !args.quick {
            style::say(format_args!("{} filtered out", units::packets(input.filtered())));
        }
        result
    } else {
        let clock = Clock::new(args.style(), args.nano, TimeZone::system());
        let mut lines = Lines::new(clock, Dissector::new(args.dissect()), args.below(), args.number);
        pass(&mut input, &mut choice, &mut progress, &mut lines)
    };
    say_odd(&input);
    if let Some((first, last)) = choice.missed() {
        let (first, last) = (local_time(first), local_time(last));
        style::say(format_args!(
            "{}: no packets between --from and --to; the file covers {first} to {last}",
            style::stderr().cyan("note")
        ));
    }
    if let Some(why) = filter.and_then(|filter| filter.why_interpreted()) {
        style::say(format_args!(
            "{}: the filter was interpreted (slower): {why}",
            style::stderr().yellow("note")
        ));
    }
    result
}

/// Takes what is chosen of the input to where it goes. What is whole is taken even where the input is damaged.
fn pass(
    input: &mut Input,
    choice: &mut Choice,
    progress: &mut Progress,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let result = work(input, choice, sink);
    progress.clear();
    let mut damage = match result {
        Ok(damage) => damage,
        Err(end) => {
            sink.give_up();
            return match end {
                // Whoever reads has enough.
                End::Enough => Ok(()),
                End::Failed(failure) => Err(failure),
            };
        }
    };
    // What is whole of a damaged file counts; of one that the filter has nothing to say of, nobody knows how much would.
    if damage.iter().any(|damage| matches!(damage.reason, ReadReason::Filter { .. })) {
        sink.refused();
    }
    let finished = sink.finish();
    if finished.is_err() {
        sink.give_up();
    }
    end(finished)?;
    // The last one is told by who called us.
    let last = damage.pop();
    for damage in damage {
        failure(damage).report();
    }
    last.map_or(Ok(()), |damage| Err(failure(damage)))
}

/// Gives the damage that files ended with.
fn work(input: &mut Input, choice: &mut Choice, sink: &mut dyn Sink) -> Result<Vec<ReadError>, End> {
    let mut damage = Vec::new();
    // Whether what is chosen can go from file to file as it stands: everything, but for what the reader itself leaves out.
    let mut runs = false;
    let mut told = Vec::new();
    loop {
        while runs && let Some(run) = input.next_run() {
            sink.run(&run)?;
        }
        let described = match input.next() {
            Ok(Some(Item::Packet(packet))) => {
                match choice.judge(packet) {
                    Verdict::Take(packet) => sink.packet(&packet)?,
                    Verdict::Last(packet) => {
                        sink.packet(&packet)?;
                        return Ok(damage);
                    }
                    Verdict::Leave => {}
                }
                None
            }
            Ok(Some(Item::Interface(number))) => Some(number),
            Ok(Some(Item::Statistics(statistics))) => {
                sink.statistics(&statistics)?;
                None
            }
            Ok(Some(Item::Block { kind, body })) => {
                sink.block(kind, body)?;
                None
            }
            Ok(None) => {
                sink.comments(&input.later_comments(&mut told));
                return Ok(damage);
            }
            Err(error) => {
                damage.push(error);
                None
            }
        };
        if let Some(interface) = described.and_then(|number| input.interfaces().get(number as usize)) {
            sink.comments(&input.later_comments(&mut told));
            sink.interface(&choice.described(interface), input.fine())?;
            runs = choice.takes_whole() && input.one().is_some_and(|reader| sink.takes_runs(reader));
        }
    }
}

fn end(result: Result<(), End>) -> Result<(), Failure> {
    match result {
        Ok(()) | Err(End::Enough) => Ok(()),
        Err(End::Failed(failure)) => Err(failure),
    }
}

pub(crate) fn failure(error: ReadError) -> Failure {
    let hint = error.hint();
    let message = match error.reason {
        // That of a filter shows the place in lines below one another.
        ReadReason::Filter { .. } => ReadError { file: style::visible(&error.file), ..error }.to_string(),
        _ => style::visible(&error.to_string()),
    };
    let failure = Failure::new(message);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Says what was odd in the input, but did not end the reading.
fn say_odd(input: &Input) {
    let paint = style::stderr();
    for (name, warning) in input.warnings() {
        style::say(format_args!("{}: {}: {warning}", paint.yellow("note"), style::visible(name)));
    }
    if input.late() > 0 {
        let late = units::grouped(input.late());
        style::say(format_args!(
            "{}: {late} packets are out of order; a longer --sort puts them in order",
            paint.yellow("note")
        ));
    }
}

/// `filtered`: packets that a filter did not want.
fn say_total(path: &Path, total: Total, filtered: Option<u64>) {
    let files = match total.files {
        1 => String::new(),
        files => format!(" in {} files", units::grouped(files)),
    };
    style::say(format_args!(
        "{} {}{}, {}{files} -> {}",
        units::grouped(total.packets),
        if total.packets == 1 { "packet" } else { "packets" },
        filtered.map_or_else(String::new, |filtered| format!(" ({} filtered out)", units::grouped(filtered))),
        units::bytes(total.bytes),
        style::visible(&path.display().to_string())
    ));
}

/// A file cannot be read while it is being emptied to be written.
fn not_onto_itself(output: &Path, inputs: &[PathBuf]) -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt;
    let place =
        |path: &Path| path.metadata().ok().filter(|data| data.is_file()).map(|data| (data.dev(), data.ino()));
    let Some(target) = place(output) else { return Ok(()) };
    match inputs.iter().find(|input| place(input) == Some(target)) {
        None => Ok(()),
        Some(input) => {
            let message = format!("{} and {} are the same file", input.display(), output.display());
            Err(Failure::usage(message).hint("write to another name, and rename it afterwards"))
        }
    }
}
