//! The part of an object that comes from the payload: DNS, TLS and HTTP.

use serde::Serialize;
use weir_parse::{Dns, DnsRecord, Http, Message, Placed, Tls};

/// Fields of the object itself.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Payload<'a> {
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

impl<'a> Payload<'a> {
    pub(crate) fn new(message: Option<&'a Message>) -> Self {
        let nothing = Self::default();
        match message {
            Some(Message::Dns(dns)) => Self { dns: Some(DnsMessage::new(dns)), ..nothing },
            Some(Message::Http(http)) => Self { http: Some(Head::new(http)), ..nothing },
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
