//! TLS hellos (RFC 8446, RFC 5246): the first message of each side, which is not encrypted.

use crate::bytes::{Bytes, Cut};
use crate::placed::Placed;
use crate::reading::Reading;

/// Length of the header of a record.
const RECORD: usize = 5;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;

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
        let whole = payload.u16(3).is_ok_and(|len| RECORD + usize::from(len) <= payload.len);
        match Self::read_record(payload) {
            Ok(Some(tls)) if whole => Reading::Whole(tls),
            Ok(Some(tls)) => Reading::Part(Some(tls)),
            Err(Cut) if !whole => Reading::Part(None),
            _ => Reading::Nothing,
        }
    }

    fn read_record(payload: Bytes<'_>) -> Result<Option<Self>, Cut> {
        let (record, message) = (payload.u16(3)?, payload.u8(RECORD)?);
        let hello = payload.from(RECORD).first(record.into());
        let hello = hello.from(4).first(hello.u24(1)? as usize);
        let mut tls = Self::default();
        let Some(legacy) = version(hello.u16(0)?) else { return Ok(None) };
        // A hello that ends early may have had a newer version than the one in its header.
        if tls.hello(message == CLIENT_HELLO, hello).is_ok() {
            tls.version.get_or_insert(legacy);
        }
        Ok(Some(tls))
    }

    fn hello(&mut self, client: bool, hello: Bytes<'_>) -> Result<(), Cut> {
        let mut at = 2 + 32;
        at += 1 + usize::from(hello.u8(at)?);
        // The client lists cipher suites and compression methods, the server has chosen.
        at += if client { 2 + usize::from(hello.u16(at)?) } else { 2 };
        at += if client { 1 + usize::from(hello.u8(at)?) } else { 1 };
        if at == hello.len {
            return Ok(());
        }
        let mut rest = hello.from(at + 2).first(hello.u16(at)?.into());
        while rest.len > 0 {
            let (kind, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            rest.get(4, len)?;
            let extension = rest.from(4).first(len);
            // Nonsense in one of them does not matter to the others.
            let _nonsense = self.extension(client, kind, extension);
            rest = rest.from(4 + len);
        }
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
