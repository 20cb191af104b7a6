//! `weir read`: prints capture files as lines or JSON, or writes other capture files.
//!
//! ```text
//! files -> Input (one, or merged by time) -> Who (--who) -> Choice (-c, --from, --to, -s) -> Ruled (--rules) -> Changed (--map-ip, ...) -> Sink: lines, objects, files, count, check
//! ```

mod args;
mod changed;
mod check;
mod choice;
mod ends;
mod files;
mod follow;
mod hope;
mod input;
mod lines;
mod pass;
mod piped;
mod progress;
mod repair;
mod ruled;
mod sink;
mod split;
mod stream;
mod unheld;
pub(crate) mod when;
mod who;

use std::path::{Path, PathBuf};

use weir::reader::{ReadError, ReadReason, Section};
use weir::writer::WriterOptions;
use weir_render::Column;
use weir_service::broker::Helpers;
use weir_service::confine::{self, Needs};
use weir_service::resolver::Resolver;

pub(crate) use self::args::ReadArgs;
use self::changed::Changed;
use self::check::Checked;
pub(crate) use self::choice::{Choice, Limits, Verdict};
use self::ends::Cut;
use self::files::{Files, Total};
use self::hope::Hope;
pub(crate) use self::input::{Input, NETWORK_ORDER, Sort};
use self::lines::{Count, Lines};
use self::pass::{Pass, pass};
pub(crate) use self::piped::Piped;
pub(crate) use self::progress::Progress;
use self::ruled::{Ruled, Rules};
use self::sink::Sink;
use self::stream::Stream;
use self::who::Who;
use crate::failure::Failure;
use crate::rewriting::Editor;
use crate::rules::RuleNames;
use crate::{advice, style, units};

/// Runs the command.
pub(crate) fn run(args: &ReadArgs) -> Result<(), Failure> {
    args.check()?;
    let files = args.files();
    // Names are looked up while this is allowed. The link types to generate code for are known once the files are open.
    let names = RuleNames::of_filter();
    let filter = args.filter(names.clone())?;
    let mut rules = args.rules()?;
    if let Some(path) = &args.write {
        let of_rules = rules.as_ref().map(Rules::files).unwrap_or_default();
        not_onto_itself(path, &[files.clone(), of_rules, names.files(), args.other_files()].concat())?;
    }
    // A confined process could not create it.
    let raw = args.stream.file(args.write.as_deref())?;
    let has_code = filter.is_some() || rules.is_some();
    let hopes = Hope::allowed(args);
    let editor = args.rewriting.copier();
    args.rewriting.say_odd();
    let anonymous = editor.as_ref().is_some_and(Editor::is_anonymous);
    // A single output file is opened by another process, so this one needs no directory. The names of several files are
    // not known yet. The process and the means to write files must exist before there are other threads and fewer
    // rights.
    let (single, mut options) = (args.single(), WriterOptions::default());
    let helpers = if args.confine.is_on() { Helpers::for_file(single, &options)? } else { None };
    let prints = args.prints();
    let names = (prints && args.line.names(args.json)).then(Resolver::start).transpose()?;
    let column = if args.interfaces { Column::Always } else { Column::Never };
    let text = prints.then(|| args.line.text(args.json, args.nano, names, None, column));
    options.broker = helpers.as_ref().map(Helpers::broker);
    let held = args.confine.confine(|| {
        let needs = Needs::to_read(&files, args.write.as_deref().filter(|_| single.is_none()));
        let needs = if args.follow { needs.read_beside(&files[0]) } else { needs };
        if has_code { needs.make_code() } else { needs }
    })?;
    if let (Some(path), true) = (&args.write, args.repair) {
        return repair::run(&files[0], path);
    }
    let end_of_code = || match has_code {
        true => Ok(confine::end_of_code(held.as_ref())?),
        false => Ok(()),
    };
    // Rules get their code with the interfaces, before the first packet.
    let is_ruled = rules.is_some();
    let opened = || if is_ruled { Ok(()) } else { end_of_code() };
    let mut steps = Steps { rules: rules.as_mut(), ready: &end_of_code, editor, snap_len: args.snap_len };
    let text = match text {
        Some(text) if args.follow => {
            return steps.through(false, &mut Lines::new(text), |sink| {
                follow::run(args, &files[0], filter.as_ref(), sink, opened)
            });
        }
        text => text,
    };
    let mut reading = Pass::open(args, filter.as_ref(), if hopes { Sort::Never } else { args.sort() })?;
    opened()?;
    if let Some(rules) = &mut steps.rules {
        rules.swapped = reading.input.is_swapped();
    }
    let mut is_hoping = false;
    let result = if let Some(wanted) = args.stream.wanted() {
        let raw = args.write.as_deref().zip(raw);
        let mut stream = Stream::new(&args.stream, wanted, args.line.quick, raw);
        steps.through(false, &mut stream, |sink| pass(&mut reading, sink))
    } else if let Some(path) = &args.write {
        let described = reading.input.section().is_some();
        let options = weir::with!(
            options,
            format = args.format(&reading.input),
            section = if anonymous { Some(Section::default()) } else { reading.input.section() },
            compression = args.compression(),
            user_application = concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned()
        );
        let hope = (hopes && reading.input.is_by_queue()).then(Hope::default);
        is_hoping = hope.is_some();
        let split = args.split.map(|split| (split, args.max_files));
        let files = Files::new(path.clone(), options, args.resolution(), split, hope);
        let sorting = args.sort() == Sort::Looked && reading.input.is_by_queue();
        let cut =
            Cut { filter: has_code || args.who.selects(), time: args.from.is_some() || args.to.is_some() };
        let mut files = files.eager(args.packet_buffered).sorting(sorting).cut(cut);
        let result = steps.through(described, &mut files, |sink| pass(&mut reading, sink));
        let (total, wanted) = (files.total(), path.as_os_str() != "-" && !args.line.quick);
        // The remains of a failed conversion are reported in any case.
        if wanted || (result.is_err() && total.bytes > 0) {
            say_total(path, total, filter.is_some().then(|| reading.input.filtered()));
        }
        result
    } else if let Some(text) = text {
        let mut lines = Lines::new(text);
        let result = steps.through(false, &mut lines, |sink| pass(&mut reading, sink));
        if args.json && filter.is_some() && !args.line.quick {
            style::say(format_args!("{} filtered out", units::packets(reading.input.filtered())));
        }
        result
    } else if let Some(check) = args.check.start() {
        let mut checked = Checked::new(check, args.json);
        pass(&mut reading, &mut checked).and_then(|()| checked.verdict())
    } else {
        steps.through(false, &mut Count::default(), |sink| pass(&mut reading, sink))
    };
    reading.who.iter().for_each(Who::say);
    // What was hoped for has come true: packets out of order are none of those chosen.
    let is_in_order = is_hoping && reading.sort == Sort::Never;
    say_odd(&reading.input, if is_in_order { Sort::Never } else { args.sort() });
    if let Some((first, last)) = reading.choice.missed() {
        let (first, last) = (units::local_time(first), units::local_time(last));
        let why = match reading.choice.is_empty() {
            true => "--to is not after --from",
            false => "no packets between --from and --to",
        };
        note(format_args!("{why}; the file covers {first} to {last}"));
    }
    let interpreted = [
        ("the filter was", filter.and_then(|filter| filter.why_interpreted())),
        ("rules were", rules.and_then(|rules| rules.why_interpreted())),
    ];
    for (what, why) in interpreted.into_iter().filter_map(|(what, why)| Some((what, why?))) {
        style::say(format_args!(
            "{}: {what} interpreted, which is slower: {why}{}",
            style::stderr().yellow("note"),
            if held.is_some() { "; --no-confine turns weir's sandbox off" } else { "" }
        ));
    }
    result
}

/// What is done with packets on their way to a sink.
struct Steps<'a> {
    rules: Option<&'a mut Rules>,
    /// To be called once rules have their code.
    ready: &'a dyn Fn() -> Result<(), Failure>,
    editor: Option<Editor>,
    snap_len: Option<u32>,
}

impl Steps<'_> {
    /// Gives `work` a sink: this one, behind all steps. `described`: the input says something of itself that an anonymous copy does
    /// not have.
    fn through(
        self,
        described: bool,
        sink: &mut dyn Sink,
        work: impl FnOnce(&mut dyn Sink) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut changed;
        let sink: &mut dyn Sink = match self.editor {
            Some(editor) => {
                changed = Changed::new(editor, self.snap_len, described, sink);
                &mut changed
            }
            None => sink,
        };
        match self.rules {
            Some(rules) => work(&mut Ruled::new(rules, self.ready, sink)),
            None => work(sink),
        }
    }
}

pub(crate) fn failure(error: ReadError) -> Failure {
    let hint = advice::unread(&error);
    let message = match error.reason {
        // A filter error points at its position, on separate lines.
        ReadReason::Filter { .. } => ReadError { file: style::visible(&error.file), ..error }.to_string(),
        _ => style::visible(&error.to_string()),
    };
    let failure = Failure::new(message);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Prints irregularities of the input that did not end reading.
pub(crate) fn say_odd(input: &Input, sort: Sort) {
    let paint = style::stderr();
    for (name, warning) in input.warnings() {
        style::say(format_args!("{}: {}: {warning}", paint.yellow("note"), style::visible(name)));
    }
    // Who only counts, or wants no sorting, has no use for the order.
    if input.late() > 0 && sort != Sort::Never {
        note(format_args!("{} out of order; use a longer --sort", units::packets(input.late())));
    }
}

pub(crate) fn note(text: std::fmt::Arguments<'_>) {
    style::say(format_args!("{}: {text}", style::stderr().cyan("note")));
}

/// `filtered`: number of packets that the filter rejected.
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

/// Rejects an output file that is also an input, since it would be truncated while it is being read.
fn not_onto_itself(output: &Path, inputs: &[PathBuf]) -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt;
    let place =
        |path: &Path| path.metadata().ok().filter(|data| data.is_file()).map(|data| (data.dev(), data.ino()));
    let Some(target) = place(output) else { return Ok(()) };
    match inputs.iter().find(|input| place(input) == Some(target)) {
        None => Ok(()),
        Some(input) => {
            let message = format!("{} and {} are the same file", input.display(), output.display());
            Err(Failure::usage(message).hint("write to another name, then rename the file"))
        }
    }
}
