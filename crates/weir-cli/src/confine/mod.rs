//! The process keeps what it has opened, and gives up the rest: capabilities, files, system calls.
//!
//! That happens once, when sources are open and before the first packet is looked at, so that whoever finds a fault in
//! what handles packets has gained as little as can be. Threads that start afterwards inherit it; those of a source that
//! run already have given up everything by themselves (`weir_sys::thread::spawn_bare`).

mod calls;
#[cfg(test)]
mod tests;
mod user;

use std::fmt;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use serde::Serialize;
use weir_sys::landlock::{self, Enforced, Files};
use weir_sys::privilege::{self, Capabilities};
use weir_sys::user::User;

use self::calls::Calls;
pub(crate) use self::user::{Become, UserArgs};
use crate::failure::Failure;
use crate::style;

#[derive(Debug, Args)]
#[command(next_help_heading = "Privileges")]
pub(crate) struct ConfineArgs {
    /// Do not drop privileges or sandbox (for troubleshooting).
    #[arg(hide_short_help = true, long)]
    no_confine: bool,
}

impl ConfineArgs {
    /// Confines the process to what the rest of the run needs, unless the user has asked not to.
    pub(crate) fn confine(&self, needs: impl FnOnce() -> Needs) -> Result<Option<Confinement>, Failure> {
        if self.no_confine { Ok(None) } else { confine(&needs(), None).map(Some) }
    }

    /// The same, as another user.
    pub(crate) fn confine_as(
        &self,
        other: &Become,
        needs: impl FnOnce() -> Needs,
    ) -> Result<Option<Confinement>, Failure> {
        if self.no_confine {
            // Whoever asks for a user gets it all the same.
            other.asked_for().map_or(Ok(()), UserArgs::switch_to)?;
            return Ok(None);
        }
        let mut held = confine(&needs(), other.user())?;
        held.weaknesses.extend(other.weakness().map(str::to_owned));
        Ok(Some(held))
    }

    /// Whether anything is given up.
    pub(crate) fn is_on(&self) -> bool {
        !self.no_confine
    }

    /// Gives up [executable memory](Needs::make_code), once there is all the code that the rest of the run needs. `held`:
    /// what [`confine`](Self::confine) came to.
    pub(crate) fn end_of_code(held: Option<&Confinement>) -> Result<(), Failure> {
        // Where there is no seccomp, that was told.
        let restricted = held.is_some_and(|held| held.system_calls.is_some());
        if restricted { calls::no_code().map_err(refused) } else { Ok(()) }
    }
}

/// What the rest of the run needs.
#[derive(Debug)]
pub(crate) struct Needs {
    files: Files,
    calls: Calls,
    /// Besides those that it takes to reach the files.
    capabilities: Capabilities,
}

/// Read by the C library, the standard library or by us, at any time.
const ALWAYS_READ: [&str; 4] =
    ["/usr/share/zoneinfo", "/etc/localtime", "/proc/self", "/proc/sys/kernel/osrelease"];
/// What the system tells of its memory, processors and interfaces.
const SYSTEM: [&str; 2] = ["/proc", "/sys"];

impl Needs {
    /// To take packets from the kernel.
    pub(crate) fn to_capture() -> Self {
        SYSTEM.iter().fold(Self::of(Calls::Capture), |needs, path| needs.read(Path::new(path)))
    }

    /// To open and remove files for who captures.
    pub(crate) fn to_keep() -> Self {
        Self::of(Calls::Keep)
    }

    /// To load programs for who captures.
    pub(crate) fn to_make() -> Self {
        let capabilities = Capabilities::BPF | Capabilities::PERFMON | Capabilities::NET_ADMIN;
        let needs = SYSTEM.iter().fold(Self::of(Calls::Make), |needs, path| needs.read(Path::new(path)));
        Self { capabilities, ..needs }
    }

    /// To read these files, and to write that one and others beside it; nothing else, no socket above all.
    pub(crate) fn to_read(files: &[PathBuf], output: Option<&Path>) -> Self {
        let needs = files.iter().fold(Self::of(Calls::Files), |needs, path| needs.read(path));
        output.into_iter().fold(needs, Self::write)
    }

    fn of(calls: Calls) -> Self {
        let read = ALWAYS_READ.map(PathBuf::from).to_vec();
        let files = Files { read, ..Files::default() };
        Self { files, calls, capabilities: Capabilities::empty() }
    }

    /// To read `path`. `-` is standard input, which is open.
    fn read(mut self, path: &Path) -> Self {
        if path != Path::new("-") {
            self.files.read.push(path.to_owned());
        }
        self
    }

    /// To write `path`, and to make, rename and remove files beside it. `-` is standard output, which is open.
    pub(crate) fn write(mut self, path: &Path) -> Self {
        if path == Path::new("-") {
            return self;
        }
        // A device or a pipe is written as it is; anything else may be removed and made again.
        let special = fs::metadata(path).is_ok_and(|data| {
            let kind = data.file_type();
            kind.is_char_device() || kind.is_block_device() || kind.is_fifo()
        });
        self.files.written.push(if special { path.to_owned() } else { directory_of(path) });
        self
    }

    /// To make machine code until [`ConfineArgs::end_of_code`]; for who reads files.
    pub(crate) fn make_code(self) -> Self {
        debug_assert_eq!(self.calls, Calls::Files, "captures have their code");
        Self { calls: Calls::FilesAndCode, ..self }
    }

    /// To remove `path`.
    pub(crate) fn remove(mut self, path: &Path) -> Self {
        self.files.removed.push(directory_of(path));
        self
    }
}

/// The directory in which `path` is or would be.
fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// What holds from now on.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Confinement {
    /// Capabilities that are kept.
    capabilities: Vec<&'static str>,
    no_new_privileges: bool,
    /// Who it has become; null: it is who started it.
    user: Option<String>,
    landlock: Level,
    /// Where files may be written.
    written: Vec<PathBuf>,
    /// The number of system calls that may be made; null: all.
    system_calls: Option<usize>,
    /// What is weaker here than it could be.
    weaknesses: Vec<String>,
}

/// How much of the restriction to files holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    Full,
    Partial,
    None,
}

/// Confines the process for good. Called by the thread that starts all others, before it does.
pub(crate) fn confine(needs: &Needs, user: Option<&User>) -> Result<Confinement, Failure> {
    let kept = for_programs(needs, user)?;
    let mut weaknesses = Vec::new();
    let landlock = match landlock::restrict(&needs.files).map_err(refused)? {
        Enforced::Fully => Level::Full,
        Enforced::Partly => Level::Partial,
        Enforced::Not => Level::None,
    };
    match landlock {
        Level::Full => {}
        Level::Partial => weaknesses.push("this kernel knows a part of landlock only".to_owned()),
        Level::None => weaknesses.push("this kernel has no landlock, or it is switched off".to_owned()),
    }
    let system_calls = match calls::allow_only(needs.calls) {
        Ok(number) => Some(number),
        Err(error) => {
            weaknesses.push(format!("no seccomp: {error}"));
            None
        }
    };
    let privileged = privileged_threads(kept);
    if privileged > 0 {
        weaknesses.push(format!("{privileged} threads were there before, and keep their capabilities"));
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

/// Gives up capabilities alone, and the user: other programs need files and system calls that nobody knows. Gives what is kept.
pub(crate) fn for_programs(needs: &Needs, user: Option<&User>) -> Result<Capabilities, Failure> {
    // Where somebody else is to be asked, it is that user's rights that count.
    let for_files =
        if user.is_some() { Capabilities::empty() } else { kept(&needs.files).map_err(refused)? };
    let kept = for_files | (needs.capabilities & privilege::effective().map_err(refused)?);
    privilege::keep_only_as(user, kept).map_err(refused)?;
    Ok(kept)
}

fn refused(error: impl fmt::Display) -> Failure {
    Failure::new(format_args!("confine weir: {error}")).hint("--no-confine runs it with all privileges")
}

/// `CAP_DAC_OVERRIDE`, if without it files could not be made where they are to be made: root writes where only somebody
/// else may, and every file of a rotation is a new one. `CAP_DAC_READ_SEARCH`, if a file could not be read.
fn kept(files: &Files) -> Result<Capabilities, weir_sys::CallError> {
    let may_write = |path: &PathBuf| {
        let wanted = if path.is_dir() { Access::WRITE_OK | Access::EXEC_OK } else { Access::WRITE_OK };
        accessat(CWD, path, wanted, AtFlags::EACCESS).is_ok()
    };
    let may_read = |path: &PathBuf| {
        !matches!(accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS), Err(Errno::ACCESS))
    };
    let without = || (files.written.iter().all(may_write), files.read.iter().all(may_read));
    let (writes, reads) = privilege::without_others(Capabilities::empty(), without)?;
    let mut kept = Capabilities::empty();
    kept.set(Capabilities::DAC_OVERRIDE, !writes);
    kept.set(Capabilities::DAC_READ_SEARCH, !reads);
    Ok(kept & privilege::effective()?)
}

/// Threads of the process with more than `kept`.
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

/// What `-v` says of it.
pub(crate) fn say(confinement: Option<&Confinement>) {
    match confinement {
        Some(confinement) => style::say(format_args!("{confinement}")),
        None => style::say(format_args!("not confined, as requested")),
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let capabilities = match self.capabilities.as_slice() {
            [] => "no capability".to_owned(),
            kept => format!("no capability but {}", kept.join(", ")),
        };
        write!(f, "confined: {capabilities}, no new privileges")?;
        if let Some(user) = &self.user {
            write!(f, "; user {user}")?;
        }
        if self.landlock != Level::None {
            match self.written.as_slice() {
                [] => write!(f, "; writes no file")?,
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
