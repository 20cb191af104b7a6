//! Names (RFC 1035, section 4.1.4), in the notation of zone files.

use crate::bytes::{Bytes, Cut, text};

/// Most pointers followed in one name. A longer chain is a loop or malicious.
const POINTERS: usize = 64;
/// Longest name in bytes, including label lengths (RFC 1035, section 2.3.4).
pub const NAME: usize = 255;

/// Returns a name with dots between its labels; `.` for the root. A loop counts as a name that is cut.
pub(crate) fn name(message: Bytes<'_>, mut at: usize) -> Result<String, Cut> {
    let mut name = String::new();
    let (mut pointers, mut total) = (0, 0);
    loop {
        match message.u8(at)? {
            0 if name.is_empty() => return Ok(".".to_owned()),
            0 => return Ok(name),
            len @ 1..0x40 => {
                let label = message.get(at + 1, len.into())?;
                if !name.is_empty() {
                    name.push('.');
                }
                name.push_str(&escaped(label, '.'));
                at += 1 + label.len();
                total += 1 + label.len();
            }
            0xc0.. => {
                at = usize::from(message.u16(at)? & 0x3fff);
                pointers += 1;
            }
            _ => return Err(Cut),
        }
        if total > NAME || pointers > POINTERS {
            return Err(Cut);
        }
    }
}

/// Returns a name that is not in a message of DNS: its last zero is missing if it is not complete (RFC 4704, section 4.2).
pub(crate) fn lone_name(bytes: &[u8]) -> Option<String> {
    let ended = [bytes, &[0]].concat();
    name(Bytes::new(&ended, ended.len()), 0).ok().filter(|name| name != ".")
}

/// Returns text with a backslash before each `special` character and before each backslash.
pub(crate) fn escaped(bytes: &[u8], special: char) -> String {
    let text = text(bytes);
    if !text.contains([special, '\\']) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 4);
    for letter in text.chars() {
        if letter == special || letter == '\\' {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// Returns the position after a name. Every step advances, so the loop ends.
pub fn skip_name(bytes: Bytes<'_>, mut at: usize) -> Result<usize, Cut> {
    loop {
        match bytes.u8(at)? {
            0 => return Ok(at + 1),
            len @ 1..0x40 => at += 1 + usize::from(len),
            0xc0.. => return Ok(at + 2),
            _ => return Err(Cut),
        }
    }
}
