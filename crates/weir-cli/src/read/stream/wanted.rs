//! Which stream is wanted, and the numbers of streams. No I/O.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// The protocol of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

/// A stream on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Wanted {
    pub(super) protocol: Protocol,
    pub(super) which: Which,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Number(usize),
    Ends([SocketAddr; 2]),
}

/// Streams that are numbered, at most: some 100 MB of memory.
const MOST_STREAMS: usize = 1 << 20;

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (protocol, which) = match (text.strip_prefix("tcp:"), text.strip_prefix("udp:")) {
            (Some(which), _) => (Protocol::Tcp, which),
            (_, Some(which)) => (Protocol::Udp, which),
            _ => (Protocol::Tcp, text),
        };
        if let Ok(number) = which.parse() {
            return match number {
                0..MOST_STREAMS => Ok(Self { protocol, which: Which::Number(number) }),
                _ => Err(format!("only the first {MOST_STREAMS} streams have numbers; try A:PORT-B:PORT")),
            };
        }
        let ends =
            which.split_once('-').and_then(|(one, other)| Some([one.parse().ok()?, other.parse().ok()?]));
        let ends = ends.ok_or(
            "no stream; try 0, udp:0, 10.0.0.1:4321-10.0.0.2:80 or [2001:db8::1]:4321-[2001:db8::2]:80",
        )?;
        Ok(Self { protocol, which: Which::Ends(ends) })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        };
        match &self.which {
            Which::Number(number) => write!(f, "{protocol}:{number}"),
            Which::Ends([one, other]) => write!(f, "{protocol}:{one}-{other}"),
        }
    }
}

/// What a packet says of its stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamHeader {
    /// Sender and receiver.
    pub(super) ends: [SocketAddr; 2],
    /// TCP's sequence number.
    pub(super) sequence: u32,
    pub(super) syn: bool,
    pub(super) ack: bool,
}

/// Recognizes the packets of a stream.
#[derive(Debug)]
pub(super) struct Choice {
    wanted: Wanted,
    /// The last connection of each pair of ends, in a fixed order.
    known: HashMap<[SocketAddr; 2], Connection>,
    /// Streams met so far.
    pub(super) met: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    number: usize,
    /// The first sequence number of each end.
    first: [Option<u32>; 2],
}

/// What a packet is to the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    /// It belongs to another one.
    None,
    /// Another connection with the same ends begins with it.
    Begins,
    Continues,
}

impl Choice {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self { wanted, known: HashMap::new(), met: 0 }
    }

    /// Finds the stream of a packet.
    pub(super) fn membership(&mut self, told: &StreamHeader) -> Membership {
        let mut ends = told.ends;
        ends.sort_unstable();
        let way = usize::from(ends != told.ends);
        if let Which::Ends(mut wanted) = self.wanted.which {
            wanted.sort_unstable();
            if wanted != ends {
                return Membership::None;
            }
        }
        // Beyond the wanted number, only that one is of interest.
        let passed = matches!(self.wanted.which, Which::Number(number) if number < self.met);
        let number = self.met;
        // SYN takes a number of its own; without it, the one before would have been that.
        let first = if told.syn { told.sequence } else { told.sequence.wrapping_sub(1) };
        // A port is used again if a connection with another first number begins.
        let again = |one: &Connection| {
            let reopens = told.syn && !told.ack && self.wanted.protocol == Protocol::Tcp;
            reopens && one.first[way].is_some_and(|known| known != first)
        };
        let begins = match self.known.get_mut(&ends) {
            Some(one) if !again(one) => {
                one.first[way].get_or_insert(first);
                false
            }
            None if passed => return Membership::None,
            other => {
                let mut new = Connection { number, ..Connection::default() };
                new.first[way] = Some(first);
                match other {
                    Some(one) => *one = new,
                    None => drop(self.known.insert(ends, new)),
                }
                self.met += 1;
                true
            }
        };
        let is_it = match self.wanted.which {
            Which::Number(wanted) => self.known.get(&ends).is_some_and(|one| one.number == wanted),
            Which::Ends(_) => true,
        };
        match (is_it, begins) {
            (false, _) => Membership::None,
            (true, true) => Membership::Begins,
            (true, false) => Membership::Continues,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_named_by_number_or_ends() {
        let wanted = |text: &str| text.parse::<Wanted>().map(|wanted| wanted.to_string());
        for (text, shown) in [
            ("0", "tcp:0"),
            ("udp:3", "udp:3"),
            ("10.0.0.1:5-10.0.0.2:80", "tcp:10.0.0.1:5-10.0.0.2:80"),
            ("udp:[::1]:5-[::2]:53", "udp:[::1]:5-[::2]:53"),
        ] {
            assert_eq!(wanted(text), Ok(shown.to_owned()));
        }
        for text in ["", "x", "10.0.0.1-10.0.0.2", "sctp:1", "-1"] {
            assert!(wanted(text).expect_err(text).contains("try 0"), "{text}");
        }
        assert!(wanted("99999999").expect_err("too many").contains("first 1048576"));
    }

    #[test]
    fn streams_are_numbered_as_they_appear() {
        let end = |number: u8| SocketAddr::from(([10, 0, 0, number], 80));
        let packet =
            |from, to, sequence, syn| StreamHeader { ends: [end(from), end(to)], sequence, syn, ack: false };
        let packets = [
            packet(1, 2, 100, true),
            packet(3, 2, 7, false),
            packet(2, 1, 50, false),
            // Repeated, and begun anew.
            packet(1, 2, 100, true),
            packet(1, 2, 900, true),
            packet(2, 1, 51, false),
            packet(4, 2, 0, true),
            // The first byte of the second stream was behind this SYN.
            packet(3, 2, 6, true),
        ];
        let parts = |wanted: &str| -> Vec<usize> {
            let mut choice = Choice::new(wanted.parse().expect("a stream"));
            let mut parts = packets.iter().map(|told| choice.membership(told)).zip(0..);
            let its: Vec<_> = parts.by_ref().filter(|(part, _)| *part != Membership::None).collect();
            assert_eq!(its[0].0, Membership::Begins);
            its.into_iter().map(|(_, at)| at).collect()
        };
        assert_eq!(parts("0"), [0, 2, 3]);
        assert_eq!(parts("1"), [1, 7]);
        assert_eq!(parts("2"), [4, 5]);
        assert_eq!(parts("3"), [6]);
        assert_eq!(parts("10.0.0.2:80-10.0.0.1:80"), [0, 2, 3, 4, 5]);
    }
}
