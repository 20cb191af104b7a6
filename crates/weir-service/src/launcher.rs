//! Starts a program for a confined process, which may not: by a process of its own, with another user's rights and no capabilities.
//!
//! ```text
//! program: Launcher -- start it -->  weir-launcher -- starts --> the program
//!                   <-- a socket --                                  |
//!              '------------------- its standard input -------------'
//! ```
//!
//! Signals that end the program that asks, from a terminal or a service manager, do not end the other one: it ends when its socket is
//! closed.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, fchown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weir_sys::fork::{Forked, fork};
use weir_sys::user::User;

use crate::Error;
use crate::broker::{receive, send};
use crate::confine::{Needs, for_programs, lasting};

/// For a program to end once its socket is closed: if another one is to start, and at the end.
const GRACE: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(20);

/// What is started.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// Its command line, without its name.
    pub arguments: Vec<OsString>,
    /// A directory that it fills, which is made if it is missing.
    pub directory: Option<PathBuf>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// The first message: the process has given up its rights, or why it ends.
    Began { refused: Option<String> },
    /// Comes with a socket. How the program ended that was started before.
    Started { before: Option<String> },
    /// The kernel's error.
    Errno(i32),
}

/// The process that starts the program, once, or again when it has ended. Dropping this waits until the program has ended, and has it killed
/// if that takes long: close its socket before.
#[derive(Debug)]
pub struct Launcher(Mutex<Forked>);

impl Launcher {
    /// Starts the process, before this one has other threads and is confined. If root starts it, it becomes another user: that of the
    /// package, or nobody.
    ///
    /// # Errors
    ///
    /// If the directory cannot be made, or the process does not start, or cannot give up its rights.
    pub fn start(program: Program) -> Result<Self, Error> {
        Self::start_as(program, None)
    }

    /// `user`: who it becomes, if somebody was asked for.
    pub(crate) fn start_as(program: Program, user: Option<&User>) -> Result<Self, Error> {
        let user = user.cloned().or_else(lasting);
        if let Some(directory) = &program.directory {
            let failed = |error| Error::Archive { directory: directory.clone(), error };
            make(directory, user.as_ref()).map_err(failed)?;
        }
        let failed = |why: String| Error::Launcher { program: program.path.clone(), why };
        let process = fork(c"weir-launcher", |socket| serve(&program, user.as_ref(), &socket));
        let process = process.map_err(|error| failed(error.to_string()))?;
        match receive(process.socket()).map_err(|error| failed(error.to_string()))? {
            Some((Answer::Began { refused: None }, _)) => Ok(Self(Mutex::new(process))),
            Some((Answer::Began { refused: Some(why) }, _)) => Err(failed(why)),
            _ => Err(failed("the helper process has ended".to_owned())),
        }
    }

    /// Starts the program. One that was started before is killed, if it has not ended. Returns a socket that is its standard input, and
    /// how the one before has ended.
    ///
    /// # Errors
    ///
    /// Those of the kernel, or the helper process has ended.
    pub fn launch(&self) -> io::Result<(UnixStream, Option<String>)> {
        let process = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = || io::Error::other("the helper process that starts it (weir-launcher) has ended");
        send(process.socket(), &(), None).map_err(|_| gone())?;
        match receive(process.socket())?.ok_or_else(gone)? {
            (Answer::Started { before }, Some(socket)) => Ok((socket.into(), before)),
            (Answer::Errno(errno), _) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Makes a directory if it is missing, for its user alone.
fn make(directory: &Path, user: Option<&User>) -> io::Result<()> {
    if fs::metadata(directory).is_ok() {
        return Ok(());
    }
    if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    DirBuilder::new().mode(0o700).create(directory)?;
    let Some(user) = user else { return Ok(()) };
    // Nobody can have put a link in its place.
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let made = File::options().read(true).custom_flags(flags).open(directory)?;
    fchown(made, Some(user.uid), Some(user.gid))
}

/// Starts the program whenever it is told to.
fn serve(program: &Program, user: Option<&User>, socket: &OwnedFd) {
    let refused = for_programs(&Needs::to_keep(), user).err().map(|error| error.to_string());
    let ends = refused.is_some();
    if send(socket, &Answer::Began { refused }, None).is_err() || ends {
        return;
    }
    let mut running: Option<Child> = None;
    while let Ok(Some(((), _))) = receive::<()>(socket) {
        let before = running.take().and_then(|child| end(child, GRACE));
        let answered = match begin(program) {
            Ok((child, theirs)) => {
                running = Some(child);
                send(socket, &Answer::Started { before }, Some(theirs.as_fd()))
            }
            Err(error) => send(socket, &Answer::Errno(error.raw_os_error().unwrap_or(libc::EIO)), None),
        };
        if answered.is_err() {
            break;
        }
    }
    running.and_then(|child| end(child, LAST));
}

/// Waits for a program whose socket is closed, and kills it if it does not end. Returns how it has ended.
fn end(mut child: Child, grace: Duration) -> Option<String> {
    let began = Instant::now();
    while began.elapsed() < grace {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status.to_string());
        }
        sleep(Duration::from_millis(5));
    }
    let _it_may_have_ended = child.kill();
    child.wait().ok().map(|status| status.to_string())
}

fn begin(program: &Program) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(&program.path);
    command.args(&program.arguments).stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
    Ok((command.spawn()?, ours))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use weir_sys::fork::in_a_test;

    use super::*;

    #[test]
    fn the_program_has_a_socket_and_a_directory_and_no_rights() {
        let place = tempfile::tempdir().expect("a directory");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let directory = place.path().join("a/spool");
        let status = directory.join("status");
        let said = in_a_test(|| {
            let arguments = vec!["status=none".into(), "if=/proc/self/status".into(), {
                let mut to = OsString::from("of=");
                to.push(&status);
                to
            }];
            let program = Program { path: "/bin/dd".into(), arguments, directory: Some(directory.clone()) };
            let launcher = Launcher::start(program).expect("a process");
            let (mut socket, before) = launcher.launch().expect("a program");
            assert_eq!((socket.read(&mut [0]).expect("its end"), before), (0, None));
            launcher.launch().expect("a program").1.unwrap_or_default()
        });
        assert_eq!(said, "exit status: 0");
        let said = fs::read_to_string(status).expect("it has written");
        let line = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)).expect("a line").trim();
        let blocked = u64::from_str_radix(line("SigBlk:"), 16).expect("a number");
        let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
        assert!(signals.iter().all(|signal| blocked >> (signal - 1) & 1 == 1), "{said}");
        assert_eq!((line("CapPrm:"), line("NoNewPrivs:")), ("0000000000000000", "1"));
        if rustix::process::geteuid().is_root() {
            assert_ne!(line("Uid:").split_whitespace().next(), Some("0"));
            assert_eq!(line("CapBnd:"), "0000000000000000");
        }
        assert_eq!(fs::metadata(&directory).expect("it is made").mode() & 0o777, 0o700);
    }

    #[test]
    fn the_program_ends_before_another_one_starts() {
        let said = in_a_test(|| {
            // It ends with its socket.
            let program = Program { path: "/bin/cat".into(), ..Program::default() };
            let launcher = Launcher::start(program).expect("a process");
            let (mut socket, _) = launcher.launch().expect("a program");
            let (second, before) = launcher.launch().expect("a program");
            // Its end of the socket has gone with it.
            assert_eq!(socket.read(&mut [0]).expect("its end"), 0);
            drop(second);
            before.unwrap_or_default()
        });
        assert_eq!(said, "signal: 9 (SIGKILL)");
    }

    #[test]
    fn what_cannot_be_started_is_told() {
        let said = in_a_test(|| {
            let program = Program { path: "/nowhere/weir-export".into(), ..Program::default() };
            let launcher = Launcher::start(program).expect("a process");
            format!("{:?}", launcher.launch().map(drop).map_err(|error| error.kind()))
        });
        assert_eq!(said, "Err(NotFound)");
    }
}
