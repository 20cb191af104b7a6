//! DNS messages (RFC 1035), as far as the name of an address takes them.

use std::net::IpAddr;

use weir_parse::bytes::Bytes;
use weir_parse::dns::HEADER;
use weir_parse::{Dns, Reading};

const PTR: u16 = 12;
const INTERNET: u16 = 1;
const NO_SUCH_NAME: u8 = 3;
/// Longest name as text.
const LONGEST: usize = 253;

/// What a server says about an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Name(String),
    /// The address has no name, or none that a host may have.
    Nameless,
    /// The server does not know; another one may.
    Failed,
}

/// Returns the question for the name of an address: its name below `in-addr.arpa` (RFC 1035, 3.5) or `ip6.arpa`
/// (RFC 3596, 2.5), type and class.
pub(super) fn question(address: IpAddr) -> Vec<u8> {
    let (labels, top): (Vec<String>, _) = match address {
        IpAddr::V4(address) => (address.octets().iter().map(u8::to_string).collect(), "in-addr"),
        IpAddr::V6(address) => {
            let digits = address.octets().into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
            (digits.map(|digit| format!("{digit:x}")).collect(), "ip6")
        }
    };
    let mut question = Vec::new();
    for label in labels.iter().rev().map(String::as_str).chain([top, "arpa"]) {
        question.push(u8::try_from(label.len()).expect("a short label"));
        question.extend_from_slice(label.as_bytes());
    }
    question.push(0);
    question.extend([PTR, INTERNET].into_iter().flat_map(u16::to_be_bytes));
    question
}

/// Returns a query with this question, which asks the server to ask others in turn.
pub(super) fn query(id: u16, question: &[u8]) -> Vec<u8> {
    const RECURSION_DESIRED: u16 = 0x100;
    let header = [id, RECURSION_DESIRED, 1, 0, 0, 0];
    [&header.map(u16::to_be_bytes).concat(), question].concat()
}

/// Returns the number that a query and its reply have in common.
pub(super) fn id(message: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(*message.first_chunk()?))
}

/// Reads a reply. `None`: it is no reply to this question.
pub(super) fn reply(message: &[u8], question: &[u8]) -> Option<Reply> {
    let (flags, code) = (*message.get(2)?, message.get(3)? & 15);
    let is_reply = flags >> 3 == 0b1_0000 && message.get(4..6)? == [0, 1];
    let records = HEADER + question.len();
    if !is_reply || !message.get(HEADER..records)?.eq_ignore_ascii_case(question) {
        return None;
    }
    Some(match code {
        0 => first_name(message).map_or(Reply::Nameless, Reply::Name),
        NO_SUCH_NAME => Reply::Nameless,
        _ => Reply::Failed,
    })
}

/// Returns the name in the first PTR record, if it is a host's. It may belong to an alias of the question (RFC 2317).
fn first_name(message: &[u8]) -> Option<String> {
    let Reading::Whole(dns) = Dns::read(Bytes::new(message, message.len())) else { return None };
    let mut records = dns.answers.into_iter().map(|placed| placed.value);
    let name = records.find(|record| record.kind == "PTR")?.data?;
    // The root is a dot; a dot inside a label has a backslash in front of it.
    Some(name).filter(|name| name != "." && is_host_name(name))
}

/// Whether this is a name that a host may have: it cannot harm a terminal, nor be mistaken for another part of a line.
pub(super) fn is_host_name(name: &str) -> bool {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(harmless)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(name: &[&[u8]]) -> Vec<u8> {
        let label = |label: &&[u8]| [&[u8::try_from(label.len()).expect("short")], *label].concat();
        let mut wire: Vec<u8> = name.iter().flat_map(label).collect();
        wire.push(0);
        wire
    }

    fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
        let len = u16::try_from(data.len()).expect("short");
        let fixed = [kind, INTERNET, 0, 60, len].map(u16::to_be_bytes).concat();
        [owner, &fixed, data].concat()
    }

    fn message(flags: u16, question: &[u8], records: &[Vec<u8>]) -> Vec<u8> {
        let count = u16::try_from(records.len()).expect("few");
        let header = [7, flags, 1, count, 0, 0].map(u16::to_be_bytes).concat();
        [&header, question, &records.concat()].concat()
    }

    const REPLY: u16 = 0x8180;
    const TO_THE_QUESTION: &[u8] = &[0xc0, 12];

    #[test]
    fn questions() {
        let asked = |address: &str| question(address.parse().expect("an address"));
        let expected = [&wire(&[b"4", b"3", b"2", b"1", b"in-addr", b"arpa"])[..], &[0, 12, 0, 1]].concat();
        assert_eq!(asked("1.2.3.4"), expected);
        let mut digits: Vec<&[u8]> = vec![b"0"; 32];
        (digits[0], digits[31], digits[30]) = (b"b", b"f", b"e");
        let expected = [&wire(&[&digits[..], &[b"ip6", b"arpa"]].concat())[..], &[0, 12, 0, 1]].concat();
        assert_eq!(asked("fe00::b"), expected);
        assert_eq!(query(0x1234, &[1, 2]), [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 2]);
    }

    #[test]
    fn names_of_hosts_and_no_others() {
        let question = question([10, 0, 0, 1].into());
        let read = |records: &[Vec<u8>]| reply(&message(REPLY, &question, records), &question);
        let named = |labels: &[&[u8]]| read(&[record(TO_THE_QUESTION, PTR, &wire(labels))]);
        let name = |name: &str| Some(Reply::Name(name.to_owned()));
        assert_eq!(named(&[b"a-1", b"example", b"org"]), name("a-1.example.org"));
        let bad: [&[u8]; 8] =
            [b"\x1b[31m", b"a b", b"a\nb", "\u{202e}x".as_bytes(), b"\xff", b"a.b", b"a\0b", b"a/b"];
        for bad in bad {
            assert_eq!(named(&[bad, b"example"]), Some(Reply::Nameless), "{bad:?}");
        }
        let (long, rest) = ([b'a'; 63], [b'b'; 61]);
        let longest = [&long[..], &long, &long, &rest];
        assert_eq!(
            named(&longest),
            name(
                &[&long[..], &long, &long, &rest]
                    .map(|label| str::from_utf8(label).expect("ASCII"))
                    .join(".")
            )
        );
        assert_eq!(named(&[&long, &long, &long, &long]), Some(Reply::Nameless), "255 characters");
        assert_eq!(named(&[]), Some(Reply::Nameless), "the root");
        // An alias before it (RFC 2317), and the rest of the name elsewhere.
        let alias = record(TO_THE_QUESTION, 5, &wire(&[b"1", b"net"]));
        let at = u8::try_from(HEADER + question.len() + 12).expect("near");
        let pointer = [&[1, b'h', 0xc0, at][..]].concat();
        assert_eq!(read(&[alias, record(&[0xc0, at], PTR, &pointer)]), name("h.1.net"));
        assert_eq!(read(&[record(TO_THE_QUESTION, 1, &[1, 2, 3, 4])]), Some(Reply::Nameless));
        // Owners written out, and the end of one elsewhere.
        for owner in [&question[..question.len() - 4], &[3, b'a', b'b', b'c', 0xc0, 12], &[0]] {
            let other = record(owner, 1, &[1, 2, 3, 4]);
            assert_eq!(
                read(&[other, record(owner, PTR, &wire(&[b"h", b"net"]))]),
                name("h.net"),
                "{owner:?}"
            );
        }
    }

    #[test]
    fn what_is_no_reply() {
        let asked = question([10, 0, 0, 1].into());
        let other = question([10, 0, 0, 2].into());
        let record = record(TO_THE_QUESTION, PTR, &wire(&[b"a"]));
        let whole = message(REPLY, &asked, &[record]);
        assert_eq!(reply(&whole, &other), None);
        assert_eq!(reply(&message(0x0100, &asked, &[]), &asked), None, "a query");
        assert_eq!(reply(&message(0x8183, &asked, &[]), &asked), Some(Reply::Nameless));
        for failure in [0x8181, 0x8182, 0x8185] {
            assert_eq!(reply(&message(failure, &asked, &[]), &asked), Some(Reply::Failed));
        }
        for len in 0..whole.len() {
            assert!(!matches!(reply(&whole[..len], &asked), Some(Reply::Name(_))), "{len} bytes");
        }
        // Every byte with every value: no panic, no endless loop.
        for at in 0..whole.len() {
            for value in 0..=255 {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let _anything = reply(&damaged, &asked);
            }
        }
    }

    #[test]
    fn pointers_in_a_circle_end() {
        let question = question([10, 0, 0, 1].into());
        let start = HEADER + question.len() + 12;
        for target in [start, start + 2, 0x3fff] {
            let pointer = (0xc000 | u16::try_from(target).expect("near")).to_be_bytes();
            let record = record(TO_THE_QUESTION, PTR, &[&[1, b'a'], &pointer[..]].concat());
            assert_eq!(reply(&message(REPLY, &question, &[record]), &question), Some(Reply::Nameless));
        }
    }
}
