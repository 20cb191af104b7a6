//! Copies of blocks that weir does not interpret, converted to native byte order.

use std::borrow::Cow;

use crate::options::{self, Options};
use crate::pcapng::{self, WhoBlock};
use crate::{ByteOrder, padding};

/// Converts the body of a block to native byte order. `None`: the layout is private to its writer, or the block is
/// damaged.
pub fn to_native(kind: u32, body: &[u8], order: ByteOrder) -> Option<Cow<'_, [u8]>> {
    if order == ByteOrder::NATIVE {
        return Some(Cow::Borrowed(body));
    }
    let mut out = Vec::with_capacity(body.len());
    match kind {
        pcapng::NAME_RESOLUTION => names(body, order, &mut out)?,
        pcapng::DECRYPTION_SECRETS => secrets(body, order, &mut out)?,
        pcapng::WHO => out = WhoBlock::read_in(order, body)?.body()?,
        _ => return None,
    }
    Some(Cow::Owned(out))
}

/// Returns the part of a native-order block that may be copied to another file: its body, without options that must not
/// be copied. `None`: the block must not be copied.
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

/// Copies the records of a Name Resolution Block (type and length, ended by one of type 0), then its options.
fn names(mut rest: &[u8], order: ByteOrder, out: &mut Vec<u8>) -> Option<()> {
    loop {
        let (kind, length) = (order.u16_at(rest, 0)?, order.u16_at(rest, 2)?);
        let value = rest.get(4..)?.get(..usize::from(length))?;
        rest = rest.get(4 + value.len() + padding(value.len())..)?;
        // Values are addresses and names, which do not depend on the byte order.
        options::append(out, kind, value);
        if kind == options::END {
            return options_to_native(rest, order, out);
        }
    }
}

/// Copies the type, length and bytes of the secrets, then the options.
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

/// Options of these blocks are texts and addresses, which do not depend on the byte order. Custom options are copied if
/// they may be.
fn options_to_native(list: &[u8], order: ByteOrder, out: &mut Vec<u8>) -> Option<()> {
    const BYTES: [u16; 3] = [2, 3, 4]; // in name resolution: the server's name and addresses
    let start = out.len();
    for option in Options::in_order(order, list) {
        options::append_copy(out, order, option.ok()?, &BYTES, &[]);
    }
    if out.len() > start {
        options::append_end(out);
    }
    Some(())
}
