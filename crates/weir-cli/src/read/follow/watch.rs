//! The file that is read, and the one after it in its ring.

use std::fs::{self, File};
use std::io::Seek as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use weir::FileInterface;
use weir::reader::{Meter, Reader};

use super::super::input::Input;
use super::super::note;
use super::names::{alike, directory, key, numbers};
use crate::style;

/// A file ends once a later one has begun and this one has not grown for so long: its last pieces may be on their way.
const SETTLED: Duration = Duration::from_millis(300);

/// Time between looks for another file in place of one that was deleted.
const PERIOD: Duration = Duration::from_millis(50);

/// Looks for the file after the one that is read.
pub(super) struct Watch {
    path: PathBuf,
    /// What all names of the ring have in common.
    key: Vec<u8>,
    /// The file itself, which a ring may delete while it is read. `None`: it is not a regular file.
    file: Option<File>,
    begin: Option<Begin>,
    /// When the file was written last, and its size.
    modified: SystemTime,
    size: u64,
    /// Since when the size is this.
    since: Instant,
    later: Option<PathBuf>,
}

impl Watch {
    pub(super) fn new(path: &Path) -> Self {
        let regular = fs::metadata(path).is_ok_and(|there| there.is_file());
        let file = regular.then(|| File::open(path).ok()).flatten();
        Self {
            path: path.to_owned(),
            key: key(path),
            begin: file.as_ref().and_then(Begin::of_file),
            file,
            modified: SystemTime::UNIX_EPOCH,
            size: 0,
            since: Instant::now(),
            later: None,
        }
    }

    /// Returns whether the file may still grow.
    pub(super) fn goes_on(&mut self) -> bool {
        if let Some(file) = &self.file
            && let Ok(there) = file.metadata()
            && !self.is_overwritten()
        {
            self.modified = there.modified().unwrap_or(self.modified);
            if there.len() != self.size {
                (self.size, self.since) = (there.len(), Instant::now());
            }
            if self.begin.as_ref().is_none_or(|begin| begin.first.is_none()) {
                self.begin = Begin::of_file(file);
            }
        }
        let mut later = self.after().into_iter();
        if self.later.is_none() {
            self.later = later.next();
        }
        // The clock of the file system may be another.
        let age = SystemTime::now().duration_since(self.modified).unwrap_or_default();
        let settled = age.max(self.since.elapsed()) >= SETTLED || later.next().is_some();
        self.later.is_none() || !settled
    }

    /// Returns whether the file was begun anew in its place.
    pub(super) fn is_overwritten(&self) -> bool {
        let (Some(begin), Some(file)) = (&self.begin, &self.file) else { return false };
        // It is short at first.
        begin.first.is_some() && Begin::of_file(file).is_none_or(|now| now.first != begin.first)
    }

    /// Returns the file to read after this one, which has ended.
    pub(super) fn take_later(&mut self) -> Option<PathBuf> {
        self.later.take()
    }

    /// Returns the files of the ring whose first packets come after the first one of this file, in this order.
    fn after(&self) -> Vec<PathBuf> {
        let Some(begin) = &self.begin else { return Vec::new() };
        let identity = |there: &fs::Metadata| (there.dev(), there.ino());
        let this = self.file.as_ref().and_then(|file| file.metadata().ok()).as_ref().map(identity);
        let files = alike(&directory(&self.path), &self.key).into_iter();
        let later = files.filter_map(|(path, there)| {
            let modified = there.modified().ok()?;
            if modified < self.modified {
                return None;
            }
            let other = Begin::of(&path).filter(|other| other.first.is_some())?;
            // The file itself comes after this one if it was begun anew, not if its first packet has just arrived.
            if Some(identity(&there)) == this && (begin.first.is_none() || other.first <= begin.first) {
                return None;
            }
            // Without timestamps, all packets have the same time. The last piece of a file may be written after the first one
            // of the next, which its number tells.
            let next = other.first == begin.first && self.is_before(&path);
            let number = numbers(&self.path, &path);
            let tie = (modified, number.map(|(_, other)| other));
            let own = (self.modified, number.map(|(own, _)| own));
            let follows = next || (other.first, tie) > (begin.first, own);
            (follows && other.interfaces == begin.interfaces).then_some((other.first, !next, tie, path))
        });
        let mut later: Vec<_> = later.collect();
        later.sort();
        later.into_iter().map(|(.., path)| path).collect()
    }

    /// Waits for a file after this one, in place of one that is gone.
    pub(super) fn another(&self) -> PathBuf {
        loop {
            match self.after().into_iter().next() {
                Some(path) => return path,
                None => thread::sleep(PERIOD),
            }
        }
    }

    /// Waits for a file after this one, which was begun anew. `read`: what was read of it before.
    pub(super) fn after_overwritten(&mut self, read: &Input) -> PathBuf {
        if self.begin.as_ref().is_none_or(|begin| begin.first.is_none()) {
            let first = read.meters().first().and_then(Meter::began);
            self.begin = first.map(|_| Begin { interfaces: Begin::names(read.interfaces()), first });
        }
        // Nothing was read: it starts over.
        if self.begin.is_some() { self.another() } else { self.path.clone() }
    }

    /// Says that packets may be missing between this file and `next`: the ring has deleted this one, and its name is not the
    /// one before that.
    pub(super) fn note_gap(&self, next: &Path) {
        let deleted =
            self.file.as_ref().is_some_and(|file| file.metadata().is_ok_and(|there| there.nlink() == 0));
        if !deleted || self.is_before(next) {
            return;
        }
        let name = |path: &Path| style::visible(&path.display().to_string());
        note(format_args!(
            "{} was deleted while it was read: packets between it and {} may be missing; try a larger ring",
            name(&self.path),
            name(next)
        ));
    }

    /// Returns whether the numbers in the names tell that no file was between this one and `next`.
    fn is_before(&self, next: &Path) -> bool {
        let highest = |own| {
            let files = alike(&directory(&self.path), &self.key);
            files.iter().all(|(path, _)| numbers(&self.path, path).is_none_or(|(_, other)| other <= own))
        };
        if self.path.file_name() == next.file_name() {
            return alike(&directory(&self.path), &self.key).len() == 1;
        }
        match numbers(&self.path, next) {
            // The numbers of a ring begin again.
            Some((own, 0)) => highest(own),
            Some((own, next)) => own.checked_add(1) == Some(next),
            None => false,
        }
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
        Self::read(Reader::open_sparing(path).ok()?)
    }

    /// The same, of a file that may have lost its name.
    fn of_file(mut file: &File) -> Option<Self> {
        file.rewind().ok()?;
        Self::read(Reader::from_read(Box::new(file.try_clone().ok()?), "").ok()?)
    }

    fn read(mut reader: Reader) -> Option<Self> {
        let first = reader.next_packet().ok().flatten().map(|packet| packet.timestamp);
        Some(Self { interfaces: Self::names(reader.interfaces()), first })
    }

    fn names(interfaces: &[FileInterface]) -> Vec<Option<String>> {
        interfaces.iter().map(|interface| interface.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(4_000_000_000);

    /// Writes a file with a packet, `written` as long after a moment that is yet to come.
    fn file(directory: &Path, name: &str, time: u32, written: Duration) -> PathBuf {
        // Version 2.4, 65535 bytes, Ethernet; then one packet of four bytes.
        let words = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 1, time, 0, 4, 4, 0];
        let path = directory.join(name);
        fs::write(&path, words.map(u32::to_le_bytes).concat()).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + written).unwrap();
        path
    }

    fn next(path: &Path) -> Option<PathBuf> {
        let mut watch = Watch::new(path);
        watch.goes_on();
        watch.take_later()
    }

    #[test]
    fn finished_files_end_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let first = file(directory, "r0.pcap", 1, Duration::from_secs(1000));
        assert!(Watch::new(&first).goes_on(), "nothing comes after it yet");
        file(directory, "r1.pcap", 2, Duration::from_secs(1000));
        assert!(!Watch::new(&first).goes_on(), "it is old");
        let first = file(directory, "r0.pcap", 1, NOW);
        file(directory, "r1.pcap", 2, NOW);
        file(directory, "r2.pcap", 3, NOW);
        assert!(!Watch::new(&first).goes_on(), "it is as good as new, but the next file has ended, too");
    }

    #[test]
    fn files_without_times_are_in_the_order_of_writing() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let second = Duration::from_secs(1);
        let ring = [("r2.pcap", 0), ("r3.pcap", 1), ("r0.pcap", 2), ("r1.pcap", 2)];
        let ring = ring.map(|(name, written)| file(directory, name, 0, NOW + written * second));
        for pair in ring.windows(2) {
            assert_eq!(next(&pair[0]).as_ref(), Some(&pair[1]));
        }
        assert_eq!(next(&ring[3]), None);
        // The last piece of r0 is late.
        file(directory, "r0.pcap", 0, NOW + 3 * second);
        assert_eq!(next(&ring[1]).as_ref(), Some(&ring[2]));
    }

    #[test]
    fn a_file_whose_first_packet_arrives_does_not_come_after_itself() {
        let directory = tempfile::tempdir().unwrap();
        let path = file(directory.path(), "all.pcap", 7, NOW);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..24]).unwrap();
        let watch = Watch::new(&path);
        fs::write(&path, whole).unwrap();
        assert_eq!(watch.after(), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_gap_is_told_from_the_names() {
        let directory = tempfile::tempdir().unwrap();
        let [zero, one, two] =
            ["r0.pcap", "r1.pcap", "r2.pcap"].map(|name| file(directory.path(), name, 0, NOW));
        assert!(Watch::new(&zero).is_before(&one) && Watch::new(&two).is_before(&zero));
        assert!(!Watch::new(&zero).is_before(&two) && !Watch::new(&one).is_before(&zero));
        assert!(!Watch::new(&one).is_before(&one), "the ring went round");
        fs::remove_file(&one).unwrap();
        fs::remove_file(&two).unwrap();
        assert!(Watch::new(&zero).is_before(&zero), "a ring of one file");
    }
}
