//! Finished files below a directory.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file. Names and times are those that it had when it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finished {
    /// Below the directory.
    pub(super) path: PathBuf,
    /// In bytes.
    pub(super) size: u64,
    /// When it was last written, in nanoseconds since the Unix epoch.
    pub(super) modified: i128,
}

impl Finished {
    /// Returns whether the file is still what it was.
    pub(super) fn is(&self, now: &Metadata) -> bool {
        (self.size, self.modified) == (now.size(), modified(now))
    }
}

fn modified(metadata: &Metadata) -> i128 {
    i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())
}

/// Returns the finished files below `dir`, oldest first. Hidden ones are not finished. Directories and files that go away
/// meanwhile are no problem; others are told.
pub(super) fn finished(dir: &Path, tell: &mut impl FnMut(String)) -> Vec<Finished> {
    let mut all = Vec::new();
    let mut left = vec![PathBuf::new()];
    while let Some(below) = left.pop() {
        let full = dir.join(&below);
        let entries = match fs::read_dir(&full) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound && below != Path::new("") => continue,
            Err(error) => {
                tell(format!("cannot list {}: {error}", full.display()));
                continue;
            }
        };
        for entry in entries.filter_map(Result::ok).filter(is_visible) {
            let path = below.join(entry.file_name());
            // Links are not followed: they might lead out of the directory.
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => left.push(path),
                Ok(metadata) if metadata.is_file() => {
                    all.push(Finished { path, size: metadata.size(), modified: modified(&metadata) });
                }
                _ => {}
            }
        }
    }
    all.sort_by(|one, other| (one.modified, &one.path).cmp(&(other.modified, &other.path)));
    all
}

fn is_visible(entry: &DirEntry) -> bool {
    !entry.file_name().as_encoded_bytes().starts_with(b".")
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn hidden_files_and_links_are_not_finished() {
        let dir = tempfile::tempdir().expect("a directory");
        for (second, name) in ["b/y", "a/x", ".c/z", "a/.x.tmp", ".weir-shipped"].into_iter().enumerate() {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
            let written = UNIX_EPOCH + Duration::from_secs(second as u64);
            File::create(path).and_then(|file| file.set_modified(written)).expect("a file");
        }
        symlink("/etc", dir.path().join("d")).expect("a link");
        symlink("/etc/passwd", dir.path().join("e")).expect("a link");
        let found = finished(dir.path(), &mut |problem| panic!("{problem}"));
        let paths: Vec<_> = found.iter().map(|file| file.path.to_str().expect("text")).collect();
        assert_eq!(paths, ["b/y", "a/x"]);
        let mut told = Vec::new();
        assert!(finished(&dir.path().join("none"), &mut |problem| told.push(problem)).is_empty());
        assert_eq!(told.len(), 1, "{told:?}");
    }
}
