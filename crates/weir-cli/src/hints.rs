//! Errors and warnings of the service, in terms of the command line.

use std::io;

use weir_service::ClientError;
use weir_service::{Error, Warning};

use crate::failure::Failure;
use crate::style;

/// Prints a warning.
pub(crate) fn warn(warning: &Warning) {
    let text = match warning {
        Warning::NoControl { .. } => {
            format!("{warning}; try --control PATH")
        }
        Warning::ReadyDescriptor(error) => format!("cannot write to --ready-fd: {error}"),
        _ => warning.to_string(),
    };
    style::say(format_args!("{}: {}", style::stderr().yellow("warning"), style::visible(&text)));
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Weir(error) => error.into(),
            Error::Write(error) => error.into(),
            Error::Client(error) => error.into(),
            Error::Confine(_) => Self::new(error).hint("--no-confine runs it with full privileges"),
            Error::UnknownUser(name) => {
                Self::usage(format!("-Z {name}: no such user")).hint("`getent passwd` lists users")
            }
            Error::User { name, why } => Self::new(format_args!("-Z {name}: {why}")),
            Error::SwitchUser { name, why } => Self::new(format_args!("-Z {name}: {why}"))
                .hint("changing the user requires root, or CAP_SETUID and CAP_SETGID"),
            Error::UnknownGroup(_) => Self::usage(error.to_string()).hint("`getent group` lists groups"),
            Error::Archive { ref directory, error: ref cause } => {
                let place = directory.display();
                let hint = match cause.kind() {
                    io::ErrorKind::PermissionDenied => {
                        format!("give the user that weir runs as (-Z) the right to write in {place}")
                    }
                    _ => "choose another directory".to_owned(),
                };
                Self::new(error).hint(hint)
            }
            Error::Helper(_) | Error::ArchiveHelper(_) => {
                Self::new(error).hint("--no-confine runs without it")
            }
            Error::Maker(why) => Self::new(format_args!(
                "cannot start the process that builds filters for --control-group: {why}"
            )),
            Error::ControlThread(error) => {
                Self::new(format_args!("cannot start a thread for --control: {error}"))
            }
            Error::MetricsThread(error) => {
                Self::new(format_args!("cannot start the thread for --metrics: {error}"))
            }
            Error::ReadyDescriptor { number, error } => {
                Self::usage(format!("cannot write to --ready-fd {number}: {error}"))
                    .hint(format!("open it in the shell: weir ... --ready-fd {number} {number}>FILE"))
            }
            Error::Metrics { error: ref cause, .. } => {
                let hint = match cause.kind() {
                    io::ErrorKind::AddrInUse | io::ErrorKind::AlreadyExists => {
                        Some("the address is in use; choose another one with --metrics")
                    }
                    io::ErrorKind::AddrNotAvailable => {
                        Some("not an address of this machine; `ip address` lists them")
                    }
                    _ => None,
                };
                hint.into_iter().fold(Self::new(&error), Self::hint)
            }
            _ => Self::new(error),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        const LIST: &str = "to list what runs: weir ctl list";
        const WHO: &str = "only its own user, its --control-group and root may query it";
        match &error {
            ClientError::Connect { error: cause, .. } if cause.kind() == io::ErrorKind::PermissionDenied => {
                Self::new(error).hint(WHO)
            }
            ClientError::NoProcess(_) | ClientError::Connect { .. } => Self::new(error).hint(LIST),
            ClientError::SeveralRun(_) => {
                Self::usage(format!("{error}: choose one with --target")).hint(LIST)
            }
            ClientError::Late(_) => {
                Self::new(error).hint("it is stopped, or busy with a change of somebody else: try again")
            }
            ClientError::Closed => Self::new(error).hint(WHO),
            ClientError::Refused(_) | ClientError::PartlyChanged(_) => {
                Self::new(style::visible(&error.to_string()))
            }
            _ => Self::new(error),
        }
    }
}
