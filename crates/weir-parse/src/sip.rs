//! Heads of SIP messages (RFC 3261).

use crate::bytes::Bytes;
use crate::head::{Head, Kind, Span, request, response};
use crate::placed::Placed;
use crate::reading::Reading;

/// The head of a request or response, as far as its fields are complete in the packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sip {
    /// Request method: `INVITE`.
    pub method: Option<Placed<String>>,
    /// Request URI.
    pub uri: Option<Placed<String>>,
    /// Status code of a response.
    pub status: Option<u16>,
    /// Reason phrase of a response, if there is one.
    pub reason: Option<Placed<String>>,
    /// The address in the field `From`, without name and parameters: `sip:alice@example.org`.
    pub from: Option<Placed<String>>,
    /// The address in the field `To`.
    pub to: Option<Placed<String>>,
    /// Field `Call-ID`.
    pub call_id: Option<Placed<String>>,
    /// The number in the field `CSeq`.
    pub cseq: Option<Placed<u32>>,
    /// The method in the field `CSeq`: what a response answers.
    pub cseq_method: Option<Placed<String>>,
    /// Field `User-Agent`.
    pub user_agent: Option<Placed<String>>,
    /// Field `Server`.
    pub server: Option<Placed<String>>,
    /// Field `Content-Type`.
    pub content_type: Option<Placed<String>>,
}

impl Sip {
    /// Reads a head at the start of a segment.
    pub(crate) fn read(bytes: Bytes<'_>) -> Reading<Self> {
        let mut head = Head::folded(bytes);
        let mut first = head.line();
        while first.is_ok_and(|line| line.bytes.is_empty()) {
            first = head.line();
        }
        let Ok(first) = first else {
            let begins = Kind::of(bytes.data) == Some(Kind::Sip);
            return if begins && !head.ended() { Reading::Part(None) } else { Reading::Nothing };
        };
        let Some(mut sip) = Self::status_line(first).or_else(|| Self::request_line(first)) else {
            return Reading::Nothing;
        };
        while let Some((name, value)) = head.field() {
            sip.field(name.trim_ascii_end(), value);
        }
        Reading::of(sip, head.ended())
    }

    fn request_line(line: Span<'_>) -> Option<Self> {
        let [method, uri, version] = request(line)?;
        let sip = Self { method: Some(method.text()), uri: Some(uri.text()), ..Self::default() };
        Some(sip).filter(|_| is_version(version))
    }

    fn status_line(line: Span<'_>) -> Option<Self> {
        let (version, status, reason) = response(line)?;
        let sip = Self { status: Some(status), reason: reason.map(Span::text), ..Self::default() };
        Some(sip).filter(|_| is_version(version))
    }

    /// Reads a field, which may have its compact name (RFC 3261, section 7.3.3).
    fn field(&mut self, name: &[u8], value: Span<'_>) {
        let is = |known: &str, compact: &str| {
            name.eq_ignore_ascii_case(known.as_bytes()) || name.eq_ignore_ascii_case(compact.as_bytes())
        };
        let is_long = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let (place, value) = match () {
            () if is("from", "f") => (&mut self.from, address(value)),
            () if is("to", "t") => (&mut self.to, address(value)),
            () if is("call-id", "i") => (&mut self.call_id, value),
            () if is("content-type", "c") => (&mut self.content_type, value),
            () if is_long("user-agent") => (&mut self.user_agent, value),
            () if is_long("server") => (&mut self.server, value),
            () if is_long("cseq") => return self.sequence(value),
            () => return,
        };
        place.get_or_insert_with(|| value.text());
    }

    /// Reads a number, and the method that it counts.
    fn sequence(&mut self, value: Span<'_>) {
        let end = value.bytes.iter().position(u8::is_ascii_whitespace).unwrap_or(value.bytes.len());
        let (number, method) = value.split(end);
        let number = number.text();
        if let Ok(value) = number.value.parse()
            && self.cseq.is_none()
        {
            self.cseq = Some(Placed { value, at: number.at });
            self.cseq_method = Some(method.trim().text()).filter(|method| !method.is_empty());
        }
    }
}

/// Its case does not matter (RFC 3261, section 7.1).
fn is_version(word: Span<'_>) -> bool {
    word.bytes.eq_ignore_ascii_case(b"SIP/2.0")
}

/// Returns the address in the value of a field (RFC 3261, section 20.10): what is in angle brackets, with its parameters, or
/// what is in front of the field's.
fn address(value: Span<'_>) -> Span<'_> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in value.bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'<' if !quoted => {
                let (_name, rest) = value.split(at);
                return rest.split_at_first(b'>').map_or(rest, |(address, _)| address).trim();
            }
            b';' if !quoted => return value.split(at).0.trim(),
            _ => {}
        }
    }
    value
}
