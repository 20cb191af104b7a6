//! What reads a payload, and who gets which.

use std::fmt;

use crate::application::Application;
use crate::bytes::Bytes;
use crate::dhcp::Dhcp;
use crate::dhcp6::Dhcp6;
use crate::dns::Dns;
use crate::head::Kind;
use crate::http::Http;
use crate::message::Message;
use crate::reading::Reading;
use crate::segment::Segment;
use crate::sip::Sip;
use crate::tls::{self, Tls};

/// Reads the messages of a protocol. It keeps nothing: a message in several segments is read again from its
/// beginning, once [`length`](Parser::length) or the end of a line says that more can be told.
pub trait Parser: fmt::Debug + Sync {
    /// The name of the protocol: `dns`, `mdns`, `tls`, ...; empty if it cannot be told yet.
    fn protocol(&self) -> &'static str;

    /// Reads the message at the beginning of these bytes: the payload of a segment, or those of some segments of a TCP
    /// connection. Places count from where [`Bytes::at`] is 0.
    fn read(&self, bytes: Bytes<'_>) -> Reading<Message>;

    /// Returns how many bytes are needed to tell more of the message, if these say so: its length, as far as it is known.
    fn length(&self, bytes: Bytes<'_>) -> Option<usize>;

    /// Whether messages of a stream follow each other, so that where one ends the next begins.
    fn messages_follow(&self) -> bool;
}

/// A protocol and its functions.
#[derive(Debug)]
struct Known {
    protocol: &'static str,
    read: fn(Bytes<'_>) -> Reading<Message>,
    length: fn(Bytes<'_>) -> Option<usize>,
    messages_follow: bool,
}

impl Known {
    const fn new(protocol: &'static str, read: fn(Bytes<'_>) -> Reading<Message>) -> Self {
        Self { protocol, read, length: |_| None, messages_follow: false }
    }
}

impl Parser for Known {
    fn protocol(&self) -> &'static str {
        self.protocol
    }

    fn read(&self, bytes: Bytes<'_>) -> Reading<Message> {
        (self.read)(bytes)
    }

    fn length(&self, bytes: Bytes<'_>) -> Option<usize> {
        (self.length)(bytes)
    }

    fn messages_follow(&self) -> bool {
        self.messages_follow
    }
}

const DNS: Known = Known::new("dns", |bytes| Dns::read(bytes).map(Message::Dns));
const DNS_IN_STREAM: Known = Known {
    protocol: "dns",
    read: |bytes| Dns::read_in_stream(bytes).map(Message::Dns),
    length: Dns::length_in_stream,
    messages_follow: true,
};
const MULTICAST_DNS: Known = Known::new("mdns", |bytes| Dns::read(bytes).map(Message::Dns));
const TLS: Known =
    Known { length: Tls::length, ..Known::new("tls", |bytes| Tls::read(bytes).map(Message::Tls)) };
const HTTP: Known = Known::new("http", |bytes| Http::read(bytes).map(Message::Http));
const SIP: Known = Known::new("sip", |bytes| Sip::read(bytes).map(Message::Sip));
const DHCP: Known = Known::new("dhcp", |bytes| Dhcp::read(bytes).map(Message::Dhcp));
const DHCP6: Known = Known::new("dhcp6", |bytes| Dhcp6::read(bytes).map(Message::Dhcp6));

/// What may become a message.
const BEGINNING: Known = Known::new("", |_| Reading::Part(None));

/// Returns what reads a segment: what its ports stand for, else what its first bytes look like.
pub fn parser(segment: &Segment<'_>) -> Option<&'static dyn Parser> {
    let ports = [segment.source.port, segment.destination.port];
    let is_tcp = segment.is_tcp();
    Some(match Application::of(is_tcp, ports) {
        Some(Application::Dns) if is_tcp => &DNS_IN_STREAM,
        Some(Application::Dns) => &DNS,
        Some(Application::MulticastDns) => &MULTICAST_DNS,
        _ if is_tcp && tls::is_hello(segment.payload) => &TLS,
        _ if is_tcp && tls::may_be_hello(segment.payload) => &BEGINNING,
        Some(Application::Bootp) => &DHCP,
        Some(Application::Dhcp6) => &DHCP6,
        Some(Application::Sip) => &SIP,
        _ => match Kind::of(segment.payload.data)? {
            Kind::Sip => &SIP,
            Kind::Http if is_tcp => &HTTP,
            Kind::Open if is_tcp => &BEGINNING,
            Kind::Http | Kind::Open => return None,
        },
    })
}
