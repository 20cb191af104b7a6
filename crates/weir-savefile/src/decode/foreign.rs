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

/// Options of these blocks are texts and addresses: bytes, whatever the order. Custom ones are left out.
fn options_to_native(list: &[u8], order: ByteOrder, out: &mut Vec<u8>) -> Option<()> {
    const CUSTOM: [u16; 4] = [2988, 2989, 19372, 19373];
    let mut any = false;
    for option in Options::in_order(order, list) {
        let option = option.ok()?;
        if !CUSTOM.contains(&option.code) {
            options::append(out, option.code, option.value);
            any = true;
        }
    }
    if any {
        options::append_end(out);
    }
    Some(())
}
