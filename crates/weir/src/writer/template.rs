//! The pattern of the file names of a run, and the files of earlier runs that match it.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::fmt::strtime::{self, BrokenDownTime};

use super::{names, path_resolution};
use crate::reader::{FileKind, Reader};

/// How many bytes of a file are read to find out which program wrote it.
const START: u64 = 1 << 20;

/// The file names that a path stands for: times in place of `%` conversions, and a number.
#[derive(Debug, Clone)]
pub struct Template {
    path: PathBuf,
    strftime: bool,
    numbered: bool,
    /// Number of files in the ring, if limited.
    ring: Option<u32>,
    /// The name of the program that writes, without its version.
    program: String,
}

/// An existing file: written by an earlier run, or merely named like it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The path of the file.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last write.
    pub modified: SystemTime,
    /// Whether the file is being written now.
    pub locked: bool,
    /// Whether the same program captured it, under a name that this run could use. All other files are left alone.
    pub ours: bool,
}

impl Template {
    /// `numbered`: there can be a second file; `ring`: how many are kept; `application`: name and version of the program.
    pub(super) fn of(
        path: &Path,
        strftime: bool,
        numbered: bool,
        ring: Option<u32>,
        application: &str,
    ) -> Self {
        Self { path: path.to_owned(), strftime, numbered, ring, program: program(application).to_owned() }
    }

    /// Returns the path of the template.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether matching names can be told from all others. Some conversions are ambiguous (`%Z`).
    pub fn is_exact(&self) -> bool {
        self.path.iter().all(|part| !self.has_time(part) || reads_back(part))
    }

    /// Returns whether `path` may match. In case of doubt it does: see [`is_exact`](Self::is_exact).
    pub fn matches(&self, path: &Path) -> bool {
        let (parts, names) = (self.path.iter(), path.iter());
        let last = parts.clone().count().saturating_sub(1);
        parts.clone().count() == names.clone().count()
            && parts
                .zip(names)
                .enumerate()
                .all(|(n, (part, name))| self.part_matches(part, name, n == last).is_some())
    }

    /// Returns the number in a matching name.
    pub(super) fn number(&self, path: &Path) -> Option<u64> {
        self.part_matches(self.path.file_name()?, path.file_name()?, true)
    }

    /// Lists the existing files with matching names, oldest first.
    pub(super) fn list(&self) -> io::Result<Vec<Found>> {
        if !self.is_exact() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let parts: Vec<&OsStr> = self.path.iter().collect();
        let steady = parts.len().min(parts.iter().position(|part| self.has_time(part)).unwrap_or(usize::MAX));
        let steady = steady.min(parts.len().saturating_sub(1));
        let start: PathBuf = parts.get(..steady).unwrap_or_default().iter().collect();
        self.list_in(&start, parts.get(steady..).unwrap_or_default(), &mut found)?;
        if let Some(end) = self.end_of_ring(&found) {
            for file in &mut found {
                file.ours &= self.number(&file.path).is_some_and(|number| number < end);
            }
        }
        found.sort_by(|a, b| {
            let key = |file: &Found| (file.modified, file.path.as_os_str().len());
            key(a).cmp(&key(b)).then_with(|| a.path.cmp(&b.path))
        });
        Ok(found)
    }

    fn list_in(&self, directory: &Path, parts: &[&OsStr], found: &mut Vec<Found>) -> io::Result<()> {
        let Some((part, rest)) = parts.split_first() else { return Ok(()) };
        if !rest.is_empty() && !self.has_time(part) {
            return self.list_in(&directory.join(part), rest, found);
        }
        let entries =
            match fs::read_dir(if directory.as_os_str().is_empty() { Path::new(".") } else { directory }) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                entries => entries?,
            };
        let us = rustix::process::geteuid().as_raw();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            if !self.is_alike(part, &name, rest.is_empty()) {
                continue;
            }
            let path = directory.join(&name);
            // Links are not followed, and the file may be gone by now.
            let Ok(there) = entry.metadata() else { continue };
            if !rest.is_empty() {
                if there.is_dir() {
                    self.list_in(&path, rest, found)?;
                }
                continue;
            }
            let ours = self.part_matches(part, &name, true).is_some() && there.is_file() && there.uid() == us;
            let locked = ours && path_resolution::is_locked(&path);
            // A file that is being written may have no header yet.
            let is_marked = ours && self.needs_mark(part, &name);
            let ours =
                ours && (locked && (!is_marked || there.len() == 0) || self.has_written(&path, is_marked));
            found.push(Found { path, bytes: there.len(), modified: there.modified()?, locked, ours });
        }
        Ok(())
    }

    /// Returns the end of the numbers in a ring whose names only differ by number: each name taken by another file
    /// makes it one higher.
    fn end_of_ring(&self, found: &[Found]) -> Option<u64> {
        let files = self.ring.filter(|_| !self.path.iter().any(|part| self.has_time(part)))?;
        let others = found.iter().filter(|file| !file.ours);
        let mut taken: Vec<u64> = others.filter_map(|file| self.number(&file.path)).collect();
        taken.sort_unstable();
        Some(taken.iter().fold(files.into(), |end, &number| if number < end { end + 1 } else { end }))
    }

    /// Returns whether the file's header is from this program, and says that the file is one of several, if it has to be
    /// `marked`. A pcap file does not say which program wrote it.
    fn has_written(&self, path: &Path, marked: bool) -> bool {
        let Ok(file) = path_resolution::look(path) else { return false };
        let Ok(reader) = Reader::from_read(Box::new(file.take(START)), "") else { return false };
        let by = reader.sections().first().and_then(|section| section.user_application.as_deref());
        let by = by.unwrap_or_default();
        let is_pcap = matches!(reader.format().kind, FileKind::Pcap(_));
        if marked {
            program(by) == self.program && by.ends_with(names::OF_A_RING)
        } else {
            is_pcap || program(by) == self.program
        }
    }

    fn has_time(&self, part: &OsStr) -> bool {
        self.strftime && part.as_bytes().contains(&b'%')
    }

    /// Returns the number in `name`, 0 without one, if `name` matches this `part` of the path.
    fn part_matches(&self, part: &OsStr, name: &OsStr, is_last: bool) -> Option<u64> {
        let width = self.ring.map(names::width);
        self.digits(part, name, is_last, |digits| {
            let number = if digits.is_empty() { 0 } else { digits.parse().ok()? };
            (!(is_last && self.numbered) || names::digits(number, width) == digits).then_some(number)
        })
    }

    /// Returns whether `name` has a number before `.pcapng`, as people's own files may have.
    fn needs_mark(&self, part: &OsStr, name: &OsStr) -> bool {
        let ends_so = name.as_bytes().ends_with(names::split(part).1.as_bytes());
        names::is_of_a_kind(part)
            && ends_so
            && self.number_of(part, name).is_some_and(|number| !number.is_empty())
    }

    /// Returns the digits of the number in `name`, which is the last part of a path.
    fn number_of(&self, part: &OsStr, name: &OsStr) -> Option<String> {
        self.digits(part, name, true, |digits| Some(digits.to_owned()))
    }

    /// Returns whether `name` matches with any digits as its number.
    fn is_alike(&self, part: &OsStr, name: &OsStr, is_last: bool) -> bool {
        self.digits(part, name, is_last, |_| Some(())).is_some()
    }

    /// Returns what `read` makes of the number in `name`.
    fn digits<T>(
        &self,
        part: &OsStr,
        name: &OsStr,
        is_last: bool,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        if !(is_last && self.numbered) {
            return self.stands_for(part, name).then(|| read(""))?;
        }
        // weir once put the number behind `.pcapng`: `ring.pcapng7`.
        let splits = [(names::split(part), true), (names::split_packed(part), false)];
        splits.into_iter().find_map(|((stem, suffix), separates)| {
            let bytes = name.as_bytes().strip_suffix(suffix.as_bytes())?;
            let digits = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            (0..=digits).find_map(|count| {
                let (before, digits) = bytes.split_at(bytes.len() - count);
                let digits = std::str::from_utf8(digits).ok()?;
                let whole = OsStr::from_bytes(before);
                let separator = |stem| if separates && count > 0 { names::separator(part, stem) } else { "" };
                let shorter = before.strip_suffix(b"_").map(OsStr::from_bytes);
                [(Some(whole), ""), (shorter, "_")].into_iter().find_map(|(name, between)| {
                    let name = name.filter(|name| separator(name) == between)?;
                    self.stands_for(stem, name).then(|| read(digits))?
                })
            })
        })
    }

    fn stands_for(&self, part: &OsStr, name: &OsStr) -> bool {
        if !self.has_time(part) {
            return part == name;
        }
        let (Some(format), Some(text)) = (part.to_str(), name.to_str()) else { return false };
        if matches!(text, "." | "..") {
            return false; // not a time, and it leaves the directory
        }
        if reads_back(part) { is_time(format, text) } else { is_like(format, text) }
    }
}

/// The name, given a name and a version.
fn program(application: &str) -> &str {
    application.split_whitespace().next().unwrap_or_default()
}

/// Returns whether `text` is exactly how `format` prints some time.
fn is_time(format: &str, text: &str) -> bool {
    let time = BrokenDownTime::parse(format, text);
    time.and_then(|time| time.to_string(format)).is_ok_and(|again| again == text)
}

/// Returns whether a time printed with `part` can be read back.
fn reads_back(part: &OsStr) -> bool {
    let Some(format) = part.to_str() else { return false };
    let now = names::local(SystemTime::now()).and_then(|now| strtime::format(format, &now));
    now.is_ok_and(|text| is_time(format, &text))
}

/// Returns whether `text` contains the literal parts of `format` in order.
fn is_like(format: &str, text: &str) -> bool {
    // Splits at the conversions, which may match anything.
    let mut letters = format.chars();
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    while let Some(letter) = letters.next() {
        if letter != '%' {
            piece.push(letter);
            continue;
        }
        match letters.find(|letter| letter.is_ascii_alphabetic() || *letter == '%') {
            Some('%') => piece.push('%'),
            _ => pieces.push(std::mem::take(&mut piece)),
        }
    }
    let Some(mut rest) = pieces.first().and_then(|first| text.strip_prefix(first.as_str())) else {
        return false;
    };
    for piece in pieces.iter().skip(1) {
        let Some(at) = rest.find(piece.as_str()) else { return false };
        rest = rest.get(at + piece.len()..).unwrap_or_default();
    }
    rest.ends_with(piece.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::Rotation;
    use super::*;
    use crate::writer::WriterOptions;

    fn template(path: &str) -> Template {
        let rotation = Rotation { size: Some(1), ..Rotation::default() };
        let options = WriterOptions { rotation, strftime: true, ..WriterOptions::default() };
        Template::new(Path::new(path), &options)
    }

    #[test]
    fn files_of_the_same_kind_and_no_others() {
        let table: [(&str, &[&str], &[&str]); 10] = [
            (
                "d/trace",
                &["d/trace", "d/trace1", "d/trace17"],
                &["d/trace0", "d/trace017", "d/trace.1", "d/tracex", "e/trace", "trace", "d/x/trace1"],
            ),
            (
                "t.pcapng.zst",
                &["t.pcapng.zst", "t3.pcapng.zst", "t.pcapng3.zst"],
                &["t.pcapng", "t.pcapng.zst3", "t.pcapng3", "t_3.pcapng.zst", "t3.pcapng3.zst"],
            ),
            (
                "eth0.pcapng",
                &["eth0.pcapng", "eth0_1.pcapng", "eth0.pcapng1"],
                &["eth01.pcapng", "eth1.pcapng", "eth0_.pcapng", "eth0_0.pcapng"],
            ),
            ("eth0_.pcapng", &["eth0_.pcapng", "eth0_1.pcapng"], &["eth0_1_1.pcapng", "eth0.pcapng"]),
            ("t.pcap", &["t.pcap", "t.pcap3"], &["t3.pcap", "t20241105.pcap"]),
            (
                "%Y/t-%m%d-%H%M%S.pcapng",
                &["2026/t-0102-030405.pcapng", "2026/t-0102-030405_12.pcapng", "2026/t-0102-030405.pcapng12"],
                &[
                    "2026/t-0102-0304.pcapng",
                    "2026/t-1302-030405.pcapng",
                    "2026/t-0102-03040512.pcapng",
                    "x/t-0102-030405.pcapng",
                    "2026/../authorized",
                ],
            ),
            ("t-%s", &["t-1700000000", "t-17000000001"], &["t-", "t-x", "authorized_keys"]),
            ("100%%", &["100%", "100%7"], &["100", "1007"]),
            ("t-%Z-%H", &["t-CET-07", "t-UTC-071"], &["u-CET-07", "authorized_keys"]),
            ("%Z/t", &["CET/t", "UTC/t1"], &["../t", "./t1"]),
        ];
        for (path, same, other) in table {
            let template = template(path);
            for name in same {
                assert!(template.matches(Path::new(name)), "{path}: {name}");
            }
            for name in other {
                assert!(!template.matches(Path::new(name)), "{path}: {name}");
            }
        }
        assert!(template("t-%Y%m%d-%H%M%S").is_exact() && !template("t-%Z").is_exact());
        assert_eq!(template("t").number(Path::new("t12")), Some(12));
        let rotation = Rotation { size: Some(1), files: Some(12), ..Rotation::default() };
        let ring = Template::new(Path::new("t"), &WriterOptions { rotation, ..WriterOptions::default() });
        let number = |name: &str| ring.number(Path::new(name));
        assert_eq!(["t00", "t07", "t11", "t123"].map(number), [Some(0), Some(7), Some(11), Some(123)]);
        assert_eq!(["t", "t7", "t007", "t0123"].map(number), [None; 4]);
        let single = Template::new(Path::new("one"), &WriterOptions::default());
        assert!(single.matches(Path::new("one")) && !single.matches(Path::new("one1")));
    }
}
