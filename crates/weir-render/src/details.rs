//! The part of an object that comes from the payload: DNS, TLS, HTTP, SIP and DHCP.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Serialize;
use weir_parse::{Dhcp, Dhcp6, Dns, DnsRecord, Found, Http, Message, Placed, Sip, Tls};

/// Fields of the object itself.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Payload<'a> {
    /// The message goes on in the next segment, with which it is told as a whole, or is cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    dns: Option<DnsMessage<'a>>,
    /// The host that a TLS client asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_server_name: Option<&'a str>,
    /// The highest version that a client offers, or the one that the server chooses: `TLS 1.3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_version: Option<&'static str>,
    /// The application protocols that a TLS client offers, or the one that the server chooses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alpn: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<Head<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sip: Option<SipHead<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dhcp: Option<DhcpMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dhcp6: Option<Dhcp6Message<'a>>,
}

/// Port 53 of UDP or TCP, or mDNS.
#[derive(Debug, Serialize)]
struct DnsMessage<'a> {
    id: u16,
    response: bool,
    /// Of responses: `NOERROR`, `NXDOMAIN`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    rcode: Option<&'a str>,
    /// The first question.
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query_type: Option<&'a str>,
    /// At most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<Answer<'a>>,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    name: &'a str,
    r#type: &'a str,
    ttl: u32,
    /// In the notation of zone files; omitted for types that are not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a str>,
}

/// What is complete in this packet of the head of an HTTP/1 request or response.
#[derive(Debug, Serialize)]
struct Head<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
}

/// What is complete in this packet of the head of a SIP request or response.
#[derive(Debug, Serialize)]
struct SipHead<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cseq: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cseq_method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
}

/// DHCP or BOOTP.
#[derive(Debug, Serialize)]
struct DhcpMessage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'a str>,
    id: u32,
    response: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_mac: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_address: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    your_address: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_server: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relay: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_address: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_id: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fqdn: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vendor_class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subnet_mask: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routers: Vec<Ipv4Addr>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    name_servers: Vec<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a str>,
}

/// DHCPv6; the innermost message in those of relays.
#[derive(Debug, Serialize)]
struct Dhcp6Message<'a> {
    r#type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_duid: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<Ipv6Addr>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prefixes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fqdn: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    name_servers: Vec<Ipv6Addr>,
}

impl<'a> Payload<'a> {
    pub(crate) fn new(found: Option<&'a Found>) -> Self {
        let nothing = Self { incomplete: found.is_some_and(|found| !found.whole), ..Self::default() };
        match found.map(|found| &found.message) {
            Some(Message::Dns(dns)) => Self { dns: Some(DnsMessage::new(dns)), ..nothing },
            Some(Message::Http(http)) => Self { http: Some(Head::new(http)), ..nothing },
            Some(Message::Sip(sip)) => Self { sip: Some(SipHead::new(sip)), ..nothing },
            Some(Message::Dhcp(dhcp)) => Self { dhcp: Some(DhcpMessage::new(dhcp)), ..nothing },
            Some(Message::Dhcp6(dhcp)) => Self { dhcp6: Some(Dhcp6Message::new(dhcp)), ..nothing },
            Some(Message::Tls(Tls { server_name, version, alpn, .. })) => Self {
                tls_server_name: text(server_name.as_ref()),
                tls_version: *version,
                alpn: alpn.iter().map(|protocol| &*protocol.value).collect(),
                ..nothing
            },
            _ => nothing,
        }
    }
}

/// Returns what a text says.
fn text(placed: Option<&Placed<String>>) -> Option<&str> {
    placed.map(|placed| &*placed.value)
}

/// Returns what something with a place says.
fn value<T: Copy>(placed: Option<&Placed<T>>) -> Option<T> {
    placed.map(|placed| placed.value)
}

fn values<T: Copy>(placed: &[Placed<T>]) -> Vec<T> {
    placed.iter().map(|placed| placed.value).collect()
}

/// Returns bytes in hexadecimal.
fn hex(bytes: &[u8], between: &str) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(between)
}

impl<'a> DnsMessage<'a> {
    fn new(dns: &'a Dns) -> Self {
        let answer = |DnsRecord { name, kind, ttl, data, .. }: &'a DnsRecord| Answer {
            name,
            r#type: kind,
            ttl: *ttl,
            data: data.as_deref(),
        };
        Self {
            id: dns.id,
            response: dns.response,
            rcode: dns.rcode.as_deref(),
            query: text(dns.query.as_ref()),
            query_type: dns.query_type.as_deref(),
            answers: dns.answers.iter().map(|placed| answer(&placed.value)).collect(),
        }
    }
}

impl<'a> Head<'a> {
    fn new(http: &'a Http) -> Self {
        Self {
            method: text(http.method.as_ref()),
            host: text(http.host.as_ref()),
            path: text(http.path.as_ref()),
            status: http.status,
            reason: text(http.reason.as_ref()),
            version: http.version,
            user_agent: text(http.user_agent.as_ref()),
            content_type: text(http.content_type.as_ref()),
        }
    }
}

impl<'a> SipHead<'a> {
    fn new(sip: &'a Sip) -> Self {
        Self {
            method: text(sip.method.as_ref()),
            uri: text(sip.uri.as_ref()),
            status: sip.status,
            reason: text(sip.reason.as_ref()),
            from: text(sip.from.as_ref()),
            to: text(sip.to.as_ref()),
            call_id: text(sip.call_id.as_ref()),
            cseq: value(sip.cseq.as_ref()),
            cseq_method: text(sip.cseq_method.as_ref()),
            user_agent: text(sip.user_agent.as_ref()),
            server: text(sip.server.as_ref()),
            content_type: text(sip.content_type.as_ref()),
        }
    }
}

impl<'a> DhcpMessage<'a> {
    fn new(dhcp: &'a Dhcp) -> Self {
        Self {
            r#type: dhcp.kind.as_ref().map(|kind| &*kind.value),
            id: dhcp.id,
            response: dhcp.response,
            client_mac: dhcp.client_mac.as_ref().map(|mac| hex(mac, ":")),
            client_address: value(dhcp.client_address.as_ref()),
            your_address: value(dhcp.your_address.as_ref()),
            next_server: value(dhcp.next_server.as_ref()),
            relay: value(dhcp.relay.as_ref()),
            requested_address: value(dhcp.requested_address.as_ref()),
            server_id: value(dhcp.server_id.as_ref()),
            lease_seconds: value(dhcp.lease_seconds.as_ref()),
            host_name: text(dhcp.host_name.as_ref()),
            fqdn: text(dhcp.fqdn.as_ref()),
            vendor_class: text(dhcp.vendor_class.as_ref()),
            subnet_mask: value(dhcp.subnet_mask.as_ref()),
            routers: values(&dhcp.routers),
            name_servers: values(&dhcp.name_servers),
            domain: text(dhcp.domain.as_ref()),
        }
    }
}

impl<'a> Dhcp6Message<'a> {
    fn new(dhcp: &'a Dhcp6) -> Self {
        Self {
            r#type: &dhcp.kind,
            id: dhcp.id,
            client_duid: dhcp.client_duid.as_ref().map(|duid| hex(duid, "")),
            addresses: values(&dhcp.addresses),
            prefixes: dhcp.prefixes.iter().map(|prefix| prefix.value.to_string()).collect(),
            fqdn: text(dhcp.fqdn.as_ref()),
            name_servers: values(&dhcp.name_servers),
        }
    }
}
