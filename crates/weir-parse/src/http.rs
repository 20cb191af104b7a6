//! Heads of HTTP/1 messages (RFC 9112).

use crate::bytes::Bytes;
use crate::head::{Head, Kind, Span, request, response};
use crate::placed::Placed;
use crate::reading::Reading;

/// The head of a request or response, as far as its lines are complete in the packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Http {
    /// Request method: `GET`.
    pub method: Option<Placed<String>>,
    /// Request target, in most requests path and query.
    pub path: Option<Placed<String>>,
    /// Status code of a response.
    pub status: Option<u16>,
    /// Reason phrase of a response, if there is one.
    pub reason: Option<Placed<String>>,
    /// `HTTP/1.1` or `HTTP/1.0`.
    pub version: &'static str,
    /// Field `Host`.
    pub host: Option<Placed<String>>,
    /// Field `User-Agent`.
    pub user_agent: Option<Placed<String>>,
    /// Field `Content-Type`.
    pub content_type: Option<Placed<String>>,
}

impl Http {
    /// Reads a head at the start of a segment.
    pub(crate) fn read(bytes: Bytes<'_>) -> Reading<Self> {
        let mut head = Head::new(bytes);
        let Ok(first) = head.line() else {
            let begins = Kind::of(bytes.data) == Some(Kind::Http);
            return if begins && !head.ended() { Reading::Part(None) } else { Reading::Nothing };
        };
        let Some(mut http) = Self::status_line(first).or_else(|| Self::request_line(first)) else {
            return Reading::Nothing;
        };
        while let Some((name, value)) = head.field() {
            http.field(name, value);
        }
        Reading::of(http, head.ended())
    }

    fn request_line(line: Span<'_>) -> Option<Self> {
        let [method, path, last] = request(line)?;
        let version = version(last.bytes)?;
        Some(Self { method: Some(method.text()), path: Some(path.text()), version, ..Self::default() })
    }

    fn status_line(line: Span<'_>) -> Option<Self> {
        let (first, status, reason) = response(line)?;
        let version = version(first.bytes)?;
        Some(Self { status: Some(status), reason: reason.map(Span::text), version, ..Self::default() })
    }

    fn field(&mut self, name: &[u8], value: Span<'_>) {
        let place = match name {
            name if name.eq_ignore_ascii_case(b"host") => &mut self.host,
            name if name.eq_ignore_ascii_case(b"user-agent") => &mut self.user_agent,
            name if name.eq_ignore_ascii_case(b"content-type") => &mut self.content_type,
            _ => return,
        };
        place.get_or_insert_with(|| value.text());
    }
}

fn version(word: &[u8]) -> Option<&'static str> {
    match word {
        b"HTTP/1.1" => Some("HTTP/1.1"),
        b"HTTP/1.0" => Some("HTTP/1.0"),
        _ => None,
    }
}
