//! Heads of HTTP/1 messages (RFC 9112).

use crate::base::bytes::text;

/// Longest head that is read, in bytes.
const HEAD: usize = 16 * 1024;

/// The head of a request or response, as far as its lines are complete in the packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Http {
    /// Request method: `GET`.
    pub method: Option<String>,
    /// Request target, in most requests path and query.
    pub path: Option<String>,
    /// Status code of a response.
    pub status: Option<u16>,
    /// Reason phrase of a response, if there is one.
    pub reason: Option<String>,
    /// `HTTP/1.1` or `HTTP/1.0`.
    pub version: &'static str,
    /// Field `Host`.
    pub host: Option<String>,
    /// Field `User-Agent`.
    pub user_agent: Option<String>,
    /// Field `Content-Type`.
    pub content_type: Option<String>,
}

impl Http {
    /// Reads a head at the start of a segment.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let mut lines = lines(&payload[..payload.len().min(HEAD)]);
        let first = lines.next()?;
        let mut http = Self::status_line(first).or_else(|| Self::request_line(first))?;
        for line in lines.take_while(|line| !line.is_empty()) {
            http.field(line);
        }
        Some(http)
    }

    fn request_line(line: &[u8]) -> Option<Self> {
        let (method, rest) = split(line)?;
        let space = rest.iter().rposition(|&byte| byte == b' ')?;
        let (path, version) = (&rest[..space], version(&rest[space + 1..])?);
        let is_method = !method.is_empty() && method.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'-'));
        let http = Self { method: Some(text(method)), path: Some(text(path)), version, ..Self::default() };
        Some(http).filter(|_| is_method && !path.is_empty())
    }

    fn status_line(line: &[u8]) -> Option<Self> {
        let (version, rest) = (version(line.get(..8)?)?, line.get(8..)?.strip_prefix(b" ")?);
        let (status, reason) = split(rest).unwrap_or((rest, &[]));
        let digits = status.len() == 3 && status.iter().all(u8::is_ascii_digit);
        let status = std::str::from_utf8(status).ok().filter(|_| digits)?.parse().ok()?;
        let reason = Some(text(reason)).filter(|reason| !reason.is_empty());
        Some(Self { status: Some(status), reason, version, ..Self::default() })
    }

    fn field(&mut self, line: &[u8]) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { return };
        let place = match &line[..colon] {
            name if name.eq_ignore_ascii_case(b"host") => &mut self.host,
            name if name.eq_ignore_ascii_case(b"user-agent") => &mut self.user_agent,
            name if name.eq_ignore_ascii_case(b"content-type") => &mut self.content_type,
            _ => return,
        };
        place.get_or_insert_with(|| text(line[colon + 1..].trim_ascii()));
    }
}

/// Returns the lines that are complete.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let complete = head.split_inclusive(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
    complete.map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Splits at the first space.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    Some((&line[..space], &line[space + 1..]))
}

fn version(word: &[u8]) -> Option<&'static str> {
    match word {
        b"HTTP/1.1" => Some("HTTP/1.1"),
        b"HTTP/1.0" => Some("HTTP/1.0"),
        _ => None,
    }
}
