//! The part of HTTP/1.1 that a scrape needs: one request and one response per connection (RFC 9112).

use std::net::{Ipv4Addr, Ipv6Addr};

use httparse::Status;

use crate::page::ExpositionFormat;

/// A parsed request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// The metrics; without `body`, only the response head.
    Metrics { format: ExpositionFormat, body: bool },
    /// Anything else, with the status and text of the response.
    Other { status: &'static str, text: &'static str, body: bool },
}

/// Longest request head; that of a scrape has a few hundred bytes.
pub(super) const LONGEST: usize = 8 << 10;
/// Most header fields; a scrape has about ten.
const MOST_FIELDS: usize = 64;

impl Request {
    const fn error(status: &'static str, text: &'static str) -> Self {
        Self::Other { status, text, body: true }
    }

    /// Parses the request head at the start of `bytes`; `None` if it is not complete yet. `any_host`: whatever the client
    /// calls this host.
    pub(super) fn parse(bytes: &[u8], any_host: bool) -> Option<Self> {
        const LONG: Request = Request::error("431 Request Header Fields Too Large", "request too long\n");
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(bytes) {
            Ok(Status::Complete(end)) if end <= LONGEST => Some(Self::of_head(&request, any_host)),
            Ok(Status::Partial) if bytes.len() < LONGEST => None,
            Ok(_) | Err(httparse::Error::TooManyHeaders) => Some(LONG),
            Err(_) => Some(Self::error("400 Bad Request", "not an HTTP request\n")),
        }
    }

    fn of_head(request: &httparse::Request<'_, '_>, any_host: bool) -> Self {
        let body = match request.method {
            Some("GET") => true,
            Some("HEAD") => false,
            _ => return Self::error("405 Method Not Allowed", "GET and HEAD only\n"),
        };
        let mut hosts = values(request, "host");
        // A page of the web whose name now leads here must not read this (DNS rebinding): its browser sends that name.
        if !any_host && hosts.any(|host| !is_ours(host)) {
            return Self::error(
                "421 Misdirected Request",
                "use an IP address, localhost or this host's name as the host\n",
            );
        }
        match request.path.and_then(|target| target.split('?').next()) {
            Some("/metrics") => {
                let mut kinds = values(request, "accept");
                let accepts = kinds.any(|kinds| kinds.contains("application/openmetrics-text"));
                Self::Metrics {
                    format: if accepts {
                        ExpositionFormat::OpenMetrics
                    } else {
                        ExpositionFormat::Prometheus
                    },
                    body,
                }
            }
            Some("/") => Self::Other { status: "200 OK", text: "weir: the metrics are at /metrics\n", body },
            _ => Self::Other { status: "404 Not Found", text: "the metrics are at /metrics\n", body },
        }
    }
}

/// Returns the values of a header field; one that is not UTF-8 is empty, which is neither a host nor a media type.
fn values<'a>(request: &'a httparse::Request<'_, '_>, name: &'a str) -> impl Iterator<Item = &'a str> {
    let fields = request.headers.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
    fields.map(|field| str::from_utf8(field.value).unwrap_or_default().trim())
}

/// Returns whether a `Host` field has a name that nobody else can make lead here: an IP address, localhost or this host's
/// own name, alone or before a domain, with or without a port.
fn is_ours(host: &str) -> bool {
    is_one_of(host, rustix::system::uname().nodename().to_str().unwrap_or_default())
}

/// `own`: this host's name.
fn is_one_of(host: &str, own: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let inside = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    match inside {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => {
            let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
            let own = !own.is_empty() && short(name) == short(own);
            name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok() || own
        }
    }
}

/// Returns a response: its head and, if requested, `body`.
pub(super) fn answer(status: &str, kind: &str, body: &str, with_body: bool) -> Vec<u8> {
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        body.len()
    );
    if with_body {
        answer.push_str(body);
    }
    answer.into_bytes()
}

/// Returns the head of a response.
pub(super) fn head_of(answer: &[u8]) -> &[u8] {
    const END: &[u8] = b"\r\n\r\n";
    let end = answer.windows(END.len()).position(|window| window == END);
    &answer[..end.map_or(answer.len(), |end| end + END.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: &str) -> String {
        match Request::parse(request.as_bytes(), false) {
            None => "more".to_owned(),
            Some(Request::Metrics { format, body }) => format!("{format:?} {body}"),
            Some(Request::Other { status, .. }) => status[..3].to_owned(),
        }
    }

    #[test]
    fn names_that_others_can_make_lead_here_are_refused() {
        for host in ["localhost", "LOCALHOST:9464", "192.0.2.5", "10.0.0.1:80", "[::1]", "[2001:db8::1]:9464"]
        {
            assert_eq!(status(&format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\n\r\n")), "Prometheus true");
        }
        for host in
            ["evil.example", "evil.example:9464", "localhost.evil.example", "x", "", "::1", "[localhost]"]
        {
            let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(status(&request), "421", "{host}");
            // A web page cannot reach a Unix socket.
            let anywhere = Request::parse(request.as_bytes(), true);
            assert!(matches!(anywhere, Some(Request::Metrics { .. })), "{host}");
        }
        for (host, ours) in
            [("probe1", true), ("Probe1.lan:9464", true), ("probe2", false), ("x.probe1", false)]
        {
            assert_eq!(is_one_of(host, "probe1.example.org"), ours, "{host}");
        }
        assert_eq!((is_one_of("", ""), is_one_of(".lan", "")), (false, false));
        assert_eq!(status("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n"), "421");
    }

    #[test]
    fn requests_are_answered_by_what_they_are() {
        for (request, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n", "Prometheus true"),
            ("GET /metrics?name=x HTTP/1.0\r\n\r\n", "Prometheus true"),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", "Prometheus false"),
            (
                "GET /metrics HTTP/1.1\r\nACCEPT: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n",
                "OpenMetrics true",
            ),
            ("GET / HTTP/1.1\r\n\r\n", "200"),
            ("GET /etc/passwd HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("GET /metrics\r\n\r\n", "400"),
            ("GET /metrics HTTP/2\r\n\r\n", "400"),
            ("\u{16}\u{3}\u{1}\u{2}", "400"),
            ("", "more"),
            ("GET /metrics HTTP/1.1\r\n", "more"),
        ] {
            assert_eq!(status(request), expected, "{request:?}");
        }
        assert_eq!(status(&"x".repeat(LONGEST)), "431");
        assert_eq!(status(&format!("GET /metrics HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(LONGEST))), "431");
        let fields = |count| format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(count));
        assert_eq!(status(&fields(MOST_FIELDS)), "Prometheus true");
        assert_eq!(status(&fields(MOST_FIELDS + 1)), "431");
    }
}
