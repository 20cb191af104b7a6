//! `--ready-fd` and `$NOTIFY_SOCKET`: report that weir has started to capture.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::RawFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use clap::Args;
use weir_sys::inherited;

use crate::failure::Failure;
use crate::style;

/// Longest time for notifying systemd; packets wait in the pool meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ReadyArgs {
    /// When ready, write a newline to file descriptor N and close it.
    ///
    /// No packet that arrives later is missed. systemd needs no option: weir notifies it through
    /// $NOTIFY_SOCKET.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(RawFd).range(0..))]
    ready_fd: Option<RawFd>,
}

impl ReadyArgs {
    /// Takes the descriptor and connects to systemd. Must be called before other processes are forked, which would keep
    /// the descriptor open, and before privileges are dropped.
    pub(crate) fn take(&self) -> Result<Ready, Failure> {
        let take = |number| match inherited::taken(number) {
            Ok(descriptor) => Ok(File::from(descriptor)),
            Err(error) => Err(Failure::usage(format!("cannot write to --ready-fd {number}: {error}"))
                .hint(format!("open it in the shell: weir ... --ready-fd {number} {number}>FILE"))),
        };
        Ok(Ready { descriptor: self.ready_fd.map(take).transpose()?, manager: manager() })
    }
}

/// The recipients of the notification.
#[derive(Debug)]
pub(crate) struct Ready {
    descriptor: Option<File>,
    manager: Option<UnixDatagram>,
}

impl Ready {
    /// Reports that every packet is captured from now on. The capture continues even if this fails.
    pub(crate) fn tell(self) {
        if let Some(Err(error)) = self.descriptor.map(|mut file| file.write_all(b"\n")) {
            warn(format_args!("cannot write to --ready-fd: {error}"));
        }
        if let Some(Err(error)) = self.manager.map(|socket| socket.send(b"READY=1")) {
            warn(format_args!("cannot write to $NOTIFY_SOCKET: {error}"));
        }
    }
}

/// Connects to the service manager that started this process and is waiting.
fn manager() -> Option<UnixDatagram> {
    let name = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty())?;
    let said = |error: &io::Error| {
        warn(format_args!("cannot connect to $NOTIFY_SOCKET, {}: {error}", name.display()));
    };
    connect(&name).inspect_err(said).ok()
}

/// Connected, because seccomp later forbids sending to an address.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

fn warn(what: std::fmt::Arguments<'_>) {
    let what = style::visible(&what.to_string());
    style::say(format_args!("{}: {what}", style::stderr().yellow("warning")));
}
