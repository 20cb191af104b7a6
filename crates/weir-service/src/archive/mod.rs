//! A directory that gets files as they are finished, in folders that are made as needed. Until then a file has a hidden name.
//!
//! ```text
//! program: nobody, no directory   -- begin, finish, discard -->   weir-archive: the user's rights, that directory
//!                                 <-- a descriptor ------------
//! ```
//!
//! A confined program asks a helper process, which makes folders, and creates and renames files, and does nothing else. It never
//! overwrites a finished file, nor removes one.

mod answer;
mod folders;

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use weir_sys::fork::{Forked, fork};
use weir_sys::user::User;

use self::answer::{Answer, Ask};
use self::folders::Folders;
use crate::Error;
use crate::broker::wire::{receive, send};

/// A directory that gets finished files.
#[derive(Debug)]
pub struct Archive {
    directory: PathBuf,
    keeper: Keeper,
}

/// Who creates and renames files.
#[derive(Debug)]
enum Keeper {
    /// This process.
    Own(Folders),
    /// A helper process, asked one request at a time.
    Helper(Mutex<Forked>),
}

impl Archive {
    /// Prepares a directory for files, and makes it if it is missing. If the process is to be confined later (`confined`), a helper
    /// process starts, before this one has other threads.
    ///
    /// # Errors
    ///
    /// If the directory cannot be made or written, or the process does not start.
    pub fn new(directory: &Path, confined: bool) -> Result<Self, Error> {
        Self::new_as(directory, confined, None)
    }

    /// `user`: who owns the directory, if it is made here, and its files; `None`: the user who started the program.
    pub(crate) fn new_as(directory: &Path, confined: bool, user: Option<&User>) -> Result<Self, Error> {
        let failed = |error| Error::Archive { directory: directory.to_owned(), error };
        make(directory, user).map_err(failed)?;
        let folders = Folders::new(directory);
        if !confined {
            let checked = user.is_none().then(|| folders.check());
            checked.transpose().map_err(failed)?;
            return Ok(Self { directory: directory.to_owned(), keeper: Keeper::Own(folders) });
        }
        let process = fork(c"weir-archive", |socket| answer::keep(&folders, user, &socket));
        let process = process.map_err(|error| Error::ArchiveHelper(error.to_string()))?;
        match receive(process.socket()) {
            Ok(Some((Answer::Done, _))) => {}
            Ok(Some((Answer::Errno(errno), _))) => return Err(failed(io::Error::from_raw_os_error(errno))),
            Ok(Some((Answer::Refused(why), _))) => return Err(Error::ArchiveHelper(why)),
            Ok(_) => return Err(Error::ArchiveHelper("it has ended".to_owned())),
            Err(error) => return Err(Error::ArchiveHelper(error.to_string())),
        }
        Ok(Self { directory: directory.to_owned(), keeper: Keeper::Helper(Mutex::new(process)) })
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Creates a file that will have this name, a path within the directory, once it is [finished](Self::finish). Its folders are made
    /// if they are missing. Meanwhile its last name is `.NAME.tmp`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AlreadyExists`] if a file has one of the names; errors of the kernel.
    pub fn begin(&self, name: &Path) -> io::Result<File> {
        match &self.keeper {
            Keeper::Own(folders) => folders.begin(name),
            Keeper::Helper(process) => match ask(process, &Ask::Begin { name: bytes(name) })? {
                (Answer::Done, Some(file)) => Ok(file),
                (answer, _) => Err(error(answer)),
            },
        }
    }

    /// Gives a file its name. The file must be on disk already; afterwards, so is its name.
    ///
    /// # Errors
    ///
    /// Errors of the kernel. The file keeps its hidden name.
    pub fn finish(&self, name: &Path) -> io::Result<()> {
        match &self.keeper {
            Keeper::Own(folders) => folders.finish(name),
            Keeper::Helper(process) => done(process, &Ask::Finish { name: bytes(name) }),
        }
    }

    /// Removes a file that is not finished.
    ///
    /// # Errors
    ///
    /// Errors of the kernel. That it is gone already is none.
    pub fn discard(&self, name: &Path) -> io::Result<()> {
        match &self.keeper {
            Keeper::Own(folders) => folders.discard(name),
            Keeper::Helper(process) => done(process, &Ask::Discard { name: bytes(name) }),
        }
    }
}

/// Makes the directory if it is missing, for the user who will fill it.
fn make(directory: &Path, user: Option<&User>) -> io::Result<()> {
    match fs::metadata(directory) {
        Ok(there) if there.is_dir() => return Ok(()),
        Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => fs::create_dir_all(directory)?,
    }
    match user {
        Some(user) => std::os::unix::fs::chown(directory, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}

fn bytes(name: &Path) -> Vec<u8> {
    name.as_os_str().as_bytes().to_vec()
}

fn ask(process: &Mutex<Forked>, ask: &Ask) -> io::Result<(Answer, Option<File>)> {
    let gone = || io::Error::other("the helper process that creates files (weir-archive) has ended");
    let process = process.lock().unwrap_or_else(PoisonError::into_inner);
    send(process.socket(), ask, None).map_err(|_| gone())?;
    let (answer, file) = receive(process.socket())?.ok_or_else(gone)?;
    Ok((answer, file.map(File::from)))
}

fn done(process: &Mutex<Forked>, request: &Ask) -> io::Result<()> {
    match ask(process, request)?.0 {
        Answer::Done => Ok(()),
        answer => Err(error(answer)),
    }
}

/// Converts a negative or unexpected answer to an error.
fn error(answer: Answer) -> io::Error {
    match answer {
        Answer::Errno(errno) => io::Error::from_raw_os_error(errno),
        Answer::Refused(why) => io::Error::new(io::ErrorKind::PermissionDenied, why),
        Answer::Done => io::ErrorKind::InvalidData.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use weir_sys::fork::in_a_test;

    use super::*;

    /// Does the same with and without a helper process.
    fn both(work: impl Fn(&Path, &Archive)) {
        for confined in [false, true] {
            let place = tempfile::tempdir().expect("a directory");
            let directory = place.path().join("new/flows");
            let said = in_a_test(|| {
                let archive = Archive::new(&directory, confined).expect("a directory");
                work(&directory, &archive);
                "well".to_owned()
            });
            assert_eq!(said, "well", "confined: {confined}");
        }
    }

    #[test]
    fn a_file_has_its_name_when_it_is_finished_and_is_never_replaced() {
        both(|directory, archive| {
            let name = Path::new("day=1/hour=2/a.txt");
            let (file, hidden) = (directory.join(name), directory.join("day=1/hour=2/.a.txt.tmp"));
            archive.begin(name).expect("a file").write_all(b"whole").expect("room");
            assert!(!file.exists() && hidden.exists());
            let again = archive.begin(name).map_err(|error| error.kind());
            assert_eq!(again.map(drop), Err(io::ErrorKind::AlreadyExists));
            archive.finish(name).expect("a name");
            assert_eq!(fs::read(&file).expect("a file"), b"whole");
            assert!(!hidden.exists());
            let again = archive.begin(name).map_err(|error| error.kind());
            assert_eq!(again.map(drop), Err(io::ErrorKind::AlreadyExists));
            assert!(!hidden.exists());
            // Not even if somebody else has been faster.
            let other = Path::new("b.txt");
            drop(archive.begin(other).expect("a file"));
            fs::write(directory.join("b.txt"), "mine").expect("room");
            assert_eq!(
                archive.finish(other).map_err(|error| error.kind()),
                Err(io::ErrorKind::AlreadyExists)
            );
            archive.discard(other).expect("it can be removed");
            archive.discard(other).expect("it is gone");
            assert!(!directory.join(".b.txt.tmp").exists());
            assert_eq!(fs::read(directory.join("b.txt")).expect("a file"), b"mine");
        });
    }

    #[test]
    fn nothing_is_written_outside_nor_through_links() {
        both(|directory, archive| {
            let elsewhere = directory.parent().expect("a parent").join("elsewhere");
            fs::create_dir(&elsewhere).expect("room");
            std::os::unix::fs::symlink(&elsewhere, directory.join("link=1")).expect("room");
            for name in ["../a.txt", "/tmp/a.txt", "", ".a.txt", "day=1/.hidden/a.txt", "link=1/a.txt"] {
                assert!(archive.begin(Path::new(name)).is_err(), "{name}");
                assert!(archive.discard(Path::new(name)).is_err(), "{name}");
            }
            assert_eq!(fs::read_dir(&elsewhere).expect("a directory").count(), 0);
        });
    }

    #[test]
    fn a_directory_that_has_gone_is_an_error_each_time() {
        both(|directory, archive| {
            let name = Path::new("day=1/a.txt");
            drop(archive.begin(name).expect("a file"));
            fs::remove_dir_all(directory).expect("it is ours");
            assert_eq!(archive.finish(name).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
            archive.discard(name).expect("it is gone");
            let again = archive.begin(name).map(drop).map_err(|error| error.kind());
            assert_eq!(again, Err(io::ErrorKind::NotFound));
        });
    }

    #[test]
    fn what_is_no_directory_is_told_at_once() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let told = Archive::new(file.path(), false).map(drop).map_err(|error| error.to_string());
        assert!(told.is_err_and(|told| told.starts_with("cannot write files to ")));
    }
}
