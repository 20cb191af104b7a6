//! What a client of TLS offers, as numbers: programs can be told apart by it.

use crate::bytes::{Bytes, Cut};

/// Types of extensions.
pub(crate) const SERVER_NAME: u16 = 0;
const SIGNATURE_ALGORITHMS: u16 = 13;
pub(crate) const ALPN: u16 = 16;
pub(crate) const SUPPORTED_VERSIONS: u16 = 43;

/// What a client offers, in the order of its hello, without the numbers that are there only so that servers learn to ignore what
/// they do not know (GREASE, RFC 8701).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// The highest version, as in the extension for it, or else in the hello: 0x0304 is TLS 1.3.
    pub version: u16,
    /// Cipher suites.
    pub ciphers: Vec<u16>,
    /// Types of extensions.
    pub extensions: Vec<u16>,
    /// Signature algorithms.
    pub signature_algorithms: Vec<u16>,
    /// The first application protocol, as its bytes. Empty: none.
    pub protocol: Vec<u8>,
}

impl Offer {
    /// Returns whether the extension with the server's name is there.
    pub fn names_server(&self) -> bool {
        self.extensions.contains(&SERVER_NAME)
    }

    /// Adds an extension.
    pub(crate) fn add(&mut self, kind: u16, extension: Bytes<'_>) -> Result<(), Cut> {
        if !is_grease(kind) {
            self.extensions.push(kind);
        }
        match kind {
            SIGNATURE_ALGORITHMS => {
                self.signature_algorithms = numbers(extension.get(2, extension.u16(0)?.into())?);
            }
            SUPPORTED_VERSIONS => {
                let versions = numbers(extension.get(1, extension.u8(0)?.into())?);
                self.version = versions.into_iter().max().unwrap_or(self.version);
            }
            ALPN => self.protocol = extension.get(3, extension.u8(2)?.into())?.to_vec(),
            _ => {}
        }
        Ok(())
    }
}

/// Returns the numbers in a list, without those that mean nothing.
pub(crate) fn numbers(list: &[u8]) -> Vec<u16> {
    let all = list.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    all.filter(|number| !is_grease(*number)).collect()
}

/// RFC 8701, section 2: 0x0a0a, 0x1a1a, and so on.
fn is_grease(number: u16) -> bool {
    number & 0x0f0f == 0x0a0a && number >> 8 == number & 0xff
}
