//! What is read: one file, or several merged by time.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir::FileInterface;
use weir::filter::FileFilter;
use weir::reader::{
    self, Item, Merge, Meter, Order, ReadError, ReadReason, Reader, Run, Section, TimeUnit, Warning,
};

use super::failure;
use super::files::descriptors;
use crate::failure::Failure;

/// Whether packets are put in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// As they stand in each file.
    Never,
    /// Those of weir's own captures, which are in order queue by queue only: as far as queues are apart.
    ByQueue,
    /// The same, however far: files are read once to look at their order.
    Looked,
    /// All, as far as they are apart by less than this.
    Within(Duration),
}

/// More files than this are not held open.
const MOST_OPEN: u64 = 64;

/// How far the queues of a capture that keeps up are apart in its file: they are handed over five times a second.
const QUEUES_APART: Duration = Duration::from_secs(1);

/// Whether a file may be in order queue by queue only. What comes by a pipe may be a capture that goes on: its packets
/// are not to wait for others.
fn by_queue(reader: &Reader) -> bool {
    let ours = |name: &String| name.starts_with("weir ");
    reader.size().is_some()
        && reader.sections().iter().any(|section| section.user_application.as_ref().is_some_and(ours))
}

/// The files of the command line.
#[derive(Debug)]
pub(crate) enum Input {
    /// As it is, the fastest way.
    One(Box<Reader>),
    /// Several, or one whose packets are put in order.
    Merged(Box<Merge>),
}

impl Input {
    /// `sort`: how far packets may be apart from their place in the order of time. `filter`: which are wanted.
    pub(crate) fn open(paths: &[PathBuf], sort: Sort, filter: Option<&FileFilter>) -> Result<Self, Failure> {
        let open = |path: &PathBuf, sparing: bool| {
            let opened = if sparing { Reader::open_sparing(path) } else { Reader::open(path) };
            let reader = opened.map_err(|error| unopened(error, paths))?;
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

    /// Whether a file may be in order queue by queue only.
    pub(crate) fn is_by_queue(&self) -> bool {
        self.readers().into_iter().any(by_queue)
    }

    /// What comes next. After an error there may be more: of the other files.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Item<'_>>, ReadError> {
        match self {
            Self::One(reader) => reader.next(),
            Self::Merged(merge) => merge.next(),
        }
    }

    /// The file, if it is one and stays as it is.
    pub(crate) fn one(&self) -> Option<&Reader> {
        match self {
            Self::One(reader) => Some(reader),
            Self::Merged(_) => None,
        }
    }

    /// Packets of a file that stays as it is, as they stand there; `None`: [`next`](Self::next) has them.
    #[inline]
    pub(crate) fn next_run(&mut self) -> Option<Run<'_>> {
        match self {
            Self::One(reader) => reader.next_run(),
            Self::Merged(_) => None,
        }
    }

    pub(crate) fn interfaces(&self) -> &[FileInterface] {
        match self {
            Self::One(reader) => reader.interfaces(),
            Self::Merged(merge) => merge.interfaces(),
        }
    }

    fn readers(&self) -> Vec<&Reader> {
        match self {
            Self::One(reader) => vec![reader],
            Self::Merged(merge) => merge.readers().collect(),
        }
    }

    /// Bytes in all, where all are known.
    pub(crate) fn size(&self) -> Option<u64> {
        self.readers().iter().map(|reader| reader.size()).sum()
    }

    /// How far the reading of each file is.
    pub(crate) fn meters(&self) -> Vec<Meter> {
        self.readers().iter().map(|reader| reader.meter()).collect()
    }

    /// What the starts of the files say; `None`: none is pcapng.
    pub(crate) fn section(&self) -> Option<Section> {
        let mut sections = self.readers().into_iter().filter_map(|reader| reader.sections().first());
        let mut all = sections.next()?.clone();
        sections.for_each(|section| all.add(section));
        Some(all)
    }

    /// The comments of sections that have begun since: options of pcapng. `told`: how many of each file are known already.
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

    /// The first file: what it is, a new one shall be.
    pub(crate) fn first(&self) -> Option<&Reader> {
        self.readers().first().copied()
    }

    /// Whether an interface so far counts time in less than microseconds.
    pub(crate) fn fine(&self) -> bool {
        let finer = |unit: TimeUnit| match unit.resolution() {
            // Powers of ten, and of two (pcapng, `if_tsresol`).
            decimal @ 0..0x80 => decimal > 6,
            binary => binary & 0x7f > 19,
        };
        self.readers().iter().any(|reader| (0..).map_while(|number| reader.time_unit(number)).any(finer))
    }

    /// What was odd, with the file's name.
    pub(crate) fn warnings(&self) -> Vec<(&str, &Warning)> {
        let readers = self.readers().into_iter();
        readers.flat_map(|reader| reader.warnings().iter().map(|warning| (reader.name(), warning))).collect()
    }

    /// Packets that a filter did not want.
    pub(crate) fn filtered(&self) -> u64 {
        self.readers().iter().map(|reader| reader.filtered()).sum()
    }

    /// Packets that could not be put in order.
    pub(crate) fn late(&self) -> u64 {
        match self {
            Self::One(_) => 0,
            Self::Merged(merge) => merge.late(),
        }
    }
}

/// Puts files of weir in order that are not, queue by queue. Others stay as they are.
fn in_order(
    mut readers: Vec<Reader>,
    paths: &[PathBuf],
    open: impl Fn(&PathBuf, bool) -> Result<Reader, Failure>,
) -> Result<Input, Failure> {
    let mut unsorted = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        // Standard input may be a file, of which another reader would take a part away.
        if !by_queue(&readers[number]) || path == Path::new("-") {
            continue;
        }
        let order = Order::of(Reader::open_sparing(path).map_err(|error| unopened(error, paths))?);
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

/// A file that cannot be opened. Where others were named before it, it may be the first word of a filter.
fn unopened(error: ReadError, paths: &[PathBuf]) -> Failure {
    let missing = matches!(&error.reason, ReadReason::Open(error) if error.kind() == io::ErrorKind::NotFound);
    let failure = failure(error);
    match missing && paths.len() > 1 {
        true => failure.hint("a filter stands behind --: weir read FILE -- tcp port 80"),
        false => failure,
    }
}
