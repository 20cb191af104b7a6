//! Confines the process to what it has opened. It gives up everything else: capabilities, file access, system calls.
//!
//! This happens once, after the sources are open and before the first packet is read, so that an attacker who exploits
//! a bug in packet handling gains as little as possible. Threads that start later inherit the restrictions; threads of
//! a source that are already running have dropped everything themselves (`weir_sys::thread::spawn_bare`).

mod calls;
#[cfg(test)]
mod tests;
mod user;

use std::fmt;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use serde::Serialize;
use weir_sys::landlock::{self, Enforced, Files};
use weir_sys::privilege::{self, Capabilities};
use weir_sys::user::User;

use self::calls::Calls;
pub(crate) use self::user::{Become, lasting};
use crate::Error;

/// Confines the process to what the rest of the run needs, and switches to another user. If it is not `wanted`, a user
/// who was asked for applies all the same.
pub(crate) fn confine_as(
    wanted: bool,
    other: &Become,
    needs: impl FnOnce() -> Needs,
) -> Result<Option<Confinement>, Error> {
    if !wanted {
        other.asked_for().map_or(Ok(()), user::switch_to)?;
        return Ok(None);
    }
    let mut held = confine_user(&needs(), other.user())?;
    held.weaknesses.extend(other.weakness().map(str::to_owned));
    Ok(Some(held))
}

/// Gives up [executable memory](Needs::make_code), once no more code has to be generated. `held`: the result of
/// [`confine`].
///
/// # Errors
///
/// If the kernel refuses the stricter rules.
pub fn end_of_code(held: Option<&Confinement>) -> Result<(), Error> {
    // A lack of seccomp has been reported already.
    let restricted = held.is_some_and(|held| held.system_calls.is_some());
    if restricted { calls::no_code().map_err(refused) } else { Ok(()) }
}

/// The access that the rest of the run needs.
#[derive(Debug)]
pub struct Needs {
    files: Files,
    calls: Calls,
    /// It sends packets through sockets that are open.
    sends: bool,
    /// In addition to those that are required to access the files.
    capabilities: Capabilities,
}

/// Files that the C library, the standard library or weir may read at any time.
const ALWAYS_READ: [&str; 4] =
    ["/usr/share/zoneinfo", "/etc/localtime", "/proc/self", "/proc/sys/kernel/osrelease"];
/// Kernel information about memory, processors and interfaces.
const SYSTEM: [&str; 2] = ["/proc", "/sys"];

impl Needs {
    /// Needs of a capture: packets from the kernel.
    pub(crate) fn to_capture() -> Self {
        SYSTEM.iter().fold(Self::of(Calls::Capture), |needs, path| needs.read(Path::new(path)))
    }

    /// Needs of a process that opens and removes files for a capture.
    pub(crate) fn to_keep() -> Self {
        Self::of(Calls::Keep)
    }

    /// Needs of a process that fills a directory with folders and files.
    pub(crate) fn to_fill(directory: &Path) -> Self {
        let mut needs = Self::of(Calls::Fill);
        needs.files.filled.push(directory.to_owned());
        needs
    }

    /// Needs of a process that makes TCP connections to these ports for another one.
    pub(crate) fn to_connect(ports: Vec<u16>) -> Self {
        let needs = Self::of(Calls::Connect);
        Self { files: Files { ports, ..needs.files }, ..needs }
    }

    /// Needs of a process that loads programs for a capture.
    pub(crate) fn to_make() -> Self {
        let capabilities = Capabilities::BPF | Capabilities::PERFMON | Capabilities::NET_ADMIN;
        let needs = SYSTEM.iter().fold(Self::of(Calls::Make), |needs, path| needs.read(Path::new(path)));
        Self { capabilities, ..needs }
    }

    /// Needs of a process that reads these files and writes `output` and files beside it; in particular, no sockets,
    /// unless it [sends](Self::send).
    pub fn to_read(files: &[PathBuf], output: Option<&Path>) -> Self {
        let needs = files.iter().fold(Self::of(Calls::Files), |needs, path| needs.read(path));
        output.into_iter().fold(needs, Self::write)
    }

    /// Adds reading all files beside `path`.
    #[must_use]
    pub fn read_beside(self, path: &Path) -> Self {
        self.read(&directory_of(path))
    }

    fn of(calls: Calls) -> Self {
        let read = ALWAYS_READ.map(PathBuf::from).to_vec();
        let files = Files { read, ..Files::default() };
        Self { files, calls, sends: false, capabilities: Capabilities::empty() }
    }

    /// Adds reading `path`. `-` is standard input, which is open.
    fn read(mut self, path: &Path) -> Self {
        if path != Path::new("-") {
            self.files.read.push(path.to_owned());
        }
        self
    }

    /// Adds writing `path`, and creating, renaming and removing files beside it. `-` is standard output, which is open.
    pub(crate) fn write(mut self, path: &Path) -> Self {
        if path == Path::new("-") {
            return self;
        }
        // Devices and pipes are written in place; any other file may be removed and recreated.
        let special = fs::metadata(path).is_ok_and(|data| {
            let kind = data.file_type();
            kind.is_char_device() || kind.is_block_device() || kind.is_fifo()
        });
        self.files.written.push(if special { path.to_owned() } else { directory_of(path) });
        self
    }

    /// Adds generating machine code until [`end_of_code`]; for processes that read files.
    pub fn make_code(self) -> Self {
        debug_assert_eq!(self.calls, Calls::Files, "captures have their code");
        Self { calls: Calls::FilesAndCode, ..self }
    }

    /// Adds sending packets through sockets that are open; for processes that read files.
    #[must_use]
    pub fn send(self) -> Self {
        Self { sends: true, ..self }
    }

    /// Adds removing `path`.
    pub(crate) fn remove(mut self, path: &Path) -> Self {
        self.files.removed.push(directory_of(path));
        self
    }
}

/// Returns the directory that contains, or would contain, `path`.
fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The restrictions in force.
#[derive(Clone, Debug, Serialize)]
pub struct Confinement {
    /// Remaining capabilities.
    capabilities: Vec<&'static str>,
    no_new_privileges: bool,
    /// The user that the process switched to; null if it did not.
    user: Option<String>,
    landlock: Level,
    /// Directories or files that it may write.
    written: Vec<PathBuf>,
    /// Number of allowed system calls; null: all.
    system_calls: Option<usize>,
    /// Restrictions that are weaker than they could be.
    weaknesses: Vec<String>,
}

/// The part of the file restrictions that is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    Full,
    Partial,
    None,
}

/// Confines the process permanently. The thread that starts all others must call this before it does.
///
/// # Errors
///
/// If the process cannot give up its rights.
pub fn confine(needs: &Needs) -> Result<Confinement, Error> {
    confine_user(needs, None)
}

/// Does what [`confine`] does, and switches to `user` if there is one.
pub(crate) fn confine_user(needs: &Needs, user: Option<&User>) -> Result<Confinement, Error> {
    let kept = for_programs(needs, user)?;
    let mut weaknesses = Vec::new();
    let landlock = match landlock::restrict(&needs.files).map_err(refused)? {
        Enforced::Fully => Level::Full,
        Enforced::Partly => Level::Partial,
        Enforced::Not => Level::None,
    };
    match landlock {
        Level::Full => {}
        Level::Partial => weaknesses.push("this kernel supports Landlock only in part".to_owned()),
        Level::None => weaknesses.push("this kernel has no Landlock, or it is disabled".to_owned()),
    }
    let system_calls = match calls::allow_only(needs.calls, needs.sends) {
        Ok(number) => Some(number),
        Err(error) => {
            weaknesses.push(format!("no seccomp: {error}"));
            None
        }
    };
    let privileged = privileged_threads(kept);
    if privileged > 0 {
        weaknesses.push(format!("threads that existed before and keep their capabilities: {privileged}"));
    }
    Ok(Confinement {
        capabilities: kept.iter_names().map(|(name, _)| name).collect(),
        no_new_privileges: true,
        user: user.map(|user| user.name.clone()),
        landlock,
        written: needs.files.written.clone(),
        system_calls,
        weaknesses,
    })
}

/// Confines a process that reads about other processes: it keeps what that takes, and system calls that open files only for reading.
pub(crate) fn confine_inspector(user: Option<&User>) -> Result<(), Error> {
    let capabilities = Capabilities::SYS_PTRACE | Capabilities::DAC_READ_SEARCH;
    let needs = Needs { capabilities, ..Needs::of(Calls::Inspect) };
    for_programs(&needs, user)?;
    calls::allow_only(needs.calls, needs.sends).map_err(refused)?;
    Ok(())
}

/// Drops only capabilities and switches the user, because other programs need unknown files and system calls. Returns
/// the remaining capabilities.
pub(crate) fn for_programs(needs: &Needs, user: Option<&User>) -> Result<Capabilities, Error> {
    // After a switch of the user, that user's rights apply.
    let for_files =
        if user.is_some() { Capabilities::empty() } else { kept(&needs.files).map_err(refused)? };
    let kept = for_files | (needs.capabilities & privilege::effective().map_err(refused)?);
    privilege::keep_only_as(user, kept).map_err(refused)?;
    Ok(kept)
}

fn refused(error: impl fmt::Display) -> Error {
    Error::Confine(error.to_string())
}

/// Returns `CAP_DAC_OVERRIDE` if files cannot be created in their directory without it: root writes where only another
/// user may, and every rotation creates a file. Returns `CAP_DAC_READ_SEARCH` if a file cannot be read without it.
fn kept(files: &Files) -> Result<Capabilities, weir_sys::CallError> {
    let may_write = |path: &PathBuf| {
        let wanted = if path.is_dir() { Access::WRITE_OK | Access::EXEC_OK } else { Access::WRITE_OK };
        accessat(CWD, path, wanted, AtFlags::EACCESS).is_ok()
    };
    let may_read = |path: &PathBuf| {
        !matches!(accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS), Err(Errno::ACCESS))
    };
    let without =
        || (files.written.iter().chain(&files.filled).all(may_write), files.read.iter().all(may_read));
    let (writes, reads) = privilege::without_others(Capabilities::empty(), without)?;
    let mut kept = Capabilities::empty();
    kept.set(Capabilities::DAC_OVERRIDE, !writes);
    kept.set(Capabilities::DAC_READ_SEARCH, !reads);
    Ok(kept & privilege::effective()?)
}

/// Returns the number of threads with more capabilities than `kept`.
fn privileged_threads(kept: Capabilities) -> usize {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let more = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:"))?;
        let permitted = u64::from_str_radix(permitted.trim(), 16).ok()?;
        (permitted & !kept.bits() != 0).then_some(())
    };
    tasks.filter_map(more).count()
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let capabilities = match self.capabilities.as_slice() {
            [] => "no capabilities".to_owned(),
            kept => format!("no capabilities except {}", kept.join(", ")),
        };
        write!(f, "confined: {capabilities}, no new privileges")?;
        if let Some(user) = &self.user {
            write!(f, "; user {user}")?;
        }
        if self.landlock != Level::None {
            match self.written.as_slice() {
                [] => write!(f, "; writes no files")?,
                places => {
                    let places: Vec<String> =
                        places.iter().map(|place| place.display().to_string()).collect();
                    write!(f, "; writes only in {}", places.join(" and "))?;
                }
            }
        }
        if let Some(number) = self.system_calls {
            write!(f, "; {number} system calls")?;
        }
        self.weaknesses.iter().try_for_each(|weakness| write!(f, "; {weakness}"))
    }
}
