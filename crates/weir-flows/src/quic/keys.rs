//! Keys of the client's first packets (RFC 9001, sections 5.2 to 5.4; RFC 9369, section 3.3).

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::AeadInOut;
use hkdf::Hkdf;
use sha2::Sha256;

use super::header::{Header, Version};

const SALT_1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc,
    0xbb, 0x7f, 0x0a,
];
const SALT_2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9,
    0xbd, 0x2e, 0xd9,
];

/// Bytes that say whether a packet was changed, at its end.
const TAG: usize = 16;

pub(super) struct Keys {
    packet: Aes128Gcm,
    header: Aes128,
    iv: [u8; 12],
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// Returns those of the client, whose first packet goes to this ID.
    pub(super) fn of_client(version: Version, destination: &[u8]) -> Self {
        let (salt, labels) = match version {
            Version::One => (SALT_1, ["quic key", "quic iv", "quic hp"]),
            Version::Two => (SALT_2, ["quicv2 key", "quicv2 iv", "quicv2 hp"]),
        };
        let initial = Hkdf::<Sha256>::new(Some(&salt), destination);
        let client =
            Hkdf::<Sha256>::from_prk(&expand::<32>(&initial, "client in")).expect("as long as a hash");
        let [key, iv, header] = labels;
        Self {
            packet: Aes128Gcm::new(&Array::from(expand::<16>(&client, key))),
            header: Aes128::new(&Array::from(expand::<16>(&client, header))),
            iv: expand(&client, iv),
        }
    }

    /// Decrypts a packet; puts what it carries into `plain`. Returns whether it is encrypted with these keys.
    pub(super) fn open(&self, header: &Header<'_>, packet: &[u8], plain: &mut Vec<u8>) -> bool {
        let at = header.number;
        // What hides the number depends on what would be behind the longest one.
        let Some(sample) = packet.get(at + 4..at + 4 + 16).filter(|_| at + 4 + 16 <= header.end) else {
            return false;
        };
        let mut mask = Array::from(<[u8; 16]>::try_from(sample).expect("it has 16 bytes"));
        self.header.encrypt_block(&mut mask);
        let first = packet[0] ^ mask[0] & 0x0f;
        let length = usize::from(first & 3) + 1;
        // The header as it was before that.
        plain.clear();
        plain.extend_from_slice(&packet[..header.end]);
        plain[0] = first;
        let mut nonce = self.iv;
        for index in 0..length {
            plain[at + index] ^= mask[1 + index];
            nonce[12 - length + index] ^= plain[at + index];
        }
        let (head, rest) = plain.split_at_mut(at + length);
        let Some((data, tag)) = rest.split_last_chunk_mut::<TAG>() else { return false };
        let tag = Array::from(*tag);
        let opened = self.packet.decrypt_inout_detached(&Array::from(nonce), head, data.into(), &tag);
        let data = at + length..header.end - TAG;
        plain.copy_within(data.clone(), 0);
        plain.truncate(data.len());
        opened.is_ok()
    }
}

/// HKDF-Expand-Label (RFC 8446, section 7.1) without a context.
fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &str) -> [u8; N] {
    let length = |length: usize| u8::try_from(length).expect("short");
    let mut info = Vec::with_capacity(32);
    info.extend([0, length(N), length(6 + label.len())]);
    info.extend(b"tls13 ");
    info.extend(label.as_bytes());
    info.push(0);
    let mut key = [0; N];
    secret.expand(&info, &mut key).expect("it is not longer than 255 hashes");
    key
}
