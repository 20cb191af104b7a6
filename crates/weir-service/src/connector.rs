//! Makes TCP connections for a confined process, which may not: in a process of its own that has neither packets nor
//! privileges.
//!
//! ```text
//! program: Connector -- the number of an address -->  weir-connect: TCP, to these addresses
//!                    <-- a socket ------------------
//! ```
//!
//! The process knows all addresses from the start, and reads nothing from its connections. It hands sockets over before they are
//! connected, so it never waits for a host. Whoever asks has to [`wait`](Connector::connect).

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use serde::{Deserialize, Serialize};
use weir_sys::fork::{Forked, fork};
use weir_sys::user::User;

use crate::Error;
use crate::broker::{receive, send};
use crate::confine::{Become, Needs, confine_user};

/// The kernel ends a connection whose host has confirmed nothing for so long.
const SILENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// The first message: the process is confined, or why it ends.
    Began { refused: Option<String> },
    /// Comes with a socket.
    Connecting,
    /// The kernel's error.
    Errno(i32),
}

/// The process that connects, asked one request at a time.
#[derive(Debug)]
pub struct Connector(Mutex<Forked>);

impl Connector {
    /// Starts the process, before this one has other threads and is confined. If root starts it, it becomes another user.
    ///
    /// # Errors
    ///
    /// If the process does not start, or cannot be confined.
    pub fn start(addresses: &[SocketAddr]) -> Result<Self, Error> {
        let user = Become::find(None)?;
        let process = fork(c"weir-connect", |socket| serve(addresses, user.user(), &socket));
        let process = process.map_err(|error| helper(&error))?;
        match receive(process.socket()).map_err(|error| helper(&error))? {
            Some((Answer::Began { refused: None }, _)) => Ok(Self(Mutex::new(process))),
            Some((Answer::Began { refused: Some(why) }, _)) => Err(helper(&why)),
            _ => Err(helper(&"it has ended")),
        }
    }

    /// Returns a socket that does not block and connects to the address with this number. It is writable once it is connected; if
    /// that fails, the next call says why.
    ///
    /// # Errors
    ///
    /// If the kernel knows already that it fails, or there is no such address, or the process has ended.
    pub fn connect(&self, number: usize) -> io::Result<OwnedFd> {
        let process = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = || io::Error::other("the helper process that connects (weir-connect) has ended");
        send(process.socket(), &number, None).map_err(|_| gone())?;
        match receive(process.socket())?.ok_or_else(gone)? {
            (Answer::Connecting, Some(socket)) => Ok(socket),
            (Answer::Errno(errno), _) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn helper(why: &dyn Display) -> Error {
    Error::Helper(why.to_string())
}

/// Connects until the program has ended.
fn serve(addresses: &[SocketAddr], user: Option<&User>, program: &OwnedFd) {
    let ports: BTreeSet<u16> = addresses.iter().map(SocketAddr::port).collect();
    let refused = confine_user(&Needs::to_connect(ports.into_iter().collect()), user);
    let refused = refused.err().map(|error| error.to_string());
    let ends = refused.is_some();
    if send(program, &Answer::Began { refused }, None).is_err() || ends {
        return;
    }
    while let Ok(Some((number, _))) = receive::<usize>(program) {
        let made = addresses.get(number).ok_or(Errno::INVAL).and_then(begin);
        let answered = match &made {
            Ok(socket) => send(program, &Answer::Connecting, Some(socket.as_fd())),
            Err(errno) => send(program, &Answer::Errno(errno.raw_os_error()), None),
        };
        if answered.is_err() {
            return;
        }
    }
}

/// Begins a connection.
fn begin(address: &SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    sockopt::set_tcp_user_timeout(&socket, u32::try_from(SILENCE.as_millis()).unwrap_or(u32::MAX))?;
    match connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use weir_sys::fork::in_a_test;

    use super::*;

    #[test]
    fn it_connects_to_its_addresses_and_to_no_others() {
        let said = in_a_test(|| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let listening = listener.local_addr().expect("an address");
            let gone = TcpListener::bind("127.0.0.1:0").and_then(|gone| gone.local_addr()).expect("a port");
            let connector = Connector::start(&[listening, gone]).expect("a process");
            for _ in 0..2 {
                let mut connected = TcpStream::from(connector.connect(0).expect("a socket"));
                let (mut accepted, _) = listener.accept().expect("a connection");
                connected.set_nonblocking(false).expect("a socket");
                connected.write_all(b"well").expect("room");
                drop(connected);
                let mut said = String::new();
                accepted.read_to_string(&mut said).expect("text");
                assert_eq!(said, "well");
            }
            // The kernel may know at once, or a little later.
            let refused = connector.connect(1).and_then(|socket| {
                let mut socket = TcpStream::from(socket);
                socket.set_nonblocking(false)?;
                socket.read(&mut [0])
            });
            assert_eq!(refused.map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionRefused));
            let other = connector.connect(2).map_err(|error| error.raw_os_error());
            assert_eq!(other.err(), Some(Some(libc::EINVAL)));
            "well".to_owned()
        });
        assert_eq!(said, "well");
    }
}
