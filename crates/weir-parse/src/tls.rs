//! TLS hellos (RFC 8446, RFC 5246): the first message of each side, which is not encrypted.

use std::borrow::Cow;
use std::ops::Range;

use crate::bytes::{Bytes, Cut};
use crate::offer::{ALPN, Offer, SERVER_NAME, SUPPORTED_VERSIONS, numbers};
use crate::placed::Placed;
use crate::reading::Reading;

/// Length of the header of a record.
const RECORD: usize = 5;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

/// Most application protocols of one hello.
const PROTOCOLS: usize = 16;

/// What a hello says in the clear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tls {
    /// The host that the client asks for (server name indication). A truncated hello has it if the extension is complete.
    pub server_name: Option<Placed<String>>,
    /// The highest version that the client offers, or the one that the server chooses: `TLS 1.3`.
    pub version: Option<&'static str>,
    /// The application protocols that the client offers, at most 16, or the one that the server chooses: `h2`.
    pub alpn: Vec<Placed<String>>,
    /// What the client offers; `None`: it is a server, or not all of the hello is there.
    pub offer: Option<Box<Offer>>,
}

/// Returns whether a payload begins with a hello.
pub(crate) fn is_hello(bytes: Bytes<'_>) -> bool {
    matches!(bytes.data, [HANDSHAKE, 3, _, _, _, CLIENT_HELLO | SERVER_HELLO, ..])
}

/// Returns whether a payload ends before it can be told whether it begins with a hello.
pub(crate) fn may_be_hello(bytes: Bytes<'_>) -> bool {
    matches!(
        bytes.data,
        [HANDSHAKE] | [HANDSHAKE, 3] | [HANDSHAKE, 3, _] | [HANDSHAKE, 3, _, _] | [HANDSHAKE, 3, _, _, _]
    )
}

impl Tls {
    /// Reads a hello at the start of a segment.
    pub(crate) fn read(payload: Bytes<'_>) -> Reading<Self> {
        let Ok(records) = Records::of(payload) else { return Reading::Part(None) };
        let whole = records.needed <= payload.data.len();
        match Self::read_records(&records) {
            Ok(Some(tls)) => Reading::of(tls, whole),
            Err(Cut) if !whole => Reading::Part(None),
            _ => Reading::Nothing,
        }
    }

    /// Reads a hello that is not in records, as QUIC has it (RFC 9001, section 4).
    pub fn read_message(message: Bytes<'_>) -> Option<Self> {
        let parts = vec![[0, message.at]];
        let records =
            Records { bytes: Cow::Borrowed(message.data), len: message.len, parts, needed: message.len };
        Self::read_records(&records).ok().flatten()
    }

    /// Returns how many bytes the hello takes, or the next of its records.
    pub(crate) fn length(payload: Bytes<'_>) -> Option<usize> {
        Some(Records::of(payload).ok()?.needed)
    }

    fn read_records(records: &Records<'_>) -> Result<Option<Self>, Cut> {
        let message = records.message();
        let kind = message.u8(0)?;
        let len = message.u24(1)? as usize;
        // Of a hello that ends early, nothing may look like its end.
        let hello = message.from(4).first(len).sized(len);
        let mut tls = Self::default();
        let Some(legacy) = version(hello.u16(0)?) else { return Ok(None) };
        // A hello that ends early may have had a newer version than the one in its header.
        if tls.hello(kind == CLIENT_HELLO, hello).is_ok() {
            tls.version.get_or_insert(legacy);
        }
        tls.server_name.iter_mut().chain(&mut tls.alpn).for_each(|text| records.place(&mut text.at));
        Ok(Some(tls))
    }

    fn hello(&mut self, client: bool, hello: Bytes<'_>) -> Result<(), Cut> {
        let mut at = 2 + 32;
        at += 1 + usize::from(hello.u8(at)?);
        let mut offer = Box::new(Offer { version: hello.u16(0)?, ..Offer::default() });
        // The client lists cipher suites and compression methods, the server has chosen.
        if client {
            let len = usize::from(hello.u16(at)?);
            offer.ciphers = numbers(hello.get(at + 2, len)?);
            at += 2 + len;
        } else {
            at += 2;
        }
        at += if client { 1 + usize::from(hello.u8(at)?) } else { 1 };
        if at == hello.len {
            self.offer = client.then_some(offer);
            return Ok(());
        }
        let mut rest = hello.from(at + 2).first(hello.u16(at)?.into());
        while rest.len > 0 {
            let (kind, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            rest.get(4, len)?;
            let extension = rest.from(4).first(len);
            // Nonsense in one of them does not matter to the others.
            let _nonsense = self.extension(client, kind, extension);
            if client {
                let _nonsense = offer.add(kind, extension);
            }
            rest = rest.from(4 + len);
        }
        self.offer = client.then_some(offer);
        Ok(())
    }

    fn extension(&mut self, client: bool, kind: u16, extension: Bytes<'_>) -> Result<(), Cut> {
        match kind {
            // A list with one name of type 0.
            SERVER_NAME if client && extension.u8(2)? == 0 => {
                let name = Placed::text(extension, 5, extension.u16(3)?.into())?;
                self.server_name.get_or_insert(name);
            }
            ALPN if self.alpn.is_empty() => {
                let mut at = 2;
                while at < extension.len && self.alpn.len() < PROTOCOLS {
                    let len = usize::from(extension.u8(at)?);
                    self.alpn.push(Placed::text(extension, at + 1, len)?);
                    at += 1 + len;
                }
            }
            SUPPORTED_VERSIONS if client => {
                let offered = extension.get(1, extension.u8(0)?.into())?;
                let known = offered.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
                self.version = known.filter(|number| version(*number).is_some()).max().and_then(version);
            }
            SUPPORTED_VERSIONS => self.version = version(extension.u16(0)?),
            _ => {}
        }
        Ok(())
    }
}

/// Returns the name of a version; `None` for those that are offered only so that servers learn to ignore them.
fn version(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0300 => "SSL 3.0",
        0x0301 => "TLS 1.0",
        0x0302 => "TLS 1.1",
        0x0303 => "TLS 1.2",
        0x0304 => "TLS 1.3",
        _ => return None,
    })
}

/// The handshake message at the beginning of a stream, put together of its records.
#[derive(Debug)]
struct Records<'a> {
    /// Its bytes, as far as they are there, and its length.
    bytes: Cow<'a, [u8]>,
    len: usize,
    /// Where each record's part begins: in the message and in the stream.
    parts: Vec<[usize; 2]>,
    /// Where the last record ends, or the first that is not there as a whole; or its header.
    needed: usize,
}

impl<'a> Records<'a> {
    fn of(stream: Bytes<'a>) -> Result<Self, Cut> {
        let record = |at| Ok((stream.get(at, 2)?, usize::from(stream.u16(at + 3)?)));
        let (_, first) = record(0)?;
        let part = stream.from(RECORD).first(first);
        let needed = RECORD + first;
        let mut all = Self {
            bytes: Cow::Borrowed(part.data),
            len: part.len.min(first),
            parts: vec![[0, stream.at + RECORD]],
            needed,
        };
        let Ok(len) = part.u24(1).map(|len| 4 + len as usize) else { return Ok(all) };
        if len <= first {
            return Ok(all);
        }
        all.len = len;
        while all.bytes.len() < len && all.needed <= stream.data.len() {
            let at = all.needed;
            let (kind, more) = match record(at) {
                Ok((kind, more)) => (kind, more),
                Err(Cut) => {
                    all.needed = at + RECORD;
                    break;
                }
            };
            if kind != [HANDSHAKE, 3] {
                break;
            }
            all.parts.push([all.bytes.len(), stream.at + at + RECORD]);
            all.bytes.to_mut().extend_from_slice(stream.from(at + RECORD).first(more).data);
            all.needed = at + RECORD + more;
        }
        Ok(all)
    }

    fn message(&self) -> Bytes<'_> {
        Bytes::new(&self.bytes, self.len)
    }

    /// Turns a place in the message into one in the stream.
    fn place(&self, at: &mut Range<usize>) {
        let place = |at: usize| {
            let part = self.parts.iter().rfind(|[begin, _]| *begin <= at);
            part.map_or(at, |[begin, place]| place + at - begin)
        };
        *at = place(at.start)..place(at.end.saturating_sub(1)) + 1;
    }
}
