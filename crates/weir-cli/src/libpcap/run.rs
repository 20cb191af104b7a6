//! `weir run -- PROGRAM`: runs a program with weir's libpcap.
//!
//! weir becomes the program, so signals, the terminal, the exit status and the parent are the program's own.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::IntoRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use clap::{Args, ValueEnum, ValueHint};
use rustix::fs::fstat;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use weir_sys::signals;

use super::{library, names, program};
use crate::args::{ModeArg, SourceArg};
use crate::failure::Failure;
use crate::units;

const EXAMPLES: &str = "\
Examples:
  weir run -- tcpdump -r trace.pcap      read a file; needs no privileges
  sudo weir run -- tcpdump -i eth0       capture; weir itself must run as root
  sudo weir run --report -- tcpdump -i eth0 -w a.pcap
                                         say at the end how it went
  sudo weir run --source xdp --mode exclusive -- tcpdump -i mirror0 -w a.pcap
  weir run -- tcpdump --version          show which libpcap it uses: 1.10.3 (weir ...)
  weir run -- sh -c 'tcpdump -nr trace.pcap | sort'

The options set WEIR_SOURCE, WEIR_MODE, WEIR_FORCE, WEIR_CHUNKS and WEIR_REPORT for PROGRAM.
Programs that PROGRAM starts use the library, too. weir run grants no privileges.
Unless root runs it, it refuses programs that are setuid, setgid or have file capabilities:
the dynamic loader would ignore the library. The loader also ignores it, silently, if PROGRAM
starts such a program, as wireshark starts dumpcap. Programs that are linked statically, or to
a libpcap at a fixed path, keep that libpcap.
Exit status: PROGRAM's; 126 cannot execute it, 127 no such program, 1 other errors, 2 usage error.";

/// A descriptor beyond those that scripts use.
const FIRST_FREE: i32 = 64;

/// What is run.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "weir run [OPTIONS] [--] PROGRAM [ARGUMENTS]...")]
pub(crate) struct RunArgs {
    /// Select the source of packets.
    ///
    /// Default: WEIR_SOURCE, otherwise auto: what weir capture would choose, in both directions. weir uses a packet
    /// socket (af_packet) for programs in immediate mode, and where its own sources do not work.
    #[arg(long, value_enum)]
    source: Option<SourceArg>,

    /// Set whether captured packets also reach the host.
    ///
    /// In exclusive mode, the source is one that can do that, xdp unless another is selected.
    #[arg(long, value_enum)]
    mode: Option<ModeArg>,

    /// With --mode exclusive, or a device such as xdp!:eth0, allow cutting off this host (its addresses, bridges and
    /// routes).
    #[arg(long)]
    force: bool,

    /// Set the number of chunks per queue, at least 2.
    ///
    /// Default: what fits into the buffer size that PROGRAM asks for, or into 64MiB for all queues.
    #[arg(long, value_name = "R", value_parser = units::chunks, allow_hyphen_values = true)]
    chunks: Option<u32>,

    /// Print a line on standard error when a capture ends: source, packets received and lost.
    ///
    /// The line goes where weir run prints, even if PROGRAM, such as tshark, reads the standard error of the
    /// program that captures for it.
    #[arg(long)]
    report: bool,

    /// Program, looked up in PATH, and its arguments.
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    #[arg(value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

impl RunArgs {
    /// Returns the environment in which weir's libpcap finds the options. What is not given stays as it is.
    fn environment(&self) -> impl Iterator<Item = (&'static str, String)> {
        let options = [
            (
                "WEIR_SOURCE",
                self.source.map(name).or_else(|| {
                    let wished = env::var_os("WEIR_SOURCE").is_some_and(|source| !source.is_empty());
                    (!wished).then(|| name(SourceArg::Auto))
                }),
            ),
            ("WEIR_MODE", self.mode.map(name)),
            ("WEIR_FORCE", self.force.then(|| "1".to_owned())),
            ("WEIR_CHUNKS", self.chunks.map(|chunks| chunks.to_string())),
        ];
        options.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Returns the word for a value of an option.
fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Runs the command; returns only if that fails.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let Some((name, arguments)) = args.command.split_first() else {
        return Err(Failure::usage("no program to run"));
    };
    let shown = name.display();
    let library = library::find()?;
    let program = crate::program::find(name)
        .ok_or_else(|| Failure::new(format_args!("cannot run {shown}: no such program")).status(127))?;
    if let Some(reason) = program::raises_privileges(&program) {
        let why = "the dynamic loader would ignore weir's libpcap";
        let copy = "run a copy of the program, which has no privileges";
        let root = "run weir itself as root (sudo weir run ...)";
        let is_root = rustix::process::getuid().is_root();
        return Err(Failure::new(format_args!("cannot run {shown}: it {reason}, so {why}"))
            .hint(if is_root { copy.to_owned() } else { format!("{root}, or {copy}") })
            .status(126));
    }
    let directory = names::directory(&library)?;
    let report = args.report.then(|| ("WEIR_REPORT", report_here()));
    let mut command = Command::new(program);
    command
        .arg0(name)
        .args(arguments)
        .envs(args.environment())
        .envs(report)
        .env("LD_LIBRARY_PATH", before(&directory, env::var_os("LD_LIBRARY_PATH").as_deref()));
    let error = signals::pass_on(&mut command).map_err(Failure::new)?.exec();
    let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    Err(Failure::new(format_args!("cannot run {shown}: {error}")).status(status))
}

/// Returns where weir's libpcap prints its line: on standard error as it is here, which all children inherit, `FD:DEV:INO`.
fn report_here() -> String {
    let here = || -> rustix::io::Result<String> {
        let error = io::stderr();
        let file = fstat(&error)?;
        let copy = fcntl_dupfd_cloexec(&error, FIRST_FREE)?;
        fcntl_setfd(&copy, FdFlags::empty())?;
        Ok(format!("{}:{}:{}", copy.into_raw_fd(), file.st_dev, file.st_ino))
    };
    here().unwrap_or_else(|_| "1".to_owned())
}

/// Returns the value of `LD_LIBRARY_PATH` with `directory` before what is there.
fn before(directory: &Path, there: Option<&OsStr>) -> OsString {
    let mut path = directory.as_os_str().to_owned();
    if let Some(there) = there.filter(|there| !there.is_empty()) {
        path.push(":");
        path.push(there);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_first() {
        let path = |there: Option<&str>| before(Path::new("/lib/weir"), there.map(OsStr::new));
        assert_eq!(path(None), "/lib/weir");
        // An empty element would be the current directory.
        assert_eq!(path(Some("")), "/lib/weir");
        assert_eq!(path(Some("/a:/b")), "/lib/weir:/a:/b");
    }
}
