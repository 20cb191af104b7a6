//! Reports that the program has started to capture, through a descriptor and `$NOTIFY_SOCKET`.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::RawFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use weir_sys::inherited;

use crate::{Error, Warning};

/// Longest time for notifying systemd; packets wait in the pool meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);

/// The recipients of the notification.
#[derive(Debug)]
pub(crate) struct Ready {
    descriptor: Option<File>,
    manager: Option<UnixDatagram>,
}

impl Ready {
    /// Takes the descriptor with this number and connects to systemd. Must be called before other processes are forked,
    /// which would keep the descriptor open, and before privileges are dropped.
    ///
    /// # Errors
    ///
    /// If the descriptor is not open for writing.
    pub(crate) fn take(descriptor: Option<RawFd>, warn: impl FnOnce(&Warning)) -> Result<Self, Error> {
        let take = |number| match inherited::taken(number) {
            Ok(descriptor) => Ok(File::from(descriptor)),
            Err(error) => Err(Error::ReadyDescriptor { number, error }),
        };
        Ok(Self { descriptor: descriptor.map(take).transpose()?, manager: manager(warn) })
    }

    /// Reports that every packet is captured from now on. The capture continues even if this fails.
    pub(crate) fn tell(self, mut warn: impl FnMut(&Warning)) {
        if let Some(Err(error)) = self.descriptor.map(|mut file| file.write_all(b"\n")) {
            warn(&Warning::ReadyDescriptor(error));
        }
        if let Some(Err(error)) = self.manager.map(|socket| socket.send(b"READY=1")) {
            warn(&Warning::Notify(error));
        }
    }
}

/// Connects to the service manager that started this process and is waiting.
fn manager(warn: impl FnOnce(&Warning)) -> Option<UnixDatagram> {
    let name = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty())?;
    match connect(&name) {
        Ok(socket) => Some(socket),
        Err(error) => {
            warn(&Warning::Manager { name: name.display().to_string(), error });
            None
        }
    }
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
