//! The part of HTTP/1.1 that a scrape needs: one request and one response per connection (RFC 9112).

use crate::page::Form;

/// A parsed request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// The metrics; without `body`, only the response head.
    Metrics { form: Form, body: bool },
    /// Anything else, with the status and text of the response.
    Other { status: &'static str, text: &'static str, body: bool },
}

/// Longest request head; that of a scrape has a few hundred bytes.
pub(super) const LONGEST: usize = 8 << 10;

impl Request {
    const fn error(status: &'static str, text: &'static str) -> Self {
        Self::Other { status, text, body: true }
    }

    /// Parses the request head at the start of `bytes`; `None` if it is not complete yet.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let Some(end) = end.filter(|end| *end <= LONGEST) else {
            let long = bytes.len() >= LONGEST;
            return long.then(|| Self::error("431 Request Header Fields Too Large", "request too long\n"));
        };
        Some(Self::of_head(&bytes[..end]))
    }

    fn of_head(head: &[u8]) -> Self {
        const BAD: Request = Request::error("400 Bad Request", "not an HTTP request\n");
        let Ok(head) = str::from_utf8(head) else { return BAD };
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return BAD;
        };
        if !version.starts_with("HTTP/1.") {
            return BAD;
        }
        let body = match method {
            "GET" => true,
            "HEAD" => false,
            _ => return Self::error("405 Method Not Allowed", "GET and HEAD only\n"),
        };
        match target.split('?').next() {
            Some("/metrics") => {
                let accepts = lines
                    .filter_map(|line| line.split_once(':'))
                    .filter(|(name, _)| name.eq_ignore_ascii_case("accept"))
                    .any(|(_, value)| value.contains("application/openmetrics-text"));
                Self::Metrics { form: if accepts { Form::OpenMetrics } else { Form::Prometheus }, body }
            }
            Some("/") => Self::Other { status: "200 OK", text: "weir: the metrics are at /metrics\n", body },
            _ => Self::Other { status: "404 Not Found", text: "the metrics are at /metrics\n", body },
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
        match Request::parse(request.as_bytes()) {
            None => "more".to_owned(),
            Some(Request::Metrics { form, body }) => format!("{form:?} {body}"),
            Some(Request::Other { status, .. }) => status[..3].to_owned(),
        }
    }

    #[test]
    fn requests_are_answered_by_what_they_are() {
        for (request, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "Prometheus true"),
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
            ("\r\n\r\n", "400"),
            ("\u{16}\u{3}\u{1}\u{2}", "more"),
            ("GET /metrics HTTP/1.1\r\n", "more"),
        ] {
            assert_eq!(status(request), expected, "{request:?}");
        }
        assert_eq!(status(&"x".repeat(LONGEST)), "431");
        assert_eq!(status(&format!("GET /metrics HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(LONGEST))), "431");
    }
}
