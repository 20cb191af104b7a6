//! The address of the metrics: TCP, on loopback unless another address is given, or a Unix socket.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Error;
use crate::control::{Removed, listen};

/// An address to serve metrics at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

/// Parses `9464`, `:9464`, `127.0.0.1:9464`, `localhost:9464`, `[::1]:9464`, `/run/weir/metrics`, `unix:metrics`.
fn parse(text: &str) -> Result<Address, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return if path.is_empty() {
            Err("unix: requires a path".to_owned())
        } else {
            Ok(Address::Unix(path.into()))
        };
    }
    if text.contains('/') {
        return Ok(Address::Unix(text.into()));
    }
    let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(Address::Tcp((Ipv4Addr::LOCALHOST, port).into()));
    }
    text.parse().map(Address::Tcp).map_err(|_| {
        "allowed: a port, an IP address with a port, or a path, such as 9464, [::1]:9464 or /run/weir.sock".to_owned()
    })
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text)
    }
}

#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

/// A client connection.
pub(super) trait Stream: Read + Write + AsFd + Send {
    /// Ends sending.
    fn end(&self);
}

impl Address {
    /// Returns the listener, and the Unix socket file that is removed at the end.
    pub(super) fn bind(&self) -> Result<(Listener, Option<Removed>), Error> {
        match self {
            Self::Tcp(address) => TcpListener::bind(address)
                .and_then(|listener| listener.set_nonblocking(true).map(|()| (Listener::Tcp(listener), None)))
                .map_err(|error| Error::Metrics { address: address.to_string(), error }),
            Self::Unix(path) => bind_unix(path)
                .map(|(listener, removed)| (Listener::Unix(listener, path.clone()), Some(removed)))
                .map_err(|error| Error::Metrics { address: path.display().to_string(), error }),
        }
    }
}

fn bind_unix(path: &Path) -> io::Result<(UnixListener, Removed)> {
    let listener = listen(path, None)?;
    let removed = Removed(path.to_owned());
    listener.set_nonblocking(true)?;
    Ok((listener, removed))
}

impl Listener {
    /// Accepts the next client, whose calls do not block.
    pub(super) fn accept(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Box::new(stream))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Box::new(stream))
            }
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(address) => write!(f, "http://{address}/metrics"),
                Err(error) => write!(f, "{error}"),
            },
            Self::Unix(_, path) => write!(f, "curl --unix-socket {} http://weir/metrics", path.display()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl Stream for TcpStream {
    fn end(&self) {
        let _gone_already = self.shutdown(std::net::Shutdown::Write);
    }
}

impl Stream for UnixStream {
    fn end(&self) {
        let _gone_already = self.shutdown(std::net::Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn addresses_are_loopback_unless_another_is_named() {
        for (text, expected) in [
            ("9464", "127.0.0.1:9464"),
            (":9464", "127.0.0.1:9464"),
            ("localhost:1", "127.0.0.1:1"),
            ("0.0.0.0:9464", "0.0.0.0:9464"),
            ("[::]:9464", "[::]:9464"),
        ] {
            assert_eq!(parse(text), Ok(Address::Tcp(expected.parse().expect("an address"))), "{text}");
        }
        for (text, expected) in [("/run/m", "/run/m"), ("./m", "./m"), ("unix:m", "m")] {
            assert_eq!(parse(text), Ok(Address::Unix(expected.into())), "{text}");
        }
        for text in ["", "eth0", "1.2.3.4", "::1", "127.0.0.1:99999", "example.org:80", "unix:"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_socket_that_was_left_is_replaced_and_no_other_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("metrics");
        let address = Address::Unix(path.clone());
        let first = bind_unix(&path).expect("nobody is there");
        assert!(address.bind().is_err(), "somebody is there");
        drop(first);
        drop(address.bind().expect("nobody is there any more"));
        assert!(!path.exists(), "it goes with who has it");
        fs::write(directory.path().join("file"), "mine").expect("a file");
        assert!(Address::Unix(directory.path().join("file")).bind().is_err());
        assert_eq!(fs::read(directory.path().join("file")).expect("still there"), b"mine");
    }
}
