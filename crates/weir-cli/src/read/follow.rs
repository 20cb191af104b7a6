//! `--follow`: stays with a file that is being written, and moves along its ring.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use weir::filter::FileFilter;
use weir::reader::Reader;
use weir::{FileInterface, Packet};

use super::input::Input;
use super::pass::{Pass, pass};
use super::sink::{End, Sink};
use super::{ReadArgs, failure};
use crate::failure::Failure;

/// A file ends once a later one has begun and this one has not grown for so long: its last pieces may be on their way.
const SETTLED: Duration = Duration::from_millis(300);

/// Reads `path`, or the newest file of the ring with this name, and every file after it. `opened` is called once the filter
/// has its code.
pub(super) fn run(
    args: &ReadArgs,
    path: &Path,
    filter: Option<&FileFilter>,
    sink: impl Sink,
    opened: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut sink = Continued { sink, known: Vec::new(), numbers: Vec::new() };
    let mut path = if path.exists() { path.to_owned() } else { newest_of_ring(path) };
    let (mut choice, mut opened) = (None, Some(opened));
    loop {
        let later = Arc::<Mutex<Option<PathBuf>>>::default();
        let mut watch = Watch::new(&path, Arc::clone(&later));
        let reader = Reader::follow(&path, Box::new(move || watch.goes_on())).map_err(failure)?.pausing();
        let reader = filter.cloned().into_iter().fold(reader, Reader::filter);
        opened.take().map_or(Ok(()), |opened| opened())?;
        let mut reading = Pass::of(args, Input::One(Box::new(reader)));
        reading.choice = choice.unwrap_or(reading.choice);
        sink.numbers.clear();
        let result = pass(&mut reading, &mut sink);
        let later = later.lock().unwrap_or_else(PoisonError::into_inner).take();
        match later.filter(|_| !reading.choice.is_over()) {
            Some(later) => path = later,
            None => return result,
        }
        // A damaged file does not end the ring.
        if let Err(failure) = result {
            failure.report();
        }
        choice = Some(reading.choice);
    }
}

/// Looks for the file after the one that is read.
struct Watch {
    directory: PathBuf,
    /// What all names of the ring have in common.
    key: Vec<u8>,
    /// Device and inode of the file.
    file: Option<(u64, u64)>,
    path: PathBuf,
    modified: SystemTime,
    begin: Option<Begin>,
    /// The size of the file, and since when.
    size: (u64, Instant),
    later: Arc<Mutex<Option<PathBuf>>>,
}

impl Watch {
    fn new(path: &Path, later: Arc<Mutex<Option<PathBuf>>>) -> Self {
        Self {
            directory: directory(path),
            key: key(path),
            file: fs::metadata(path).ok().map(|there| (there.dev(), there.ino())),
            path: path.to_owned(),
            modified: SystemTime::UNIX_EPOCH,
            begin: None,
            size: (0, Instant::now()),
            later,
        }
    }

    /// Returns whether the file may still grow.
    fn goes_on(&mut self) -> bool {
        // One that was deleted has no name, but can be read to its end.
        if let Ok(there) = fs::metadata(&self.path)
            && self.file == Some((there.dev(), there.ino()))
        {
            self.modified = there.modified().unwrap_or(self.modified);
            if there.len() != self.size.0 {
                self.size = (there.len(), Instant::now());
            }
            if self.begin.as_ref().is_none_or(|begin| begin.first.is_none()) {
                self.begin = Begin::of(&self.path);
            }
        }
        let mut later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        if later.is_none() {
            *later = self.next();
        }
        later.is_none() || self.size.1.elapsed() < SETTLED
    }

    /// Returns the file of the ring whose first packet is the next after the first one of this file.
    fn next(&self) -> Option<PathBuf> {
        let begin = self.begin.as_ref()?;
        let files = alike(&self.directory, &self.key).into_iter();
        let files = files.filter(|(_, there)| {
            Some((there.dev(), there.ino())) != self.file
                && there.modified().is_ok_and(|modified| modified >= self.modified)
        });
        let begins = files.filter_map(|(path, _)| {
            let other = Begin::of(&path)?;
            let follows = other.interfaces == begin.interfaces && other.first > begin.first;
            follows.then_some((other.first, path))
        });
        begins.min().map(|(_, path)| path)
    }
}

/// How a file begins.
struct Begin {
    /// Names of the interfaces, which are the same in all files of a ring.
    interfaces: Vec<Option<String>>,
    /// Time of the first packet.
    first: Option<u64>,
}

impl Begin {
    /// `None`: the file is not a capture, or not yet.
    fn of(path: &Path) -> Option<Self> {
        let mut reader = Reader::open_sparing(path).ok()?;
        let first = reader.next_packet().ok().flatten().map(|packet| packet.timestamp);
        let interfaces = reader.interfaces().iter().map(|interface| interface.name.clone()).collect();
        Some(Self { interfaces, first })
    }
}

/// Returns the file of the ring `path` that was written last, or else `path`.
fn newest_of_ring(path: &Path) -> PathBuf {
    let files = alike(&directory(path), &key(path)).into_iter();
    let newest = files.max_by_key(|(_, there)| there.modified().unwrap_or(SystemTime::UNIX_EPOCH));
    newest.map_or_else(|| path.to_owned(), |(path, _)| path)
}

/// Returns the regular files in `directory` with this key.
fn alike(directory: &Path, key: &[u8]) -> Vec<(PathBuf, fs::Metadata)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| self::key(path) == key);
    let files = paths.filter_map(|path| fs::metadata(&path).ok().map(|there| (path, there)));
    files.filter(|(_, there)| there.is_file()).collect()
}

fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Returns a name without numbers, and without the conversions of a template: what the names of a ring have in common.
fn key(path: &Path) -> Vec<u8> {
    let mut key = Vec::new();
    let mut letters = path.file_name().map(OsStr::as_bytes).unwrap_or_default().iter();
    while let Some(letter) = letters.next() {
        match letter {
            b'%' => {
                letters.next();
            }
            b'0'..=b'9' | b'_' => {}
            letter => key.push(*letter),
        }
    }
    key
}

/// Files one after the other, as if they were one: an interface that was in an earlier file has its number.
struct Continued<S> {
    sink: S,
    known: Vec<FileInterface>,
    /// Numbers of the interfaces of the current file.
    numbers: Vec<u32>,
}

impl<S: Sink> Sink for Continued<S> {
    fn interface(&mut self, interface: &FileInterface, fine: bool) -> Result<(), End> {
        let number = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let same = (0..self.known.len())
            .find(|&place| self.known[place] == *interface && !self.numbers.contains(&number(place)));
        if same.is_none() {
            self.sink.interface(interface, fine)?;
            self.known.push(interface.clone());
        }
        self.numbers.push(number(same.unwrap_or(self.known.len() - 1)));
        Ok(())
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), End> {
        let interface = self.numbers.get(packet.interface as usize).copied().unwrap_or(packet.interface);
        self.sink.packet(&Packet { interface, ..*packet })
    }

    fn pause(&mut self) -> Result<(), End> {
        self.sink.pause()
    }

    fn finish(&mut self) -> Result<(), End> {
        self.sink.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_ring_have_something_in_common() {
        let same = |one: &str, other: &str| key(Path::new(one)) == key(Path::new(other));
        assert!(same("ring.pcapng", "d/ring07.pcapng") && same("eth0.pcapng", "eth0_1.pcapng"));
        assert!(same("day-%Y%m%d-%H%M.pcapng.zst", "day-20261121-1300.pcapng.zst"));
        assert!(!same("ring.pcapng", "rings.pcapng") && !same("ring.pcapng", "ring.pcap"));
    }
}
