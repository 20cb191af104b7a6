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
mod sink;
mod split;
mod when;

use std::path::Path;

use jiff::tz::TimeZone;
use weir::reader::{Item, ReadError};
use weir::writer::WriterOptions;
use weir_dissect::Dissector;

pub(crate) use self::args::ReadArgs;
use self::choice::{Choice, Verdict};
use self::clock::Clock;
use self::files::Files;
use self::input::Input;
pub(crate) use self::lines::harmless;
use self::lines::{Count, Lines};
use self::objects::Objects;
pub(crate) use self::objects::time as rfc3339;
pub(crate) use self::progress::Progress;
use self::sink::{End, Sink};
use crate::failure::Failure;
use crate::{style, units};

/// Reads what `args` names.
pub(crate) fn run(args: &ReadArgs) -> Result<(), Failure> {
    args.check()?;
    let mut input = Input::open(&args.files)?;
    let choice = Choice::new(args);
    let mut progress = Progress::new(input.size(), args.prints());
    if let Some(path) = &args.write {
        not_onto_itself(path, &args.files)?;
        let options = WriterOptions {
            format: args.format(&input),
            comment: input.comment(),
            user_application: concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..WriterOptions::default()
        };
        let mut files = Files::new(path.clone(), options, args.split);
        let result = pass(&mut input, choice, &mut progress, &mut files);
        drop(progress);
        if path.as_os_str() != "-" && !args.quick {
            let total = files.total();
            let many = if total.files == 1 {
                String::new()
            } else {
                format!(" in {} files", units::grouped(total.files))
            };
            let packets = if total.packets == 1 { "packet" } else { "packets" };
            style::say(format_args!(
                "{} {packets}, {}{many} -> {}",
                units::grouped(total.packets),
                units::bytes(total.bytes),
                path.display()
            ));
        }
        return result.and_then(|()| odd(&input));
    }
    if args.only_count {
        let mut count = Count::default();
        if choice.takes_all() {
            let damage = loop {
                match input.next_packet() {
                    Ok(true) => count.add(1),
                    Ok(false) => break Ok(()),
                    Err(damage) => break Err(damage),
                }
                progress.tick(|| input.position());
            };
            drop(progress);
            end(count.finish())?;
            damage.map_err(failure)?;
        } else {
            pass(&mut input, choice, &mut progress, &mut count)?;
        }
    } else if args.json {
        pass(&mut input, choice, &mut progress, &mut Objects::new(args.dissect()))?;
    } else {
        let clock = Clock::new(args.style(), args.nano, TimeZone::system());
        let mut lines = Lines::new(clock, Dissector::new(args.dissect()), args.below(), args.number);
        pass(&mut input, choice, &mut progress, &mut lines)?;
    }
    odd(&input)
}

/// Takes what is chosen of the input to where it goes. What is whole is taken even if the input is damaged behind it.
fn pass(
    input: &mut Input,
    mut choice: Choice,
    progress: &mut Progress,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let damage = match work(input, &mut choice, progress, sink) {
        Ok(damage) => damage,
        // Whoever reads has enough.
        Err(End::Enough) => return Ok(()),
        Err(End::Failed(failure)) => return Err(failure),
    };
    end(sink.finish())?;
    damage.map_or(Ok(()), |damage| Err(failure(damage)))
}

/// Gives the damage at which the input ended, if it did.
fn work(
    input: &mut Input,
    choice: &mut Choice,
    progress: &mut Progress,
    sink: &mut dyn Sink,
) -> Result<Option<ReadError>, End> {
    loop {
        let described = match input.next() {
            Ok(Some(Item::Packet(packet))) => {
                match choice.judge(packet) {
                    Verdict::Take(packet) => sink.packet(&packet)?,
                    Verdict::Last(packet) => {
                        sink.packet(&packet)?;
                        return Ok(None);
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
            Ok(None) => return Ok(None),
            Err(damage) => return Ok(Some(damage)),
        };
        if let Some(interface) = described.and_then(|number| input.interfaces().get(number as usize)) {
            sink.interface(&choice.described(interface))?;
        }
        progress.tick(|| input.position());
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
    let failure = Failure::new(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Says what was odd in the input, but did not end the reading.
fn odd(input: &Input) -> Result<(), Failure> {
    let paint = style::stderr();
    for (name, warning) in input.warnings() {
        style::say(format_args!("{}: {name}: {warning}", paint.yellow("note")));
    }
    Ok(())
}

/// A file cannot be read while it is being emptied to be written.
fn not_onto_itself(output: &Path, inputs: &[std::path::PathBuf]) -> Result<(), Failure> {
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
