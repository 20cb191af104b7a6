//! The side of the capture: requests of its writer to the helper processes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use rustix::pipe::{PipeFlags, pipe_with};
use weir::parts::{FileBroker, Found, OpenedFile, Purpose, Refusal, Template};
use weir_sys::fork::Forked;

use super::Helpers;
use super::wire::{Answer, Ask, receive, send};

impl Helpers {
    fn files(&self) -> MutexGuard<'_, Forked> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, ask: &Ask) -> io::Result<(Answer, Option<OwnedFd>)> {
        let files = self.files();
        send(files.socket(), ask, None).map_err(|_| gone())?;
        receive(files.socket())?.ok_or_else(gone)
    }
}

fn gone() -> io::Error {
    io::Error::other("the helper process that opens files (weir-files) has ended")
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// Converts a negative or unexpected answer to an error.
fn refused(answer: Answer) -> Refusal {
    match answer {
        Answer::Errno(errno) => Refusal::Io(io::Error::from_raw_os_error(errno)),
        Answer::Link { owner } => Refusal::Link { owner },
        Answer::Foreign { owner } => Refusal::Foreign { owner },
        Answer::Unread => Refusal::Unread,
        Answer::NotOurs => Refusal::Io(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is not one of the files declared by this capture",
        )),
        _ => Refusal::Io(io::ErrorKind::InvalidData.into()),
    }
}

fn error(answer: Answer) -> io::Error {
    match refused(answer) {
        Refusal::Io(error) => error,
        _ => io::ErrorKind::PermissionDenied.into(),
    }
}

impl FileBroker for Helpers {
    fn open(&self, path: &Path, purpose: Purpose) -> Result<OpenedFile, Refusal> {
        match self.ask(&Ask::Open { path: bytes(path), purpose })? {
            (Answer::Opened { created, inherited }, Some(file)) => {
                Ok(OpenedFile { file: file.into(), created, inherited })
            }
            (answer, _) => Err(refused(answer)),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        match self.ask(&Ask::Remove { path: bytes(path) })? {
            (Answer::Removed, held) => Ok(held),
            (answer, _) => Err(error(answer)),
        }
    }

    fn directory(&self, path: &Path) -> io::Result<File> {
        match self.ask(&Ask::Directory { path: bytes(path) })? {
            (Answer::Directory, Some(directory)) => Ok(directory.into()),
            (answer, _) => Err(error(answer)),
        }
    }

    /// The process already has the same template.
    fn list(&self, _template: &Template) -> io::Result<Vec<Found>> {
        let files = self.files();
        send(files.socket(), &Ask::List, None).map_err(|_| gone())?;
        let mut found = Vec::new();
        loop {
            match receive(files.socket())?.ok_or_else(gone)?.0 {
                Answer::Found { path, bytes, modified, locked, ours } => {
                    let path = PathBuf::from(std::ffi::OsString::from_vec(path));
                    found.push(Found { path, bytes, modified: UNIX_EPOCH + modified, locked, ours });
                }
                Answer::ThatIsAll => return Ok(found),
                answer => return Err(error(answer)),
            }
        }
    }

    fn run(&self, _command: &OsStr, path: &Path) -> Result<(), String> {
        let said = || -> io::Result<String> {
            let runner = self.runner.as_ref().ok_or(io::ErrorKind::NotFound)?;
            let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
            {
                let runner = runner.lock().unwrap_or_else(PoisonError::into_inner);
                send(runner.socket(), &Ask::Run { path: bytes(path) }, Some(to.as_fd()))?;
            }
            drop(to);
            let mut said = String::new();
            File::from(from).read_to_string(&mut said)?;
            Ok(said)
        };
        match said() {
            Ok(said) if said == super::answer::WELL => Ok(()),
            Ok(said) if said.is_empty() => {
                Err("the helper process that runs it (weir-run) has ended".to_owned())
            }
            Ok(said) => Err(said),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        let _it_may_be_gone = send(self.files().socket(), &Ask::Leave, None);
        if let Some(sockets) = &self.sockets {
            let _it_may_be_gone = send(sockets.socket(), &Ask::Leave, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::sync::Arc;
    use std::time::Duration;

    use rustix::process::geteuid;
    use weir::writer::{Rotation, WriterOptions};
    use weir_sys::fork::in_a_test;
    use weir_sys::user::User;

    use super::*;

    /// What the helper processes do for a capture to `t-%s.pcapng` in `place`, which calls `command` for each file.
    fn with_helpers(command: Option<&str>, work: impl FnOnce(&Path, &Arc<Helpers>)) {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path();
        let said = in_a_test(|| {
            let rotation = weir::with!(Rotation::default(), size = Some(1));
            let command = command.map(Into::into);
            let options = weir::with!(WriterOptions::default(), rotation, strftime = true, command);
            let file = place.join("t-%s.pcapng");
            let helpers = Helpers::for_file(Some(&file), &options).expect("they start");
            work(place, &helpers.expect("a file needs them"));
            "well".to_owned()
        });
        assert_eq!(said, "well");
    }

    #[test]
    fn files_are_opened_listed_and_removed_by_another_process() {
        with_helpers(None, |place, helpers| {
            let template = Template::new(Path::new("-"), &WriterOptions::default());
            assert_eq!(helpers.list(&template).expect("an empty list"), []);
            let path = place.join("t-17.pcapng");
            let handed = helpers.open(&path, Purpose::New).expect("a file");
            assert!(handed.created && !handed.inherited, "{handed:?}");
            let again = helpers.open(&path, Purpose::New);
            assert!(
                matches!(&again, Err(Refusal::Io(error)) if error.kind() == io::ErrorKind::AlreadyExists),
                "{again:?}"
            );
            fs::write(&path, "12345").expect("room");
            let modified = UNIX_EPOCH + Duration::new(1_000_000_007, 250);
            File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_modified(modified))
                .expect("its time");
            fs::write(place.join("other"), "of nobody").expect("room");
            let found = helpers.list(&template).expect("a list");
            let [Found { path: of, bytes: 5, modified: since, locked: false, ours: false }] = &found[..]
            else {
                panic!("{found:?}")
            };
            assert_eq!((of, since), (&path, &modified));
            let directory = helpers.directory(&path).and_then(|directory| directory.metadata());
            let expected = fs::metadata(place).expect("it is there");
            assert_eq!(directory.expect("a directory").ino(), expected.ino());
            for _ in 0..2 {
                let there = path.exists();
                let held = helpers.remove(&path).expect("it may be gone already");
                assert_eq!(held.is_some(), there);
                assert!(!path.exists());
            }
            let why = helpers.open(&place.join("other"), Purpose::Any).expect_err("of nobody");
            assert!(matches!(&why, Refusal::Io(error) if error.to_string().contains("declared")), "{why:?}");
            let why = helpers.run("true".as_ref(), &path).expect_err("no program was named");
            assert!(why.contains("not found"), "{why}");
        });
    }

    #[test]
    fn the_program_for_finished_files_says_how_it_ended() {
        for (command, expected) in [("true", Ok(())), ("false", Err("status"))] {
            with_helpers(Some(command), |place, helpers| {
                let ran = helpers.run(command.as_ref(), &place.join("t-17.pcapng"));
                match expected {
                    Ok(()) => assert_eq!(ran, Ok(())),
                    Err(word) => assert!(ran.as_ref().is_err_and(|why| why.contains(word)), "{ran:?}"),
                }
                let ran = helpers.run(command.as_ref(), &place.join("other")).expect_err("of nobody");
                assert!(ran.contains("does not belong"), "{ran}");
            });
        }
    }

    #[test]
    fn it_is_told_if_who_runs_the_program_has_ended() {
        let directory = tempfile::tempdir().expect("a directory");
        let script = directory.path().join("script");
        fs::write(&script, "#!/bin/sh\nkill -9 $PPID\n").expect("room");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("its mode");
        with_helpers(script.to_str(), |place, helpers| {
            let ran = helpers.run(script.as_os_str(), &place.join("t-17.pcapng")).expect_err("killed");
            assert!(ran.contains("(weir-run) has ended"), "{ran}");
        });
    }

    /// Whoever captures as another user may not remove sockets where the first one has made them.
    #[test]
    fn root_sockets_are_removed_at_the_end_whoever_captures() {
        const NAME: &str = "root_sockets_are_removed_at_the_end_whoever_captures";
        if !geteuid().is_root() {
            return weir_skip::unless_required(NAME, "another user needs root");
        }
        let other = User::find("nobody").expect("a database").expect("everywhere");
        for user in [None, Some(&other)] {
            let (sockets, files) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir());
            let (socket, files) = (sockets.path().join("socket"), files.expect("another"));
            fs::write(&socket, "").expect("room");
            fs::set_permissions(files.path(), fs::Permissions::from_mode(0o777)).expect("its mode");
            let said = in_a_test(|| {
                let (file, options) = (files.path().join("t.pcapng"), WriterOptions::default());
                let helpers = Helpers::start(Some(&file), &options, user, vec![socket.clone()]);
                let helpers = helpers.expect("they start").expect("a file needs them");
                if let Some(process) = &helpers.sockets {
                    let ask = Ask::Open { path: bytes(&file), purpose: Purpose::Any };
                    send(process.socket(), &ask, None).expect("it listens");
                    let answer = receive(process.socket()).expect("it answers").map(|(answer, _)| answer);
                    assert!(matches!(answer, Some(Answer::NotOurs)), "it has no file: {answer:?}");
                }
                helpers.open(&file, Purpose::New).expect("a file");
                assert!(socket.exists(), "until the end");
                drop(helpers);
                assert!(!socket.exists());
                "well".to_owned()
            });
            assert_eq!(said, "well", "{user:?}");
            let owner = fs::metadata(files.path().join("t.pcapng")).expect("it stays").uid();
            assert_eq!(owner, user.map_or(0, |user| user.uid));
        }
    }
}
