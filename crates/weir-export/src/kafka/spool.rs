//! Batches on disk, while brokers are away: files that grow at one end, and go away once all of their batches are sent.
//!
//! ```text
//! DIR/000000000001.spool   header, batch, batch, ...     oldest: sent first, removed when all of it is sent
//! DIR/000000000002.spool   header, batch, ba             newest: grows; an end that is torn is cut off
//! ```
//!
//! Each batch has its length and a checksum, and a byte that says whether it is sent, which is changed in place. A file begins with
//! what its messages are, because they are of no use elsewhere.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::wire::Own;

/// The beginning of each file.
const MAGIC: &[u8; 8] = b"weirspl1";
/// The header of a batch: length, checksum, run, ID, flows, and whether it is sent.
const HEADER: usize = 4 + 4 + 8 + 8 + 4 + 1;
const SENT_AT: u64 = HEADER as u64 - 1;
/// Files that a full spool has, about: they go away whole.
const FILES: u64 = 64;
/// The smallest and the largest size at which another file begins.
const FILE: [u64; 2] = [64 << 10, 1 << 30];
/// The longest batch.
const LONGEST: u32 = 64 << 20;
/// Waits so long for another process that ends.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two times that files go to the disk.
const SYNC: Duration = Duration::from_secs(1);

/// Why a spool cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpoolError {
    #[error("cannot use the spool {0}: {1}; try a directory that the user {user} may write, or that is not there yet", user = rustix::process::geteuid().as_raw())]
    File(PathBuf, io::Error),
    #[error("cannot use the spool {0}: another weir uses it; try another directory")]
    Taken(PathBuf),
    #[error(
        "cannot use the spool {0}: it holds messages for {1}; send those first, or try another directory"
    )]
    Other(PathBuf, String),
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    /// It is being sent.
    Flying,
    Sent,
}

#[derive(Debug)]
struct Record {
    /// Where it begins.
    at: u64,
    length: u32,
    run: u64,
    id: u64,
    flows: u32,
    state: State,
}

#[derive(Debug)]
struct Segment {
    number: u64,
    file: File,
    size: u64,
    records: Vec<Record>,
}

/// A batch of the spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    segment: u64,
    record: usize,
}

/// A batch that is to be sent.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) place: Place,
    /// It is of this run.
    pub(super) is_own: bool,
    pub(super) messages: Vec<u8>,
}

/// What was there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Of this run.
    pub(super) own: Vec<Own>,
    /// Flows of earlier runs, not sent.
    pub(super) earlier: u64,
    /// Bytes that were no batch, and are cut off.
    pub(super) torn: u64,
}

/// The spool. While it is open, nobody else uses it.
#[derive(Debug)]
pub(super) struct Spool {
    directory: PathBuf,
    /// What its messages are.
    label: String,
    run: u64,
    most: u64,
    segments: VecDeque<Segment>,
    /// The number of the next file.
    number: u64,
    /// Bytes of all files.
    size: u64,
    /// Batches that are not sent, and those of them that are not being sent either.
    left: u64,
    waiting: u64,
    /// Nothing of the newest file may follow: its end is unknown.
    is_closed: bool,
    synced: Instant,
    is_dirty: bool,
    _lock: File,
}

impl Spool {
    /// Opens a directory, which is made if it is missing. `most`: bytes of all files.
    pub(super) fn open(
        directory: &Path,
        label: &str,
        run: u64,
        most: u64,
    ) -> Result<(Self, Found), SpoolError> {
        let failed = |error| SpoolError::File(directory.to_owned(), error);
        match fs::DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let lock = options().open(directory.join(".lock")).map_err(failed)?;
        let began = Instant::now();
        while let Err(error) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK {
                return Err(failed(error.into()));
            } else if began.elapsed() > PATIENCE {
                return Err(SpoolError::Taken(directory.to_owned()));
            }
            sleep(Duration::from_millis(20));
        }
        let mut spool = Self {
            directory: directory.to_owned(),
            label: label.to_owned(),
            run,
            most,
            segments: VecDeque::new(),
            number: 1,
            size: 0,
            left: 0,
            waiting: 0,
            is_closed: true,
            synced: Instant::now(),
            is_dirty: false,
            _lock: lock,
        };
        let found = spool.scan()?;
        Ok((spool, found))
    }

    /// Reads what is there.
    fn scan(&mut self) -> Result<Found, SpoolError> {
        let failed = |error| SpoolError::File(self.directory.clone(), error);
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let number: Option<u64> =
                name.to_str().and_then(|name| name.strip_suffix(".spool")?.parse().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        let mut found = Found::default();
        for number in numbers {
            self.number = self.number.max(number + 1);
            let file = options().open(self.path(number)).map_err(failed)?;
            let (records, end) = match read(&file, &self.label).map_err(failed)? {
                Content::Records(records, end) => (records, end),
                Content::Other(label) => return Err(SpoolError::Other(self.directory.clone(), label)),
            };
            let size = file.metadata().map_err(failed)?.len();
            if size > end {
                found.torn += size - end;
                file.set_len(end).map_err(failed)?;
            }
            for record in &records {
                let is_sent = record.state == State::Sent;
                if record.run == self.run {
                    found.own.push(Own { id: record.id, flows: record.flows, is_sent });
                } else if !is_sent {
                    found.earlier += u64::from(record.flows);
                }
                self.left += u64::from(!is_sent);
            }
            self.size += end;
            self.segments.push_back(Segment { number, file, size: end, records });
        }
        self.waiting = self.left;
        // One for each run, so that what this one writes stands behind it.
        self.is_closed = true;
        self.tidy();
        Ok(found)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:012}.spool"))
    }

    /// Returns whether everything is sent.
    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Returns whether there is something to take.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Adds a batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::StorageFull`] with no number of the system's: it would be larger than it may be. Errors of the kernel. Nothing has
    /// changed then.
    pub(super) fn append(&mut self, id: u64, flows: u32, messages: &[u8]) -> io::Result<()> {
        let length = u32::try_from(messages.len()).ok().filter(|length| *length <= LONGEST);
        let length = length.ok_or(ErrorKind::InvalidInput)?;
        let mut bytes = Vec::with_capacity(HEADER + messages.len());
        bytes.extend(length.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.run.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(flows.to_le_bytes());
        let sum = checksum(&[&bytes[8..], messages]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        bytes.push(0);
        bytes.extend_from_slice(messages);
        let size = bytes.len() as u64;
        let header = MAGIC.len() as u64 + 2 + self.label.len() as u64;
        if self.size + size + header > self.most {
            return Err(ErrorKind::StorageFull.into());
        }
        let largest = (self.most / FILES).clamp(FILE[0], FILE[1]);
        if self.is_closed || self.segments.back().is_none_or(|last| last.size >= largest) {
            self.begin()?;
        }
        let Some(last) = self.segments.back_mut() else { return Err(ErrorKind::NotFound.into()) };
        if let Err(error) = last.file.write_all_at(&bytes, last.size) {
            // If that fails, too, the next batch goes to another file; the next run cuts this one.
            self.is_closed = last.file.set_len(last.size).is_err();
            return Err(error);
        }
        last.records.push(Record { at: last.size, length, run: self.run, id, flows, state: State::Waiting });
        last.size += size;
        self.size += size;
        self.left += 1;
        self.waiting += 1;
        self.is_dirty = true;
        Ok(())
    }

    /// Begins a file.
    fn begin(&mut self) -> io::Result<()> {
        if let Some(last) = self.segments.back() {
            last.file.sync_data()?;
        }
        let path = self.path(self.number);
        let file = options().create_new(true).open(&path)?;
        self.number += 1;
        let mut header = MAGIC.to_vec();
        header.extend(u16::try_from(self.label.len()).unwrap_or(u16::MAX).to_le_bytes());
        header.extend_from_slice(self.label.as_bytes());
        if let Err(error) = file.write_all_at(&header, 0) {
            let _it_is_empty = fs::remove_file(&path);
            return Err(error);
        }
        let size = header.len() as u64;
        self.segments.push_back(Segment { number: self.number - 1, file, size, records: Vec::new() });
        self.size += size;
        self.is_closed = false;
        self.is_dirty = true;
        Ok(())
    }

    /// Takes the oldest batch that is not being sent. `None`: there is none.
    ///
    /// # Errors
    ///
    /// Those of the kernel, and [`ErrorKind::InvalidData`] if it is not what was written. It is still there then.
    pub(super) fn take(&mut self) -> io::Result<Option<Taken>> {
        if self.waiting == 0 {
            return Ok(None);
        }
        for segment in &mut self.segments {
            let Some(index) = segment.records.iter().position(|record| record.state == State::Waiting) else {
                continue;
            };
            let record = &mut segment.records[index];
            let mut bytes = vec![0; HEADER + record.length as usize];
            segment.file.read_exact_at(&mut bytes, record.at)?;
            let messages = bytes.split_off(HEADER);
            if checksum(&[&bytes[8..HEADER - 1], &messages]).to_le_bytes() != bytes[4..8] {
                return Err(ErrorKind::InvalidData.into());
            }
            record.state = State::Flying;
            self.waiting -= 1;
            let place = Place { segment: segment.number, record: index };
            return Ok(Some(Taken { place, is_own: record.run == self.run, messages }));
        }
        Ok(None)
    }

    /// Gives up the oldest batch, which cannot be [taken](Self::take). Returns whether it is of this run, and its flows.
    pub(super) fn give_up(&mut self) -> Option<(bool, u32)> {
        let run = self.run;
        let found = self.segments.iter_mut().find_map(|segment| {
            let number = segment.number;
            let mut records = segment.records.iter().enumerate();
            let (index, record) = records.find(|(_, record)| record.state == State::Waiting)?;
            Some((Place { segment: number, record: index }, record.run == run, record.flows))
        });
        let (place, is_own, flows) = found?;
        self.waiting -= 1;
        self.sent(place);
        Some((is_own, flows))
    }

    /// Notes that a batch is sent.
    pub(super) fn sent(&mut self, place: Place) {
        let Some(segment) = self.segments.iter_mut().find(|segment| segment.number == place.segment) else {
            return;
        };
        let Some(record) = segment.records.get_mut(place.record) else { return };
        if record.state != State::Sent {
            self.left -= 1;
        }
        record.state = State::Sent;
        // If that fails, the next run sends it again.
        let _sent_twice = segment.file.write_all_at(&[1], record.at + SENT_AT);
        self.tidy();
    }

    /// Notes that a batch is not being sent any more, and is not sent.
    pub(super) fn back(&mut self, place: Place) {
        let Some(segment) = self.segments.iter_mut().find(|segment| segment.number == place.segment) else {
            return;
        };
        let Some(record) = segment.records.get_mut(place.record) else { return };
        if record.state == State::Flying {
            record.state = State::Waiting;
            self.waiting += 1;
        }
    }

    /// Removes files that are sent. Only the oldest go, and the newest if it is the last one left.
    fn tidy(&mut self) {
        while let Some(first) = self.segments.front() {
            if first.records.iter().any(|record| record.state != State::Sent) {
                break;
            }
            if fs::remove_file(self.path(first.number))
                .is_err_and(|error| error.kind() != ErrorKind::NotFound)
            {
                break;
            }
            self.size -= first.size;
            self.segments.pop_front();
        }
        self.is_closed |= self.segments.is_empty();
    }

    /// Has what was written on disk, now and then.
    pub(super) fn sync(&mut self, now: bool) {
        if !self.is_dirty || (!now && self.synced.elapsed() < SYNC) {
            return;
        }
        if let Some(last) = self.segments.back() {
            let _it_is_written = last.file.sync_data();
        }
        if let Ok(directory) = File::open(&self.directory) {
            let _it_is_written = directory.sync_all();
        }
        self.synced = Instant::now();
        self.is_dirty = false;
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    // Not through links, which whoever may write the directory could have put there.
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc_nofollow());
    options
}

fn libc_nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

/// What is in a file.
enum Content {
    /// Batches, and where the last whole one ends.
    Records(Vec<Record>, u64),
    /// Messages of another kind.
    Other(String),
}

fn read(file: &File, label: &str) -> io::Result<Content> {
    let size = file.metadata()?.len();
    let mut start = [0; 10];
    if size < start.len() as u64 {
        return Ok(Content::Records(Vec::new(), 0));
    }
    file.read_exact_at(&mut start, 0)?;
    if start[..8] != *MAGIC {
        return Ok(Content::Other("another program".to_owned()));
    }
    let mut name = vec![0; usize::from(u16::from_le_bytes([start[8], start[9]]))];
    let mut at = (start.len() + name.len()) as u64;
    if size < at {
        return Ok(Content::Records(Vec::new(), 0));
    }
    file.read_exact_at(&mut name, start.len() as u64)?;
    if name != label.as_bytes() {
        return Ok(Content::Other(String::from_utf8_lossy(&name).into_owned()));
    }
    let mut records = Vec::new();
    while size - at >= HEADER as u64 {
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, at)?;
        let short = |from: usize| {
            u32::from_le_bytes([header[from], header[from + 1], header[from + 2], header[from + 3]])
        };
        let long = |from: usize| u64::from(short(from)) | u64::from(short(from + 4)) << 32;
        let length = short(0);
        let end = at + HEADER as u64 + u64::from(length);
        if length > LONGEST || end > size {
            break;
        }
        let mut messages = vec![0; length as usize];
        file.read_exact_at(&mut messages, at + HEADER as u64)?;
        if checksum(&[&header[8..HEADER - 1], &messages]) != short(4) {
            break;
        }
        let state = if header[HEADER - 1] == 0 { State::Waiting } else { State::Sent };
        records.push(Record { at, length, run: long(8), id: long(16), flows: short(24), state });
        at = end;
    }
    Ok(Content::Records(records, at))
}

/// CRC-32C, of all pieces together.
fn checksum(pieces: &[&[u8]]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte: u8 = 0;
        loop {
            let (mut value, mut bit) = (byte as u32, 0);
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ 0x82f6_3b78 } else { value >> 1 };
                bit += 1;
            }
            table[byte as usize] = value;
            if byte == u8::MAX {
                break table;
            }
            byte += 1;
        }
    };
    let next = |sum: u32, byte: &u8| TABLE[usize::from(sum.to_le_bytes()[0] ^ byte)] ^ sum >> 8;
    !pieces.iter().flat_map(|piece| piece.iter()).fold(!0, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(directory: &Path, run: u64) -> (Spool, Found) {
        Spool::open(directory, "json for flows", run, 1 << 20).expect("it is ours")
    }

    fn all(spool: &mut Spool) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| spool.take().expect("it is whole")).map(|taken| taken.messages).collect()
    }

    fn files(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).expect("a directory").flatten().map(|entry| entry.path());
        let mut files: Vec<_> = entries.filter(|path| path.extension().is_some()).collect();
        files.sort();
        files
    }

    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(checksum(&[b"1234", b"56789"]), 0xe306_9283);
    }

    #[test]
    fn batches_come_in_order_and_stay_until_they_are_sent() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("spool");
        let (mut spool, found) = open(&directory, 1);
        assert_eq!(found, Found::default());
        for id in 0..10u8 {
            spool.append(id.into(), 3, &vec![id; 20 << 10]).expect("room");
        }
        assert!(files(&directory).len() > 1);
        let first = spool.take().expect("whole").expect("one");
        assert_eq!((first.messages[0], first.is_own), (0, true));
        spool.sent(first.place);
        let second = spool.take().expect("whole").expect("one");
        spool.back(second.place);
        drop(spool);

        let (mut spool, found) = open(&directory, 2);
        assert_eq!((found.earlier, found.own.len(), found.torn), (27, 0, 0));
        spool.append(0, 1, b"new").expect("room");
        for id in 1..10u8 {
            let taken = spool.take().expect("whole").expect("one");
            assert_eq!((taken.messages[0], taken.is_own), (id, false));
            spool.sent(taken.place);
        }
        drop(spool);
        // The same run goes on, in another process.
        let (mut spool, found) = open(&directory, 2);
        assert_eq!(found.own, [Own { id: 0, flows: 1, is_sent: false }]);
        assert_eq!(all(&mut spool), [b"new"]);
        let place = Place { segment: spool.segments[0].number, record: 0 };
        spool.sent(place);
        assert!(spool.is_empty() && files(&directory).is_empty());
        spool.append(1, 1, b"again").expect("room");
        assert_eq!(all(&mut spool), [b"again"]);
    }

    #[test]
    fn a_torn_end_is_cut_wherever_it_is_torn() {
        let place = tempfile::tempdir().expect("a directory");
        let (mut spool, _) = open(place.path(), 1);
        spool.append(0, 1, b"first").expect("room");
        spool.append(1, 1, b"second").expect("room");
        drop(spool);
        let file = files(place.path()).remove(0);
        let whole = fs::read(&file).expect("a file");
        let second = whole.len() - HEADER - b"second".len();
        for end in 0..whole.len() {
            fs::write(&file, &whole[..end]).expect("room");
            let (mut spool, found) = open(place.path(), 2);
            let expected: &[&[u8]] = if end < second { &[] } else { &[b"first"] };
            let first = second - HEADER - b"first".len();
            if end < second && end > first {
                assert_eq!(found.torn, (end - first) as u64, "cut at {end}");
            }
            assert_eq!(all(&mut spool), expected, "cut at {end}");
            // What comes next is found, too.
            spool.append(0, 1, b"next").expect("room");
            drop(spool);
            let (mut spool, found) = open(place.path(), 3);
            assert_eq!((all(&mut spool).pop().as_deref(), found.torn), (Some(&b"next"[..]), 0));
            drop(spool);
            files(place.path()).into_iter().for_each(|file| fs::remove_file(file).expect("it is ours"));
        }
        // A byte of the second batch is another one.
        for at in second..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x40;
            fs::write(&file, &changed).expect("room");
            let (mut spool, _) = open(place.path(), 2);
            let found = all(&mut spool);
            assert!(found == [b"first".to_vec()], "changed at {at}: {found:?}");
        }
    }

    #[test]
    fn a_full_spool_takes_nothing_more_until_something_is_sent() {
        let place = tempfile::tempdir().expect("a directory");
        let (mut spool, _) = open(place.path(), 1);
        let mut taken = 0;
        let error = loop {
            match spool.append(taken, 1, &[7; 10_000]) {
                Ok(()) => taken += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::StorageFull, None));
        let size: u64 = files(place.path()).iter().map(|file| file.metadata().expect("a file").len()).sum();
        assert!((100..=104).contains(&taken) && size <= 1 << 20, "{taken}, {size}");
        for _ in 0..20 {
            let taken = spool.take().expect("whole").expect("one");
            spool.sent(taken.place);
        }
        spool.append(taken, 1, &[7; 10_000]).expect("room");
    }

    #[test]
    fn a_full_disk_is_told_and_changes_nothing() {
        let place = tempfile::tempdir().expect("a directory");
        let (mut spool, _) = open(place.path(), 1);
        spool.append(0, 1, b"first").expect("room");
        let last = spool.segments.back_mut().expect("a file");
        let real = std::mem::replace(
            &mut last.file,
            File::options().write(true).open("/dev/full").expect("a device"),
        );
        assert_eq!(spool.append(1, 1, b"lost").map_err(|error| error.kind()), Err(ErrorKind::StorageFull));
        spool.segments.back_mut().expect("a file").file = real;
        spool.append(2, 1, b"second").expect("room");
        assert_eq!(all(&mut spool), [b"first".to_vec(), b"second".to_vec()]);
    }

    #[test]
    fn messages_of_another_kind_are_left_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let (mut spool, _) = open(place.path(), 1);
        spool.append(0, 1, b"first").expect("room");
        drop(spool);
        let told = Spool::open(place.path(), "protobuf for flows", 1, 1 << 20).map(|_| ());
        let told = told.map_err(|error| error.to_string());
        assert!(told.is_err_and(|told| told.contains("it holds messages for json for flows; send those")));
        assert_eq!(all(&mut open(place.path(), 2).0), [b"first"]);
    }
}
