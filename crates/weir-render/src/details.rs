//! The part of an object that comes from the payload: DNS, TLS and HTTP.

use serde::Serialize;
use weir_dissect::{Details, Dns, DnsRecord, Http, Tls};

/// Fields of the object itself.
#[derive(Debug, Serialize)]
pub(crate) struct Payload<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    dns: Option<Message<'a>>,
    /// The host that a TLS client asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_server_name: Option<&'a str>,
    /// The highest version that a client offers, or the one that the server chooses: `TLS 1.3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_version: Option<&'static str>,
    /// The application protocols that a TLS client offers, or the one that the server chooses.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    alpn: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<Head<'a>>,
}

/// Port 53 of UDP or TCP, or mDNS.
#[derive(Debug, Serialize)]
struct Message<'a> {
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
    pub(crate) fn new(details: &'a Details) -> Self {
        let tls = details.tls.as_ref();
        Self {
            dns: details.dns.as_ref().map(Message::new),
            tls_server_name: tls.and_then(|Tls { server_name, .. }| server_name.as_deref()),
            tls_version: tls.and_then(|tls| tls.version),
            alpn: tls.map_or(&[], |tls| &tls.alpn),
            http: details.http.as_ref().map(Head::new),
        }
    }
}

impl<'a> Message<'a> {
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
            query: dns.query.as_deref(),
            query_type: dns.query_type.as_deref(),
            answers: dns.answers.iter().map(answer).collect(),
        }
    }
}

impl<'a> Head<'a> {
    fn new(http: &'a Http) -> Self {
        Self {
            method: http.method.as_deref(),
            host: http.host.as_deref(),
            path: http.path.as_deref(),
            status: http.status,
            reason: http.reason.as_deref(),
            version: http.version,
            user_agent: http.user_agent.as_deref(),
            content_type: http.content_type.as_deref(),
        }
    }
}
