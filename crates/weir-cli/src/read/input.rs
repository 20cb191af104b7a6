//! The input: one file, or several merged by time.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use weir::FileInterface;
use weir::filter::FileFilter;
use weir::reader::{
    self, ByteOrder, Item, LaneOrder, Merge, Meter, ReadError, ReadReason, Reader, Run, Section, TimeUnit,
    Warning,
};

use super::failure;
use super::piped::Piped;
use crate::failure::Failure;
use crate::typed;

/// How packets are sorted by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// In file order.
    Never,
    /// weir's own captures, which are in order only within each queue, up to the usual distance between queues.
    ByQueue,
    /// weir's own captures, up to any distance: each file is read once in advance to find its order.
    Looked,
    /// All packets that are out of order by less than this.
    Within(Duration),
}

/// Link types (`LINKTYPE_*`) whose headers are the same whatever the byte order of the capturing host: Ethernet, raw IP, Linux
/// cooked.
pub(crate) const NETWORK_ORDER: [u16; 6] = [1, 101, 113, 228, 229, 276];

/// Most files that are held open.
const MOST_OPEN: u64 = 64;

/// Greatest distance between the queues in the file of a capture that keeps up: packets are delivered five times a
/// second.
const QUEUES_APART: Duration = Duration::from_secs(1);

/// Returns whether a file may be in order only within each queue. A pipe may carry a live capture, whose packets should
/// not wait for others.
fn by_queue(reader: &Reader) -> bool {
    let ours = |name: &String| name.starts_with("weir ");
    reader.size().is_some()
        && reader.sections().iter().any(|section| section.user_application.as_ref().is_some_and(ours))
}

/// The files on the command line.
#[derive(Debug)]
pub(crate) enum Input {
    /// A file in its own order, which is the fastest.
    One(Box<Reader>),
    /// The output of another program, in its own order.
    Piped(Box<Reader>, Piped),
    /// Several files, or one that is being sorted.
    Merged(Box<Merge>),
}

impl Input {
    /// Opens the files, of which standard input ends with a signal, and with it the work. `filter` selects packets.
    pub(crate) fn open_until_signal(
        paths: &[PathBuf],
        sort: Sort,
        filter: Option<&FileFilter>,
    ) -> Result<Self, Failure> {
        let piped = Piped::begin(paths)?;
        Ok(match (Self::open(paths, sort, filter)?, piped) {
            (Self::One(reader), Some(piped)) => Self::Piped(reader, piped),
            (input, _) => input,
        })
    }

    /// Opens the files. `filter` selects packets.
    pub(crate) fn open(paths: &[PathBuf], sort: Sort, filter: Option<&FileFilter>) -> Result<Self, Failure> {
        let open = |path: &PathBuf, sparing: bool| {
            let opened = if sparing { Reader::open_sparing(path) } else { Reader::open(path) };
            let reader = opened.map_err(|error| unopened(error, paths))?.pausing();
            Ok(match filter {
                Some(filter) => reader.filter(filter.clone()),
                None => reader,
            })
        };
        let many = paths.len() > descriptors(MOST_OPEN);
        let readers: Result<Vec<Reader>, Failure> = paths.iter().map(|path| open(path, many)).collect();
        let mut readers = readers?;
        let window = match sort {
            Sort::Looked => return in_order(readers, paths, open),
            Sort::Never => None,
            Sort::ByQueue => readers.iter().any(by_queue).then_some(QUEUES_APART),
            Sort::Within(window) => Some(window),
        };
        Ok(match window {
            None if readers.len() == 1 => Self::One(Box::new(readers.remove(0))),
            None => Self::Merged(Box::new(Merge::new(readers))),
            Some(window) => Self::Merged(Box::new(Merge::new(readers).window(window))),
        })
    }

    /// Returns whether a file may be in order only within each queue.
    pub(crate) fn is_by_queue(&self) -> bool {
        self.readers().into_iter().any(by_queue)
    }

    /// Returns the next item. After an error, other files may have more.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Item<'_>>, ReadError> {
        match self {
            Self::One(reader) => reader.next(),
            Self::Piped(reader, piped) => {
                if !piped.goes_on() {
                    return Ok(None);
                }
                let item = reader.next();
                if matches!(item, Ok(Some(Item::Pause))) {
                    piped.pause();
                }
                item
            }
            Self::Merged(merge) => merge.next(),
        }
    }

    /// Returns the file, if there is only one and it is not being sorted.
    pub(crate) fn one(&self) -> Option<&Reader> {
        match self {
            Self::One(reader) | Self::Piped(reader, _) => Some(reader),
            Self::Merged(_) => None,
        }
    }

    /// Returns a run of packets as stored in a file that is not being sorted; `None`: use [`next`](Self::next).
    #[inline]
    pub(crate) fn next_run(&mut self) -> Option<Run<'_>> {
        match self {
            Self::One(reader) | Self::Piped(reader, _) => reader.next_run(),
            Self::Merged(_) => None,
        }
    }

    pub(crate) fn interfaces(&self) -> &[FileInterface] {
        match self {
            Self::One(reader) | Self::Piped(reader, _) => reader.interfaces(),
            Self::Merged(merge) => merge.interfaces(),
        }
    }

    fn readers(&self) -> Vec<&Reader> {
        match self {
            Self::One(reader) | Self::Piped(reader, _) => vec![reader],
            Self::Merged(merge) => merge.readers().collect(),
        }
    }

    /// Returns the total size in bytes, if all sizes are known.
    pub(crate) fn size(&self) -> Option<u64> {
        self.readers().iter().map(|reader| reader.size()).sum()
    }

    /// Returns the read positions of all files.
    pub(crate) fn meters(&self) -> Vec<Meter> {
        self.readers().iter().map(|reader| reader.meter()).collect()
    }

    /// Returns the combined section headers at the start of the files; `None` if none is pcapng.
    pub(crate) fn section(&self) -> Option<Section> {
        let mut sections = self.readers().into_iter().filter_map(|reader| reader.sections().first());
        let mut all = sections.next()?.clone();
        sections.for_each(|section| all.add(section));
        Some(all)
    }

    /// Returns the comments of sections that have begun since, as pcapng options. `told`: number of sections of each
    /// file that have been returned.
    pub(crate) fn later_comments(&self, told: &mut Vec<usize>) -> Vec<u8> {
        let mut list = Vec::new();
        let readers = self.readers();
        told.resize(readers.len(), 1);
        for (reader, told) in readers.into_iter().zip(told) {
            let later = reader.sections().get(*told..).unwrap_or_default();
            later.iter().flat_map(Section::comments).for_each(|text| reader::append_comment(&mut list, text));
            *told += later.len();
        }
        list
    }

    /// Returns the first file, which sets the format of new files.
    pub(crate) fn first(&self) -> Option<&Reader> {
        self.readers().first().copied()
    }

    /// Returns whether link-layer headers in the byte order of the capturing host are in the other order here; `None`: in
    /// some of the files.
    pub(crate) fn is_swapped(&self) -> Option<bool> {
        let mut each =
            self.readers().into_iter().map(|reader| reader.format().byte_order != ByteOrder::NATIVE);
        let first = each.next().unwrap_or_default();
        each.all(|other| other == first).then_some(first)
    }

    /// Returns whether any interface so far has timestamps finer than microseconds.
    pub(crate) fn fine(&self) -> bool {
        let finer = |unit: TimeUnit| match unit.resolution() {
            // Powers of ten and of two (pcapng, `if_tsresol`).
            decimal @ 0..0x80 => decimal > 6,
            binary => binary & 0x7f > 19,
        };
        self.readers().iter().any(|reader| (0..).map_while(|number| reader.time_unit(number)).any(finer))
    }

    /// Returns the warnings, each with the name of its file.
    pub(crate) fn warnings(&self) -> Vec<(&str, &Warning)> {
        let readers = self.readers().into_iter();
        readers.flat_map(|reader| reader.warnings().iter().map(|warning| (reader.name(), warning))).collect()
    }

    /// Returns the number of packets rejected by the filter.
    pub(crate) fn filtered(&self) -> u64 {
        self.readers().iter().map(|reader| reader.filtered()).sum()
    }

    /// Returns the number of packets that could not be sorted.
    pub(crate) fn late(&self) -> u64 {
        match self {
            Self::One(_) | Self::Piped(..) => 0,
            Self::Merged(merge) => merge.late(),
        }
    }
}

/// Sorts weir's files that are in order only within each queue. Others keep their order.
fn in_order(
    mut readers: Vec<Reader>,
    paths: &[PathBuf],
    open: impl Fn(&PathBuf, bool) -> Result<Reader, Failure>,
) -> Result<Input, Failure> {
    let mut unsorted = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        // Standard input may be a file, of which a second reader would consume a part.
        if !by_queue(&readers[number]) || path == Path::new("-") {
            continue;
        }
        let order = LaneOrder::of(Reader::open_sparing(path).map_err(|error| unopened(error, paths))?);
        if !order.is_strict() {
            let others: Result<Vec<_>, _> = order.lanes().skip(1).map(|_| open(path, true)).collect();
            unsorted.push((number, order, others?));
        }
    }
    if unsorted.is_empty() && readers.len() == 1 {
        return Ok(Input::One(Box::new(readers.remove(0))));
    }
    let mut merge = Merge::new(readers);
    let mut window = Duration::ZERO;
    for (number, order, others) in unsorted {
        window = window.max(order.within_lanes());
        merge = merge.lanes(number, order.lanes(), others);
    }
    Ok(Input::Merged(Box::new(merge.window(window))))
}

/// Reports a file that cannot be opened. If it follows other files, it may be the first word of a filter.
fn unopened(error: ReadError, paths: &[PathBuf]) -> Failure {
    let missing = matches!(&error.reason, ReadReason::Open(error) if error.kind() == io::ErrorKind::NotFound);
    let at = paths.iter().position(|path| path == Path::new(&error.file)).unwrap_or(0);
    let failure = failure(error);
    match missing && at > 0 {
        true => failure.hint(format!("write the filter after --: {}", typed::with_filter_after(paths, at))),
        false => failure,
    }
}

/// Returns `most`, but no more than a quarter of the descriptors that this process may have.
pub(super) fn descriptors(most: u64) -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(most.min(limit / 4).max(1)).unwrap_or(1)
}
