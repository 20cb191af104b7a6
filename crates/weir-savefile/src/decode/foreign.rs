//! Blocks that are passed on, turned to native byte order.

use std::borrow::Cow;

use crate::options::{self, Options};
use crate::{ByteOrder, padding, pcapng};

/// The body of a block as a writer in native order would have written it. `None`: what is inside is known to its maker
/// only, or is damaged.
pub fn to_native(kind: u32, body: &[u8], order: ByteOrder) -> Option<Cow<'_, [u8]>> {
    if order == ByteOrder::NATIVE {
        return Some(Cow::Borrowed(body));
    }
    let mut out = Vec::with_capacity(body.len());
    match kind {
        pcapng::NAME_RESOLUTION => names(body, order, &mut out)?,
        pcapng::DECRYPTION_SECRETS => secrets(body, order, &mut out)?,
        _ => return None,
    }
    Some(Cow::Owned(out))
}

/// What another file may take of a block of native order that is passed on: its body, without options that are not to be
/// copied. `None`: nothing, the block is to stay where it is.
pub fn to_copy(kind: u32, body: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut out = Vec::new();
    let read = match kind {
        pcapng::CUSTOM_STAYS => return None,
        pcapng::NAME_RESOLUTION => names(body, ByteOrder::NATIVE, &mut out),
        pcapng::DECRYPTION_SECRETS => secrets(body, ByteOrder::NATIVE, &mut out),
        _ => None,
    };
    Some(if read.is_some() { Cow::Owned(out) } else { Cow::Borrowed(body) })
}

/// Records of type and length, closed by one of type 0; then options.
fn names(mut rest: &[u8], order: ByteOrder, out: &mut Vec<u8>) -> Option<()> {
    loop {
        let (kind, length) = (order.u16_at(rest, 0)?, order.u16_at(rest, 2)?);
        let value = rest.get(4..)?.get(..usize::from(length))?;
        rest = rest.get(4 + value.len() + padding(value.len())..)?;
        // Values are addresses and names: bytes, whatever the order.
        options::append(out, kind, value);
        if kind == options::END {
            return options_to_native(rest, order, out);
        }
    }
}

/// Type and length of the secrets, then they; then options.
fn secrets(body: &[u8], order: ByteOrder, out: &mut Vec<u8>) -> Option<()> {
    let (kind, length) = (order.u32_at(body, 0)?, order.u32_at(body, 4)?);
    let secrets = body.get(8..)?.get(..length as usize)?;
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&length.to_ne_bytes());
    out.extend_from_slice(secrets);
    out.resize(out.len() + padding(secrets.len()), 0);
    let rest = body.get(8 + secrets.len() + padding(secrets.len())..)?;
    options_to_native(rest, order, out)
}

/// Options of these blocks are texts and addresses: bytes, whatever the order. Custom ones are copied as far as they may be.
fn options_to_native(list: &[u8], order: ByteOrder, out: &mut Vec<u8>) -> Option<()> {
    const BYTES: [u16; 3] = [2, 3, 4]; // of a name resolution: the server's name and addresses
    let start = out.len();
    for option in Options::in_order(order, list) {
        options::append_copy(out, order, option.ok()?, &BYTES, &[]);
    }
    if out.len() > start {
        options::append_end(out);
    }
    Some(())
}
