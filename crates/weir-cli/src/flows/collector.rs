//! A collector, or a file in its place, as the command line says it: `ipfix+tcp://HOST:PORT`, `ipfix-file:FILE`.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use weir::flows::export::{Format, Settings};

use super::tls::{self, Client};
use super::written::Written;
use crate::failure::Failure;

/// How long a datagram may wait for room in the socket.
const PATIENCE: Duration = Duration::from_secs(1);
/// What stands in front of a file's path.
const FILE: &str = "ipfix-file:";
/// IANA's for IPFIX over TLS.
const TLS_PORT: u16 = 4740;
/// The most bytes of a message that is no datagram: what is lost when a connection breaks is no more than a few of them.
const LONG: usize = 32 << 10;

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Udp,
    Tcp,
    Tls,
    /// None: the host is a file's path.
    File,
}

/// Whom flows are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Collector {
    pub(super) format: Format,
    pub(super) transport: Transport,
    host: String,
    port: u16,
    tls: tls::Options,
}

const SCHEMES: [(&str, Format, Transport); 5] = [
    ("ipfix", Format::Ipfix, Transport::Udp),
    ("netflow9", Format::Netflow9, Transport::Udp),
    ("netflow5", Format::Netflow5, Transport::Udp),
    ("ipfix+tcp", Format::Ipfix, Transport::Tcp),
    ("ipfix+tls", Format::Ipfix, Transport::Tls),
];

impl FromStr for Collector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "allowed: ipfix://HOST:PORT, netflow9://HOST:PORT or netflow5://HOST:PORT, over UDP; \
             ipfix+tcp://HOST:PORT, over TCP; ipfix+tls://HOST:PORT?ca=FILE&cert=FILE&key=FILE&name=NAME, over TLS; ipfix-file:FILE"
                .to_owned()
        };
        if let Some(path) = text.strip_prefix(FILE) {
            let (host, tls) = (path.to_owned(), tls::Options::default());
            let file = Self { format: Format::Ipfix, transport: Transport::File, host, port: 0, tls };
            return (!path.is_empty()).then_some(file).ok_or_else(wrong);
        }
        let (scheme, place) = text.split_once("://").ok_or_else(wrong)?;
        let (_, format, transport) =
            SCHEMES.into_iter().find(|(name, ..)| *name == scheme).ok_or_else(wrong)?;
        let (place, options) = place.split_once('?').map_or((place, None), |(place, all)| (place, Some(all)));
        let options = match options {
            None => Some(tls::Options::default()),
            Some(options) if transport == Transport::Tls => tls::Options::parse(options),
            Some(_) => None,
        };
        let options = options.ok_or_else(wrong)?;
        let place = place.strip_suffix('/').unwrap_or(place);
        // An address of IPv6 has brackets.
        let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => {
                host.parse::<Ipv6Addr>().map_err(|_| wrong())?;
                (host, port.strip_prefix(':').or_else(|| port.is_empty().then_some(port)).ok_or_else(wrong)?)
            }
            None => place.split_once(':').unwrap_or((place, "")),
        };
        let usual = if transport == Transport::Tls { TLS_PORT } else { format.port() };
        let port = if port.is_empty() { Ok(usual) } else { port.parse() };
        let port = port.ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        if host.is_empty()
            || host.contains(['/', '@', '?', '#'])
            || (host.contains(':') && !place.starts_with('['))
        {
            return Err(wrong());
        }
        Ok(Self { format, transport, host: host.to_owned(), port, tls: options })
    }
}

impl Display for Collector {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.transport == Transport::File {
            return write!(f, "{FILE}{}", self.host);
        }
        let is_it = |format, transport| (format, transport) == (self.format, self.transport);
        let scheme = SCHEMES.into_iter().find(|(_, format, transport)| is_it(*format, *transport));
        let (scheme, ..) = scheme.expect("all are there");
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

impl Collector {
    /// Says that it cannot be reached.
    pub(super) fn failed(&self, error: &io::Error) -> Failure {
        let failure = Failure::new(format_args!("cannot send flows to {self}: {error}"));
        let namespace = "flows are sent from this network namespace";
        match error.kind() {
            io::ErrorKind::ConnectionRefused => failure.hint(format!(
                "check that the collector runs, and listens on TCP port {}; {namespace}",
                self.port
            )),
            // The cause says what to do.
            io::ErrorKind::InvalidData => failure,
            _ => failure.hint(format!("check the name, the address and the routes to it; {namespace}")),
        }
    }

    /// Returns what makes TLS connections to it, if it has any.
    pub(super) fn tls(&self) -> Result<Option<Client>, Failure> {
        let failed = |why: String| self.failed(&io::Error::new(io::ErrorKind::InvalidData, why));
        let is_tls = self.transport == Transport::Tls;
        is_tls.then(|| Client::new(&self.tls, &self.host).map_err(failed)).transpose()
    }

    /// Creates the file, which must not be one of those that are read.
    pub(super) fn create(&self, read: &[PathBuf]) -> Result<Written, Failure> {
        let (path, failed) = (Path::new(&self.host), |error| {
            Failure::new(format_args!("cannot write flows to {}: {error}", self.host))
        });
        let is_same = |other: &PathBuf| {
            fs::canonicalize(path)
                .ok()
                .zip(fs::canonicalize(other).ok())
                .is_some_and(|(one, other)| one == other)
        };
        if read.iter().any(is_same) {
            return Err(failed(io::Error::other("it is the file that is read")));
        }
        Written::create(path).map_err(failed)
    }

    /// Looks up its addresses, at least one.
    pub(super) fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        let addresses = (self.host.as_str(), self.port).to_socket_addrs();
        let addresses: Vec<_> = addresses.map_err(|error| self.failed(&error))?.collect();
        match addresses.is_empty() {
            true => Err(self.failed(&io::ErrorKind::NotFound.into())),
            false => Ok(addresses),
        }
    }

    /// Opens a socket for datagrams to it, while that is permitted.
    pub(super) fn open(&self) -> Result<UdpSocket, Failure> {
        let address = self.addresses()?[0];
        let any = match address {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let open = || -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind(any)?;
            socket.connect(address)?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Ok(socket)
        };
        open().map_err(|error| self.failed(&error))
    }

    /// Returns how messages to it are made.
    pub(super) fn adapted(&self, settings: &Settings) -> Settings {
        match self.transport {
            Transport::Udp => settings.clone(),
            Transport::Tcp | Transport::Tls | Transport::File => {
                Settings { message: LONG, repeat: None, ..settings.clone() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_has_a_host_and_perhaps_a_port() {
        for (text, expected) in [
            ("ipfix://192.0.2.1:9999", "ipfix://192.0.2.1:9999"),
            ("ipfix://collector.example", "ipfix://collector.example:4739"),
            ("netflow9://localhost/", "netflow9://localhost:2055"),
            ("netflow5://[2001:db8::1]:77", "netflow5://[2001:db8::1]:77"),
            ("ipfix://[::1]", "ipfix://[::1]:4739"),
            ("ipfix+tcp://[::1]", "ipfix+tcp://[::1]:4739"),
            ("ipfix+tcp://a:99", "ipfix+tcp://a:99"),
            ("ipfix-file:a/b?c", "ipfix-file:a/b?c"),
            ("ipfix+tls://a", "ipfix+tls://a:4740"),
            ("ipfix+tls://[::1]:99/?ca=/x", "ipfix+tls://[::1]:99"),
        ] {
            assert_eq!(
                text.parse().map(|collector: Collector| collector.to_string()),
                Ok(expected.to_owned())
            );
        }
        for text in [
            "",
            "192.0.2.1:4739",
            "sflow://a:1",
            "ipfix://",
            "ipfix://:4739",
            "ipfix://a:0",
            "ipfix://a:70000",
            "ipfix://::1",
            "ipfix://[::1",
            "ipfix://[a]:1",
            "ipfix://[::1]x",
            "ipfix://a/b",
            "ipfix://user@a",
            "netflow9+tcp://a",
            "ipfix+tcp://a?ca=b",
            "ipfix-file:",
            "ipfix+tls://a?",
            "ipfix+tls://a?cert=b",
        ] {
            assert!(text.parse::<Collector>().is_err(), "{text}");
        }
    }
}
