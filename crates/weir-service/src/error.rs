//! What can go wrong.

use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;

use weir::writer::WriteError;

/// Why a running capture cannot be asked, or what it answered instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// This process has no control socket in any of the usual places.
    #[error("process {0} is no running weir, or has no control socket")]
    NoProcess(u32),
    /// The socket does not answer.
    #[error("cannot connect to the process at {}: {error}", path.display())]
    Connect {
        /// Path of the socket.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// Nothing listens in any of the usual places.
    #[error("no running weir accepts control connections")]
    NoneRuns,
    /// One of these must be chosen.
    #[error("{0} weir processes are running")]
    SeveralRun(usize),
    /// The request could not be sent.
    #[error("cannot send to the process: {0}")]
    Send(io::Error),
    /// The answer did not come in time.
    #[error("the process did not answer within {} seconds", .0.as_secs())]
    Late(std::time::Duration),
    /// The answer could not be received.
    #[error("cannot receive the answer of the process: {0}")]
    Receive(io::Error),
    /// The connection was closed.
    #[error("the process did not answer")]
    Closed,
    /// It refused, for a reason that it sent; any text can be in it.
    #[error("the process refused: {0}")]
    Refused(String),
    /// Some members of a set may have changed, but not all, for a reason that the capture sent.
    #[error("cannot change the whole set: {0}")]
    PartlyChanged(String),
    /// The capture sent the answer to another request.
    #[error("unexpected answer: {0}")]
    Unexpected(String),
}

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// From the library.
    #[error(transparent)]
    Weir(#[from] weir::Error),
    /// From the writer of files.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The process could not give up its rights.
    #[error("cannot sandbox weir: {0}")]
    Confine(String),
    /// There is no such user.
    #[error("no user named `{0}`")]
    UnknownUser(String),
    /// The user cannot be looked up.
    #[error("cannot look up user `{name}`: {why}")]
    User {
        /// Name of the user.
        name: String,
        /// The cause.
        why: String,
    },
    /// The process cannot become this user.
    #[error("cannot switch to user `{name}`: {why}")]
    SwitchUser {
        /// Name of the user.
        name: String,
        /// The cause.
        why: String,
    },
    /// There is no such group.
    #[error("no group named `{0}`")]
    UnknownGroup(String),
    /// The group cannot be looked up.
    #[error("{0}")]
    Group(String),
    /// A process that opens files or runs programs did not start.
    #[error("cannot start the process that opens files: {0}")]
    Helper(String),
    /// A directory cannot be filled with files.
    #[error("cannot write files to {}: {error}", directory.display())]
    Archive {
        /// The directory.
        directory: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The process that fills a directory did not start.
    #[error("cannot start the process that creates files (weir-archive): {0}")]
    ArchiveHelper(String),
    /// A program, or the process that starts it, did not start.
    #[error("cannot start {}: {why}", program.display())]
    Launcher {
        /// The program.
        program: PathBuf,
        /// The cause.
        why: String,
    },
    /// The process that builds filters did not start.
    #[error("cannot start the process that builds filters (weir-programs): {0}")]
    Maker(String),
    /// A thread that serves the control socket did not start.
    #[error("cannot start a thread for the control socket: {0}")]
    ControlThread(io::Error),
    /// Metrics were asked for, but the account has [none](crate::control::Account::into_metrics).
    #[error("cannot serve metrics: `{0}` has none")]
    NoMetrics(&'static str),
    /// The thread that serves metrics did not start.
    #[error("cannot start the thread for the metrics: {0}")]
    MetricsThread(io::Error),
    /// The control socket cannot be created.
    #[error("cannot listen at {}: {error}", path.display())]
    Listen {
        /// Path of the socket.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The metrics cannot be served.
    #[error("cannot serve metrics at {address}: {error}")]
    Metrics {
        /// The address.
        address: String,
        /// The cause.
        error: io::Error,
    },
    /// A descriptor to write to when ready cannot be used.
    #[error("cannot write to descriptor {number}: {error}")]
    ReadyDescriptor {
        /// Number of the descriptor.
        number: RawFd,
        /// The cause.
        error: io::Error,
    },
    /// Signal handlers cannot be installed.
    #[error("cannot install signal handlers: {0}")]
    Signals(io::Error),
    /// A running capture cannot be asked, or refused.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A message on the control socket came without all of its descriptors.
    #[error("a message without all of its descriptors")]
    Descriptors,
    /// A filter could not be built.
    #[error("{0}")]
    Filter(String),
}

/// What went wrong without being a reason to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// None of the usual places can have the control socket; this is the first of them.
    #[error("cannot listen for `weir ctl` at {}: {error}", path.display())]
    NoControl {
        /// Path of the socket.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// Nobody could be told through the descriptor that the capture is ready.
    #[error("cannot write to the descriptor for readiness: {0}")]
    ReadyDescriptor(io::Error),
    /// The service manager could not be told that the capture is ready.
    #[error("cannot write to $NOTIFY_SOCKET: {0}")]
    Notify(io::Error),
    /// The service manager is not there.
    #[error("cannot connect to $NOTIFY_SOCKET, {name}: {error}")]
    Manager {
        /// Value of the variable.
        name: String,
        /// The cause.
        error: io::Error,
    },
}
