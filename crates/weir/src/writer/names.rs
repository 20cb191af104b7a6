//! The names of the files of one run.
//!
//! A number is appended to the name: `trace`, `trace1`, `trace2`; in a ring of a hundred files `trace00` to `trace99`.
//! It goes before `.pcapng`, which tells programs what a file contains: `trace1.pcapng`, `trace1.pcapng.zst`. If it would
//! follow a digit there, an underscore separates the two: `eth0_1.pcapng`, `hour-15_1.pcapng`. People name files like
//! this, too, so the header of such a file says that it belongs to a ring (`template`). A pcap file has no place for
//! that: its number stays behind the suffix, as in tcpdump, where it is not mistaken for something else.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::{Compression, WriteError};

/// Follows the name of the program in the header of a file that is one of several.
pub(crate) const OF_A_RING: &str = " (ring)";

/// The suffix before which numbers go.
const KIND: &str = "pcapng";

/// Names each file of a run.
#[derive(Debug)]
pub(super) struct Names {
    /// The path as given.
    path: PathBuf,
    strftime: bool,
    /// The size of a ring; its files are numbered from 0.
    ring: Option<u32>,
    /// The previous name without its number, and that number.
    last: Option<(PathBuf, u64)>,
}

impl Names {
    /// `ring`: how many files are kept, if that is limited.
    pub(super) fn new(path: &Path, strftime: bool, ring: Option<u32>) -> Self {
        Self { path: path.to_owned(), strftime, ring, last: None }
    }

    /// Returns the candidate names for a file that begins at `time`, in order; names that exist are skipped.
    pub(super) fn next(
        &self,
        time: SystemTime,
    ) -> Result<impl Iterator<Item = Candidate> + use<>, WriteError> {
        let name = if self.strftime { expand(&self.path, time)? } else { self.path.clone() };
        let first = match &self.last {
            Some((last, number)) if *last == name => number + 1,
            _ => 0,
        };
        // The names of a ring repeat, unless they contain the time.
        let round = self.ring.filter(|_| name == self.path).map(u64::from);
        let width = self.ring.map(width);
        Ok((0..).map(move |attempt: u64| {
            let number = match round {
                Some(files) if attempt < files => (first + attempt) % files,
                // Other files have taken the names of the ring.
                Some(_) => attempt,
                None => first + attempt,
            };
            Candidate { path: numbered(&name, number, width), name: name.clone(), number }
        }))
    }

    /// Records the name of the latest file.
    pub(super) fn took(&mut self, candidate: &Candidate) {
        self.last = Some((candidate.name.clone(), candidate.number));
    }

    /// Continues after the number of the newest file of earlier runs, if only the number differs.
    pub(super) fn go_on_after(&mut self, number: u64) {
        self.last = Some((self.path.clone(), number));
    }
}

/// A possible file name.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    /// The name without the number.
    name: PathBuf,
    number: u64,
}

/// Number of digits in the names of a ring with `files` files.
pub(super) fn width(files: u32) -> usize {
    files.saturating_sub(1).max(1).ilog10() as usize + 1
}

/// Formats the number in a name; `width`: in a ring.
pub(super) fn digits(number: u64, width: Option<usize>) -> String {
    match width {
        None if number == 0 => String::new(),
        None => number.to_string(),
        Some(width) => format!("{number:0width$}"),
    }
}

/// Splits a name before `.pcapng` and the suffix of a compression.
pub(super) fn split(name: &OsStr) -> (&OsStr, &OsStr) {
    let (stem, packed) = split_packed(name);
    let kind = Path::new(stem).extension().filter(|kind| *kind == KIND);
    split_at_end(name, kind.map_or(0, |kind| kind.len() + 1) + packed.len())
}

/// Splits a name before the suffix of a compression.
pub(super) fn split_packed(name: &OsStr) -> (&OsStr, &OsStr) {
    let path = Path::new(name);
    let suffix = path.extension().filter(|_| Compression::of_name(path).is_some());
    split_at_end(name, suffix.map_or(0, |suffix| suffix.len() + 1))
}

/// Returns whether numbers go before `.pcapng`.
pub(super) fn is_of_a_kind(name: &OsStr) -> bool {
    split(name).1 != split_packed(name).1
}

fn split_at_end(name: &OsStr, length: usize) -> (&OsStr, &OsStr) {
    let (stem, suffix) = name.as_bytes().split_at(name.len() - length);
    (OsStr::from_bytes(stem), OsStr::from_bytes(suffix))
}

/// Returns what separates `stem` from a number behind it.
pub(super) fn separator(name: &OsStr, stem: &OsStr) -> &'static str {
    if is_of_a_kind(name) && stem.as_bytes().last().is_some_and(u8::is_ascii_digit) { "_" } else { "" }
}

fn numbered(name: &Path, number: u64, width: Option<usize>) -> PathBuf {
    let number = digits(number, width);
    if number.is_empty() {
        return name.to_owned();
    }
    let (stem, suffix) = split(name.as_os_str());
    let mut numbered = OsString::from(stem);
    numbered.push(separator(name.as_os_str(), stem));
    numbered.push(number);
    numbered.push(suffix);
    numbered.into()
}

/// Replaces the conversions in the path with parts of the local time.
fn expand(path: &Path, time: SystemTime) -> Result<PathBuf, WriteError> {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.contains(&b'%') {
        return Ok(path.to_owned());
    }
    let refused = |reason: String| WriteError::Pattern { path: path.to_owned(), reason };
    let text = path.to_str().ok_or_else(|| refused("it is not UTF-8".to_owned()))?;
    let zoned = local(time).map_err(|error| refused(error.to_string()))?;
    strtime::format(text, &zoned).map(PathBuf::from).map_err(|error| refused(error.to_string()))
}

/// Converts `time` to this machine's time zone.
pub(super) fn local(time: SystemTime) -> Result<Zoned, jiff::Error> {
    Ok(Timestamp::try_from(time)?.to_zoned(TimeZone::system()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn names(path: &str, files: Option<u32>) -> Names {
        Names::new(Path::new(path), true, files)
    }

    fn all(names: &mut Names, seconds: &[u64]) -> Vec<String> {
        let at = |seconds: &u64| {
            let mut names_then = names.next(UNIX_EPOCH + Duration::from_secs(*seconds)).unwrap();
            let candidate = names_then.next().unwrap();
            names.took(&candidate);
            candidate.path.display().to_string()
        };
        seconds.iter().map(at).collect()
    }

    #[test]
    fn numbers() {
        assert_eq!(all(&mut names("d/trace", None), &[0; 3]), ["d/trace", "d/trace1", "d/trace2"]);
        let ring = all(&mut names("trace.pcap", Some(3)), &[0; 5]);
        assert_eq!(ring, ["trace.pcap0", "trace.pcap1", "trace.pcap2", "trace.pcap0", "trace.pcap1"]);
        assert_eq!(all(&mut names("t", Some(10)), &[0; 2]), ["t0", "t1"]);
        assert_eq!(all(&mut names("t", Some(11)), &[0; 2]), ["t00", "t01"]);
        assert_eq!(all(&mut names("t", Some(1)), &[0; 2]), ["t0", "t0"]);
    }

    #[test]
    fn suffixes_that_say_what_a_file_contains_stay_the_last() {
        let table = [
            ("t.pcapng", "t1.pcapng"),
            ("t.pcapng.zst", "t1.pcapng.zst"),
            ("t.pcap", "t.pcap1"),
            ("t.pcap.gz", "t.pcap1.gz"),
            ("t.zst", "t1.zst"),
            ("10.0.0.1", "10.0.0.11"),
            ("d.pcap/t", "d.pcap/t1"),
            (".pcapng", ".pcapng1"),
            ("eth0.pcapng", "eth0_1.pcapng"),
            ("eth0.pcapng.lz4", "eth0_1.pcapng.lz4"),
            ("eth0", "eth01"),
        ];
        for (path, second) in table {
            assert_eq!(all(&mut names(path, None), &[0; 2]), [path, second]);
        }
        assert_eq!(all(&mut names("eth0.pcapng", Some(11)), &[0; 1]), ["eth0_00.pcapng"]);
    }

    #[test]
    fn a_number_only_where_the_time_repeats() {
        let found = all(&mut names("t-%s", None), &[5, 5, 6, 6, 7]);
        assert_eq!(found, ["t-5", "t-51", "t-6", "t-61", "t-7"]);
        let names = names("t-%M", None);
        let paths: Vec<_> = names.next(UNIX_EPOCH).unwrap().take(3).map(|candidate| candidate.path).collect();
        assert_eq!(paths, ["t-00", "t-001", "t-002"].map(PathBuf::from));
    }

    #[test]
    fn where_others_have_taken_the_names_of_a_ring_there_are_more() {
        let mut ring = names("t", Some(3));
        ring.go_on_after(1);
        let paths: Vec<_> = ring.next(UNIX_EPOCH).unwrap().take(5).map(|candidate| candidate.path).collect();
        assert_eq!(paths, ["t2", "t0", "t1", "t3", "t4"].map(PathBuf::from));
    }

    #[test]
    fn percent_signs() {
        assert_eq!(all(&mut names("100%%", None), &[0]), ["100%"]);
        let error = names("t-%", None).next(UNIX_EPOCH).map(drop).unwrap_err().to_string();
        assert!(error.contains("t-%") && error.contains("%%"), "{error}");
    }
}
