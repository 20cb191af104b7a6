//! What the payload of TCP or UDP says, for programs: looked up only when asked for.

mod dns;
mod http;
mod service;
mod tls;

use crate::Printer;
use crate::base::bytes::Bytes;
pub use crate::details::dns::{Dns, DnsRecord};
pub use crate::details::http::Http;
pub use crate::details::tls::Tls;

const DNS: u16 = 53;
const MDNS: u16 = 5353;

/// The application layer of one packet. Of nested packets, the outermost that has any of it.
///
/// Text is as in the packet, with U+FFFD in place of what is not UTF-8: it can contain control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Details {
    /// A DNS or mDNS message, identified by its port.
    pub dns: Option<Dns>,
    /// A TLS hello, on any TCP port.
    pub tls: Option<Tls>,
    /// The head of an HTTP/1 request or response, on any TCP port.
    pub http: Option<Http>,
}

impl Details {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn tcp(&mut self, ports: [u16; 2], payload: Bytes<'_>) -> Option<&'static str> {
        if ports.contains(&DNS) {
            // Each message follows its length. Only a whole message at the start of a segment is read.
            let len = usize::from(payload.u16(0).ok()?);
            self.dns = Dns::read(payload.from(2).first(len)).filter(|_| len + 2 <= payload.len);
            return self.dns.as_ref().map(|_| "dns");
        }
        self.tls = Tls::read(payload);
        if self.tls.is_some() {
            return Some("tls");
        }
        self.http = Http::read(payload.data);
        self.http.as_ref().map(|_| "http")
    }

    fn udp(&mut self, ports: [u16; 2], payload: Bytes<'_>) -> Option<&'static str> {
        let name = if ports.contains(&DNS) {
            "dns"
        } else if ports.contains(&MDNS) {
            "mdns"
        } else {
            return None;
        };
        self.dns = Dns::read(payload);
        self.dns.as_ref().map(|_| name)
    }
}

impl Printer<'_> {
    /// Reads the payload of a TCP segment.
    pub(crate) fn tcp_details(&mut self, source: u16, destination: u16, payload: Bytes<'_>) {
        self.detail(|details| details.tcp([source, destination], payload));
    }

    /// Reads the payload of a UDP datagram.
    pub(crate) fn udp_details(&mut self, source: u16, destination: u16, payload: Bytes<'_>) {
        self.detail(|details| details.udp([source, destination], payload));
    }

    fn detail(&mut self, read: impl FnOnce(&mut Details) -> Option<&'static str>) {
        if let Some(details) = self.details.as_deref_mut().filter(|details| details.is_empty())
            && let Some(protocol) = read(details)
        {
            self.facts.protocol = Some(protocol);
        }
    }
}
