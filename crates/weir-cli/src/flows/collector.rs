//! A collector, as the command line says it: `ipfix://HOST:PORT`.

use std::fmt::{self, Display, Formatter};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::str::FromStr;
use std::time::Duration;

use weir::flows::export::Format;

use crate::failure::Failure;

/// How long a datagram may wait for room in the socket.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whom flows are sent to, over UDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Collector {
    pub(super) format: Format,
    host: String,
    port: u16,
}

const SCHEMES: [(&str, Format); 3] =
    [("ipfix", Format::Ipfix), ("netflow9", Format::Netflow9), ("netflow5", Format::Netflow5)];

impl FromStr for Collector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "allowed: ipfix://HOST:PORT, netflow9://HOST:PORT or netflow5://HOST:PORT, over UDP".to_owned()
        };
        let (scheme, place) = text.split_once("://").ok_or_else(wrong)?;
        let (_, format) = SCHEMES.into_iter().find(|(name, _)| *name == scheme).ok_or_else(wrong)?;
        let place = place.strip_suffix('/').unwrap_or(place);
        // An address of IPv6 has brackets.
        let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => {
                host.parse::<Ipv6Addr>().map_err(|_| wrong())?;
                (host, port.strip_prefix(':').or_else(|| port.is_empty().then_some(port)).ok_or_else(wrong)?)
            }
            None => place.split_once(':').unwrap_or((place, "")),
        };
        let port = if port.is_empty() { Ok(format.port()) } else { port.parse() };
        let port = port.ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        if host.is_empty()
            || host.contains(['/', '@', '?', '#'])
            || (host.contains(':') && !place.starts_with('['))
        {
            return Err(wrong());
        }
        Ok(Self { format, host: host.to_owned(), port })
    }
}

impl Display for Collector {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (scheme, _) =
            SCHEMES.into_iter().find(|(_, format)| *format == self.format).expect("all are there");
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

impl Collector {
    /// Opens a socket for it, while that is permitted.
    pub(super) fn open(&self) -> Result<UdpSocket, Failure> {
        let failed = |error| {
            let failure = Failure::new(format_args!("cannot send flows to {self}: {error}"));
            failure.hint("check the name, the address and the routes to it; flows are sent from this network namespace")
        };
        let address = (self.host.as_str(), self.port).to_socket_addrs().map_err(failed)?.next();
        let address = address.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
        let any = match address {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(any).map_err(failed)?;
        socket.connect(address).map_err(failed)?;
        socket.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        Ok(socket)
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
        ] {
            assert!(text.parse::<Collector>().is_err(), "{text}");
        }
    }
}
