//! What was seen of a socket.

use std::sync::Arc;

use weir_packet::Endpoint;

use crate::Process;

/// What kind of socket it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SocketKind {
    /// `SOCK_STREAM`: TCP, or another protocol with connections.
    Stream,
    /// `SOCK_DGRAM`: UDP, or ICMP echo, whose ports are the echo's identifier.
    Datagram,
    /// `SOCK_RAW`: gets copies of all packets of its protocol, and sends any.
    Raw,
    /// Any other (`SOCK_SEQPACKET`, `SOCK_DCCP`).
    Other,
}

/// What has happened to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// It was there before anybody looked. The process is one that holds it; a socket that several hold is sighted once for each.
    Found,
    /// The process has made it.
    Created,
    /// The process has bound it to an address or port.
    Bound,
    /// The process connects it: from TCP on, a connection begins; UDP keeps the other end in mind.
    Connecting,
    /// The process has sent something on it without a connection.
    Sent,
    /// It takes connections from now on.
    Listening,
    /// The kernel has made it for a connection that somebody else began; the process is that of the listening socket.
    Accepted,
    /// The process uses it: it has accepted it, been handed it, sent or received on it.
    Taken,
    /// Its connection stands.
    Established,
    /// Nobody has it open any longer. The kernel may still send: the rest, FIN, acknowledgements.
    Closed,
}

/// A socket at some time, and who has done something with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// When, in nanoseconds since the Unix epoch, by the clock of packets' timestamps.
    pub at: u64,
    /// The kernel's number of the socket, never used again (`SO_COOKIE`, socket(7)).
    pub socket: u64,
    /// The kernel's number of the network namespace, never used again (`SO_NETNS_COOKIE`).
    pub namespace: u64,
    /// Its kind.
    pub kind: SocketKind,
    /// Its protocol in IP's header (`IPPROTO_*`); 255 is `IPPROTO_RAW`, which sends any.
    pub protocol: u8,
    /// Its own end: an unspecified address is any, port 0 is not known yet. An IPv6 socket that takes IPv4, too, has `::`; IPv4
    /// addresses in IPv6 are given as IPv4.
    pub local: Endpoint,
    /// The other end, if it has one that is known.
    pub remote: Option<Endpoint>,
    /// What happened.
    pub cause: Cause,
    /// The process that did it, or as [`Cause`] says; nothing where the kernel did and no process is known.
    pub process: Option<Arc<Process>>,
}
