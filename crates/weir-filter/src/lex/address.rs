//! Recognition of addresses in a text.

use std::net::Ipv6Addr;

use super::Kind;

/// More bytes than the longest IPv6 or MAC address has.
const LONGEST: usize = 64;

/// Reads a MAC or IPv6 address with colons at the start of `rest`; returns it and its length. `Err` is text that
/// libpcap's scanner takes for an address although it is not one.
pub(super) fn with_colons(rest: &str) -> Result<Option<(Kind<'static>, usize)>, (String, usize)> {
    let digits = rest.bytes().take(5).take_while(u8::is_ascii_hexdigit).count();
    let next = rest.as_bytes().get(digits..).unwrap_or_default();
    if digits > 4 || next.first() != Some(&b':') || digits == 0 && next.get(1) != Some(&b':') {
        return Ok(None);
    }
    let inside = |byte: &u8| byte.is_ascii_hexdigit() || b":.".contains(byte);
    let run = &rest[..rest.bytes().take(LONGEST).take_while(inside).count()];
    let ipv6 = || {
        let longest = |length: usize| Some((run[..length].parse::<Ipv6Addr>().ok()?, length));
        let (address, length) = (1..=run.len()).rev().find_map(longest)?;
        Some((Kind::Ipv6(words_of(address)), length))
    };
    let mac = || {
        let length = colon_mac_length(run)?;
        mac(&run[..length]).map(|address| (Kind::Mac(address), length))
    };
    // Eight groups, or six and a dotted quad.
    let colons = run.matches(':').count();
    let whole = colons >= 7 || colons == 6 && run.contains('.');
    let found = if whole || run.contains("::") { ipv6() } else { mac() };
    let found = found.or_else(mac);
    let wrong = || (format!("`{run}` is neither a MAC address nor an IPv6 address"), run.len());
    match found {
        Some((_, length))
            if run[length..].starts_with(|next: char| next.is_ascii_digit() || ":.".contains(next)) =>
        {
            Err(wrong())
        }
        Some(found) => Ok(Some(found)),
        None if run.contains("::") || looks_like_a_mac(run) => Err(wrong()),
        None => Ok(None),
    }
}

/// Returns whether the text has at least two groups of digits, each followed by colons: libpcap then accepts no shorter
/// token.
fn looks_like_a_mac(run: &str) -> bool {
    let mut groups = run.split(':');
    let short = |group: Option<&str>| group.is_some_and(|group| (1..=2).contains(&group.len()));
    short(groups.next()) && short(groups.next()) && groups.next().is_some()
}

/// Returns the length of six colon-separated groups of one or two digits at the start of `run`.
fn colon_mac_length(run: &str) -> Option<usize> {
    let mut at = 0;
    for group in 0..6 {
        if group > 0 {
            at += run[at..].strip_prefix(':').map(|_| 1)?;
        }
        let digits = run.bytes().skip(at).take(2).take_while(u8::is_ascii_hexdigit).count();
        at += if digits == 0 { return None } else { digits };
    }
    Some(at)
}

/// Parses a whole word as a MAC address: six groups with `:`, `-` or `.`, three of four digits with `.`, or twelve
/// digits.
pub(crate) fn mac(word: &str) -> Option<[u8; 6]> {
    let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if word.len() == 12 && hex(word) {
        let number = u64::from_str_radix(word, 16).ok()?;
        return Some(std::array::from_fn(|index| number.to_be_bytes()[index + 2]));
    }
    let separator = word.bytes().take(5).find(|byte| b":-.".contains(byte))?;
    let mut parts = word.split(char::from(separator));
    let mut address = [0; 6];
    if separator == b'.' && word.len() == 14 && word.as_bytes()[4] == b'.' {
        for pair in address.chunks_exact_mut(2) {
            let part = parts.next().filter(|part| part.len() == 4 && hex(part))?;
            pair.copy_from_slice(&u16::from_str_radix(part, 16).ok()?.to_be_bytes());
        }
    } else {
        for byte in &mut address {
            let part = parts.next().filter(|part| (1..=2).contains(&part.len()) && hex(part))?;
            *byte = u8::from_str_radix(part, 16).ok()?;
        }
    }
    parts.next().is_none().then_some(address)
}

/// Returns whether the word is two to four numbers separated by dots.
pub(super) fn is_dotted(word: &str) -> bool {
    let is_number = |part: &str| super::number(part).is_some();
    let mut parts = word.split('.');
    let count = parts.by_ref().take(5).filter(|part| is_number(part)).count();
    (2..=4).contains(&count) && word.bytes().filter(|&byte| byte == b'.').count() == count - 1
}

/// Returns an IPv6 address as words, most significant first.
pub(crate) fn words_of(address: Ipv6Addr) -> [u32; 4] {
    let bits = address.to_bits();
    std::array::from_fn(|index| {
        u32::try_from(bits >> (96 - 32 * index) & 0xffff_ffff).expect("a word has 32 bits")
    })
}
