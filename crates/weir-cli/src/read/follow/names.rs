//! The names of a ring's files, whoever writes them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Returns the file of the ring `path` that was written last, or else `path`.
pub(super) fn newest_of_ring(path: &Path) -> PathBuf {
    let files = alike(&directory(path), &key(path)).into_iter();
    let newest = files.max_by_key(|(_, there)| there.modified().unwrap_or(SystemTime::UNIX_EPOCH));
    newest.map_or_else(|| path.to_owned(), |(path, _)| path)
}

/// Returns the regular files in `directory` with this key.
pub(super) fn alike(directory: &Path, key: &[u8]) -> Vec<(PathBuf, fs::Metadata)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| self::key(path) == key);
    let files = paths.filter_map(|path| fs::metadata(&path).ok().map(|there| (path, there)));
    files.filter(|(_, there)| there.is_file()).collect()
}

pub(super) fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Returns a name without numbers, and without the conversions of a template: what the names of a ring have in common.
pub(super) fn key(path: &Path) -> Vec<u8> {
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

/// Returns the numbers in which two names differ; no number is 0. `None`: they differ in something else as well.
pub(super) fn numbers(one: &Path, other: &Path) -> Option<(u64, u64)> {
    let (one, other) = (one.file_name()?.as_bytes(), other.file_name()?.as_bytes());
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    // Numbers are compared from their first digit.
    let start = same - one[..same].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let number = |name: &[u8]| {
        let (number, rest) = name[start..].split_at(digits(&name[start..]));
        let number = if number.is_empty() { Some(0) } else { str::from_utf8(number).ok()?.parse().ok() };
        Some((number?, rest.to_owned()))
    };
    let ((one, rest), (other, same_rest)) = (number(one)?, number(other)?);
    (rest == same_rest).then_some((one, other))
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

    #[test]
    fn numbers_in_names_are_compared() {
        let numbers = |one: &str, other: &str| numbers(Path::new(one), Path::new(other));
        for (one, other, expected) in [
            ("d/ring0.pcapng", "d/ring1.pcapng", Some((0, 1))),
            ("ring.pcapng", "ring1.pcapng", Some((0, 1))),
            ("ring9.pcapng.lz4", "ring10.pcapng.lz4", Some((9, 10))),
            ("eth0_19.pcap", "eth0_18.pcap", Some((19, 18))),
            ("ring.pcap1", "ring.pcap1", Some((1, 1))),
            ("hour-15_2.pcap", "hour-16_3.pcap", None),
            ("ring.pcap", "rings.pcap", None),
        ] {
            assert_eq!(numbers(one, other), expected, "{one} {other}");
        }
    }
}
