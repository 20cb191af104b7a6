//! The kernel's tables of TCP and UDP sockets (sock_diag(7)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::CallError;
use crate::netlink::{DUMP, Request, SOCK_DIAG, ask, word};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `struct inet_diag_msg`, without attributes.
const MESSAGE: usize = 72;

/// A socket that has a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Its cookie (`SO_COOKIE`, socket(7)).
    pub cookie: u64,
    /// The inode of its file: `/proc/PID/fd` shows it as `socket:[INODE]`. 0: no process has it open.
    pub inode: u64,
    /// `IPPROTO_TCP` or `IPPROTO_UDP`.
    pub protocol: u8,
    /// Its own address, unspecified if it has none, and port.
    pub local: (IpAddr, u16),
    /// The other end; unspecified and 0 if it has none.
    pub remote: (IpAddr, u16),
}

/// Returns the sockets of TCP and UDP in this thread's network namespace. Those of a protocol that the kernel does not tell of
/// (`CONFIG_INET_TCP_DIAG`, `CONFIG_INET_UDP_DIAG`) are missing.
///
/// # Errors
///
/// The kernel tells of none, or the netlink socket fails.
pub fn sockets() -> Result<Vec<Socket>, CallError> {
    let mut sockets = Vec::new();
    let mut refused = None;
    for protocol in [libc::IPPROTO_TCP, libc::IPPROTO_UDP] {
        for family in [libc::AF_INET, libc::AF_INET6] {
            let [protocol, family] =
                [protocol, family].map(|number| u8::try_from(number).expect("a small number"));
            // `struct inet_diag_req_v2`: family, protocol, no extensions, all states, any ends.
            let mut request = [0; 56];
            request[..8].copy_from_slice(&[family, protocol, 0, 0, 255, 255, 255, 255]);
            let request = Request::new(SOCK_DIAG_BY_FAMILY, DUMP, &request);
            let asked = ask(SOCK_DIAG, &request, SOCK_DIAG_BY_FAMILY, |message| {
                sockets.extend(parse(message, protocol));
            });
            refused = asked.err().or(refused);
        }
    }
    match refused {
        Some(error) if sockets.is_empty() => Err(CallError::new("list sockets (sock_diag)", error)),
        _ => Ok(sockets),
    }
}

/// Reads a `struct inet_diag_msg`: family, state, timer, retransmissions; ports, addresses, interface and cookie; then
/// numbers of which the last is the inode.
fn parse(message: &[u8], protocol: u8) -> Option<Socket> {
    let message = message.get(..MESSAGE)?;
    let port = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
    let address = |at: usize| match i32::from(message[0]) {
        libc::AF_INET => Some(IpAddr::from(Ipv4Addr::from(*message[at..].first_chunk::<4>()?))),
        libc::AF_INET6 => Some(Ipv6Addr::from(*message[at..].first_chunk::<16>()?).to_canonical()),
        _ => None,
    };
    Some(Socket {
        cookie: u64::from(word(&message[48..])) << 32 | u64::from(word(&message[44..])),
        inode: word(&message[68..]).into(),
        protocol,
        local: (address(8)?, port(4)),
        remote: (address(24)?, port(6)),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn own_sockets_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let udp = UdpSocket::bind("[::]:0").expect("a port");
        let all = match sockets() {
            Ok(all) => all,
            // A kernel without inet_diag.
            Err(error) => return assert_eq!(error.errno(), libc::ENOENT, "{error}"),
        };
        let expected = [
            (rustix::fs::fstat(listener.as_fd()), listener.local_addr(), libc::IPPROTO_TCP),
            (rustix::fs::fstat(udp.as_fd()), udp.local_addr(), libc::IPPROTO_UDP),
        ];
        for (file, local, protocol) in expected {
            let (file, local) = (file.expect("a file"), local.expect("an address"));
            let protocol = u8::try_from(protocol).expect("a small number");
            if !all.iter().any(|socket| socket.protocol == protocol) {
                weir_skip::this_test("the kernel does not tell of this protocol's sockets");
                continue;
            }
            let found = all.iter().find(|socket| socket.inode == file.st_ino).expect("it is there");
            assert_eq!((found.local, found.protocol), ((local.ip(), local.port()), protocol));
            assert!(found.cookie != 0 && found.remote.1 == 0, "{found:?}");
        }
    }

    #[test]
    fn messages_are_read_with_care() {
        let mut message = vec![0; MESSAGE];
        message[0] = 2;
        message[4..6].copy_from_slice(&[0x1f, 0x90]);
        message[8..12].copy_from_slice(&[10, 0, 0, 1]);
        message[44] = 7;
        let socket = parse(&message, 6).expect("a socket");
        assert_eq!((socket.local, socket.cookie), (([10, 0, 0, 1].into(), 8080), 7));
        for shorter in 0..message.len() {
            assert_eq!(parse(&message[..shorter], 6), None);
        }
        message[0] = 1;
        assert_eq!(parse(&message, 6), None);
    }
}
