//! Counts packets of files.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use weir::filter::{FileFilter, Matcher};
use weir::reader::{Item, ReadError};
use weir::statistics::KeyField;
use weir::{Filter, Statistics};
use weir_render::json;
use weir_service::Stop;
use weir_service::confine::{self, Confinement, Needs};

use super::file_counter::{FileCounter, What};
use super::output::Output;
use super::output_options::{OutputFormat, OutputOptions};
use super::report;
use super::rows::View;
use super::summary::{Counted, InterfaceReading, Origin, Summary};
use crate::args::ConfineArgs;
use crate::failure::{self, Failure};
use crate::read::{self, Input, Progress, Sort};
use crate::{out, style};

/// What is counted.
#[derive(Debug)]
pub(super) struct Counting {
    /// With their names.
    pub(super) filters: Vec<(String, Filter)>,
    pub(super) fields: Vec<KeyField>,
    pub(super) most_keys: u32,
    pub(super) sizes: bool,
    pub(super) gaps: bool,
    pub(super) confine: ConfineArgs,
}

/// Counts the packets of these files.
pub(super) fn run(
    files: &[PathBuf],
    counting: Counting,
    output_options: &OutputOptions,
) -> Result<(), Failure> {
    let confine = counting.confine;
    let (filters, what) = counting.checked()?;
    let held = confine.confine(|| {
        let needs = Needs::to_read(files, None);
        if filters.is_empty() { needs } else { needs.make_code() }
    })?;
    // Only intervals need packets in order.
    let divided =
        !output_options.conversations && (output_options.every.is_some() || output_options.count.is_some());
    let sort = if divided { Sort::ByQueue } else { Sort::Never };
    let mut input = Input::open_until_signal(files, sort, None)?;
    let prints = divided && matches!(output_options.format, OutputFormat::Table | OutputFormat::Lines);
    let mut progress = Progress::new(input.meters(), input.size(), prints);
    let view = output_options.view(what.fields.clone());
    let labels: Vec<_> =
        what.filters.iter().cloned().zip(filters.iter().map(|filter| filter.filter().label())).collect();
    let mut counter = FileCounter::new(what);
    let mut output = Output::new(output_options, view.clone());
    let mut intervals = divided.then(|| Intervals::new(output_options));
    let mut damage = Vec::new();
    let counted = count(&mut input, &filters, held.as_ref(), &mut counter, &mut damage, |counter, time| {
        intervals.as_mut().map_or(Ok(()), |intervals| intervals.turn(counter, time, &mut output))
    });
    progress.clear();
    let stop = match counted {
        Ok(()) => None,
        Err(End::Enough(stop)) => Some(stop),
        Err(End::Failed(failure)) => return Err(failure),
    };
    let printed = match (stop, &intervals) {
        (Some(_), _) => Ok(()),
        (None, Some(_)) => output.print(readings(&counter, counter.span())),
        (None, None) => output.print_all(readings(&counter, counter.span())),
    };
    let names: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
    let mut summary = account(&counter, &labels, &names.join(", "), &view);
    summary.confinement = held;
    summary.ended_by(stop);
    let quiet = output_options.quiet || stop == Some(Stop::Pipe);
    if !quiet && divided {
        style::print(&report::account(&summary, style::stderr()));
    }
    if !quiet {
        read::say_odd(&input, sort);
    }
    let json = output_options.format == OutputFormat::Json
        && !output_options.conversations
        && stop != Some(Stop::Pipe);
    let printed = printed.and_then(|()| if json { json::line(out::stdout(), &summary) } else { Ok(()) });
    let printed = failure::printed(printed).err();
    Failure::each(damage.into_iter().map(read::failure).chain(printed).collect())
}

/// Why counting ends early.
enum End {
    Enough(Stop),
    Failed(Failure),
}

/// Reads to the end. `turn` learns the time of each packet before it is counted.
fn count(
    input: &mut Input,
    filters: &[FileFilter],
    held: Option<&Confinement>,
    counter: &mut FileCounter,
    damage: &mut Vec<ReadError>,
    mut turn: impl FnMut(&FileCounter, u64) -> Result<(), End>,
) -> Result<(), End> {
    let mut has_code = !filters.is_empty();
    loop {
        let number = match input.next() {
            Ok(Some(Item::Packet(packet))) => {
                if std::mem::take(&mut has_code) {
                    confine::end_of_code(held).map_err(|error| End::Failed(error.into()))?;
                }
                turn(counter, packet.timestamp)?;
                counter.packet(&packet);
                continue;
            }
            Ok(Some(Item::Interface(number))) => number as usize,
            Ok(Some(_)) => continue,
            Ok(None) => return Ok(()),
            Err(error) => {
                damage.push(error);
                continue;
            }
        };
        let all = input.interfaces();
        let Some(interface) = all.get(number) else { continue };
        let is_network_order = read::NETWORK_ORDER.contains(&interface.link_type) || filters.is_empty();
        let swapped = match input.is_swapped() {
            Some(swapped) => swapped,
            None if is_network_order => false,
            None => {
                let failure = Failure::new(
                    "cannot filter files of both byte orders together: their link-layer headers differ",
                );
                return Err(End::Failed(failure.hint("count each file alone")));
            }
        };
        let program = |filter: &FileFilter| {
            filter.expect(all.iter().map(|interface| interface.link_type));
            filter.program(interface.link_type, swapped)
        };
        let programs: Result<Vec<Arc<Matcher>>, _> = filters.iter().map(program).collect();
        counter
            .interface(interface, programs.map_err(|error| End::Failed(Failure::usage(error.to_string())))?);
    }
}

/// Intervals that are printed while packets are counted.
struct Intervals {
    every: Duration,
    /// Stop after so many.
    most: Option<u64>,
    printed: u64,
    /// Time of the first packet.
    first: Option<u64>,
    /// End of the interval, since then.
    end: Duration,
}

impl Intervals {
    fn new(output_options: &OutputOptions) -> Self {
        Self {
            every: output_options.every(),
            most: output_options.count,
            printed: 0,
            first: None,
            end: output_options.every(),
        }
    }

    /// Prints what was counted before a packet of this time, if its interval is a later one.
    fn turn(&mut self, counter: &FileCounter, time: u64, output: &mut Output) -> Result<(), End> {
        let first = *self.first.get_or_insert(time);
        let passed = Duration::from_nanos(time.saturating_sub(first));
        if passed < self.end {
            return Ok(());
        }
        self.print(counter, output)?;
        // Without packets, several intervals are one.
        let begun = passed.as_nanos() / self.every.as_nanos();
        let begun = Duration::from_nanos_u128(begun * self.every.as_nanos());
        if begun > self.end {
            self.end = begun;
            self.print(counter, output)?;
        }
        self.end = begun.saturating_add(self.every);
        Ok(())
    }

    fn print(&mut self, counter: &FileCounter, output: &mut Output) -> Result<(), End> {
        output.print(readings(counter, self.end)).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => End::Enough(Stop::Pipe),
            _ => End::Failed(failure::unprinted(&error)),
        })?;
        self.printed += 1;
        if self.most == Some(self.printed) { Err(End::Enough(Stop::Count)) } else { Ok(()) }
    }
}

/// Returns what was counted, to be printed.
fn readings(counter: &FileCounter, elapsed: Duration) -> Vec<InterfaceReading> {
    let interface =
        |(name, reading): (&str, _)| InterfaceReading { name: name.to_owned(), is_over: false, reading };
    counter.readings(elapsed).map(interface).collect()
}

fn account(counter: &FileCounter, filters: &[(String, String)], files: &str, view: &View) -> Summary {
    let counted = counter.readings(counter.span()).map(|(name, reading)| {
        let origin = Origin::file(name.to_owned(), files.to_owned());
        Counted { origin, filters: filters.to_vec(), reading }
    });
    Summary::new(&counted.collect::<Vec<_>>(), view)
}

impl Counting {
    /// Checks it, and looks up all names.
    fn checked(self) -> Result<(Vec<FileFilter>, What), Failure> {
        let builder = Statistics::on("").most_keys(self.most_keys).sizes(self.sizes).gaps(self.gaps);
        let builder = builder.by(self.fields.iter().copied());
        let named = |builder: weir::statistics::StatisticsBuilder, (name, filter): &(String, Filter)| {
            builder.filter(name, filter.clone())
        };
        weir::parts::check_statistics(&self.filters.iter().fold(builder, named))?;
        let (names, filters): (Vec<_>, Vec<_>) = self.filters.into_iter().unzip();
        let filters: Result<Vec<_>, _> = filters.into_iter().map(FileFilter::new).collect();
        let what = What {
            filters: names,
            fields: KeyField::ALL.into_iter().filter(|field| self.fields.contains(field)).collect(),
            most_keys: usize::try_from(self.most_keys).unwrap_or(usize::MAX),
            sizes: self.sizes,
            gaps: self.gaps,
        };
        Ok((filters.map_err(|error| Failure::usage(error.to_string()))?, what))
    }
}
