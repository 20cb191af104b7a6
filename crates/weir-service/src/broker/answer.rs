//! The side of the helper processes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use weir::parts::{FileBroker as _, Found, OpenedFile, Refusal};
use weir_sys::fork::end_with;
use weir_sys::privilege;

use super::Task;
use super::wire::{Answer, Ask, receive, send};
use crate::confine::{Needs, confine_user, for_programs};

/// Message for a program that succeeded.
pub(super) const WELL: &str = "well";

/// Longest time to finish work after the capture ends, such as removing sockets.
const GRACE: Duration = Duration::from_millis(500);

/// Opens and removes files until the capture ends.
pub(super) fn keep_files(task: &Task, place: Option<&Path>, socket: &OwnedFd) {
    task.user.iter().for_each(privilege::become_nobody_as);
    // Even accessing the directory may take time.
    let ends = end_with(socket, GRACE).map_err(|error| error.to_string());
    let confined = || confine_user(&task.needs(place), task.user.as_ref()).map_err(|error| error.to_string());
    if !may_begin(socket, ends.and_then(|()| confined())) {
        return;
    }
    while let Ok(Some((ask, _))) = receive(socket) {
        if matches!(ask, Ask::Leave) {
            task.sockets.iter().for_each(|path| drop(fs::remove_file(path)));
        } else if answer(task, ask, socket).is_err() {
            return;
        }
    }
}

/// Reports whether the process is confined as it should be. Otherwise, it must not do anything.
fn may_begin<T>(socket: &OwnedFd, confined: Result<T, String>) -> bool {
    let refused = confined.err();
    let begins = refused.is_none();
    send(socket, &Answer::Began { refused }, None).is_ok() && begins
}

fn answer(task: &Task, ask: Ask, socket: &OwnedFd) -> io::Result<()> {
    let say = |answer: Answer, beside: Option<OwnedFd>| {
        send(socket, &answer, beside.as_ref().map(|descriptor| descriptor.as_fd()))
    };
    let path = match ask {
        Ask::Open { ref path, .. } | Ask::Remove { ref path } | Ask::Directory { ref path } => {
            PathBuf::from(std::ffi::OsString::from_vec(path.clone()))
        }
        Ask::List => return list(task, socket),
        Ask::Run { .. } | Ask::Leave => return say(Answer::NotOurs, None),
    };
    if !task.template.matches(&path) {
        return say(Answer::NotOurs, None);
    }
    match ask {
        Ask::Open { purpose, .. } => match task.here.open(&path, purpose) {
            Ok(OpenedFile { file, created, inherited }) => {
                say(Answer::Opened { created, inherited }, Some(file.into()))
            }
            Err(Refusal::Io(error)) => say(errno(&error), None),
            Err(Refusal::Link { owner }) => say(Answer::Link { owner }, None),
            Err(Refusal::Foreign { owner }) => say(Answer::Foreign { owner }, None),
            Err(Refusal::Unread) => say(Answer::Unread, None),
        },
        Ask::Remove { .. } => match task.here.remove(&path) {
            Ok(held) => say(Answer::Removed, held),
            Err(error) => say(errno(&error), None),
        },
        _ => match task.here.directory(&path) {
            Ok(directory) => say(Answer::Directory, Some(directory.into())),
            Err(error) => say(errno(&error), None),
        },
    }
}

fn errno(error: &io::Error) -> Answer {
    Answer::Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

fn list(task: &Task, socket: &OwnedFd) -> io::Result<()> {
    let found = match task.here.list(&task.template) {
        Ok(found) => found,
        Err(error) => return send(socket, &errno(&error), None),
    };
    for file in found {
        let path = file.path.as_os_str().as_bytes().to_vec();
        let modified = file.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let Found { bytes, locked, ours, .. } = file;
        send(socket, &Answer::Found { path, bytes, modified, locked, ours }, None)?;
    }
    send(socket, &Answer::ThatIsAll, None)
}

/// Runs the program on finished files until the capture ends and all programs have finished.
pub(super) fn run_programs(task: &Task, needs: &Needs, socket: &OwnedFd) {
    let Some(command) = &task.command else { return };
    let confined = for_programs(needs, task.user.as_ref()).map_err(|error| error.to_string());
    if !may_begin(socket, confined) {
        return;
    }
    // Capturing has priority.
    let _ = rustix::process::setpriority_process(None, 19);
    thread::scope(|scope| {
        while let Ok(Some((Ask::Run { path }, Some(pipe)))) = receive(socket) {
            let path = PathBuf::from(std::ffi::OsString::from_vec(path));
            scope.spawn(move || {
                let ran = match task.template.matches(&path) {
                    true => task.here.run(command, &path),
                    false => Err("this file does not belong to the capture".to_owned()),
                };
                let said = ran.err().unwrap_or_else(|| WELL.to_owned());
                let _nobody_waits = File::from(pipe).write_all(said.as_bytes());
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use weir::parts::{LocalBroker, Purpose, Template};
    use weir::writer::{Rotation, WriterOptions};

    use super::*;

    /// Returns the answer, and whether a descriptor came with it.
    fn answers(task: &Task, ask: Ask) -> (Answer, bool) {
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = pair.expect("a pair");
        answer(task, ask, &theirs).expect("somebody listens");
        let (answer, beside) = receive(&ours).expect("an answer").expect("not the end");
        (answer, beside.is_some())
    }

    #[test]
    fn files_of_the_capture_and_no_others() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("authorized_keys"), "mine").expect("room");
        let rotation = weir::with!(Rotation::default(), size = Some(1));
        let options = weir::with!(WriterOptions::default(), rotation, strftime = true);
        let task = Task {
            template: Template::new(&directory.path().join("t-%s.pcapng"), &options),
            here: LocalBroker::default(),
            command: None,
            sockets: Vec::new(),
            user: None,
        };
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let name = |name: &str| bytes(&directory.path().join(name));
        let of = |path| answers(&task, Ask::Open { path, purpose: Purpose::New });
        assert!(matches!(
            of(name("t-17.pcapng")),
            (Answer::Opened { created: true, inherited: false }, true)
        ));
        assert!(matches!(of(name("t-17.pcapng")), (Answer::Errno(libc::EEXIST), false)));
        assert!(matches!(
            of(name("t-17.pcapng3")),
            (Answer::Opened { created: true, inherited: false }, true)
        ));
        for other in [
            name("authorized_keys"),
            name("t-x.pcapng"),
            name("../t-17.pcapng"),
            bytes(Path::new("/etc/passwd")),
        ] {
            for ask in [
                Ask::Open { path: other.clone(), purpose: Purpose::Any },
                Ask::Remove { path: other.clone() },
                Ask::Directory { path: other.clone() },
                Ask::Run { path: other.clone() },
            ] {
                assert!(matches!(answers(&task, ask), (Answer::NotOurs, false)));
            }
        }
        assert!(matches!(
            answers(&task, Ask::Directory { path: name("t-17.pcapng") }),
            (Answer::Directory, true)
        ));
        assert!(matches!(answers(&task, Ask::Remove { path: name("t-17.pcapng") }), (Answer::Removed, true)));
        assert!(matches!(
            answers(&task, Ask::Remove { path: name("t-17.pcapng") }),
            (Answer::Removed, false)
        ));
        assert!(matches!(answers(&task, Ask::List), (Answer::Found { bytes: 0, ours: false, .. }, false)));
        assert_eq!(fs::read(directory.path().join("authorized_keys")).expect("still there"), b"mine");
    }
}
