//! Exact rules as people write them: one direction of a flow, or both, and what happens to its packets.
//!
//! ```text
//! block tcp 192.0.2.7:4444 > 198.51.100.1:80 for 10m
//! block tcp 192.0.2.7:4445 > 198.51.100.1:80 for 10m idle
//! pass vlan 5 udp [2001:db8::1]:53 > [2001:db8::2]:1053 in both directions
//! ```

mod endpoint;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use weir_filter::Error;
use weir_packet::protocol::{self, has_ports};

use crate::action::Fate;
use crate::words::Words;
use crate::{grammar, quantity};

/// The protocols that have a name here: the first one with a number is written.
const PROTOCOLS: [(&str, u8); 8] = [
    ("tcp", protocol::TCP),
    ("udp", protocol::UDP),
    ("sctp", protocol::SCTP),
    ("icmp", protocol::ICMP),
    ("icmp6", protocol::ICMPV6),
    ("ipv6-icmp", protocol::ICMPV6),
    ("icmpv6", protocol::ICMPV6),
    ("gre", protocol::GRE),
];

/// What an exact rule may do.
const ACTIONS: [&str; 3] = ["block", "pass", "bounce"];

/// The highest ID of a VLAN.
const HIGHEST_VLAN: u16 = 4095;

/// An exact rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactRule {
    /// What happens to the packets: [`Fate::Block`], [`Fate::Pass`] or [`Fate::Bounce`].
    pub fate: Fate,
    /// Which packets.
    pub packets: ExactPackets,
    /// How long it is in force; `None`: without end.
    pub lasting: Option<Duration>,
    /// Whether that time begins anew with each packet that matches it.
    pub idle: bool,
}

/// Packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactPackets {
    /// One direction.
    pub flow: ExactFlow,
    /// Whether the other direction belongs to them, too.
    pub both: bool,
}

/// One direction of a flow, as packets have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExactFlow {
    /// ID of the outermost VLAN tag; `None`: packets without a tag.
    pub vlan: Option<u16>,
    /// Protocol of the outermost IP packet, behind extension headers.
    pub protocol: u8,
    /// Where the packets come from. The port is 0 if the protocol has none.
    pub from: SocketAddr,
    /// Where they go: an address of the same kind.
    pub to: SocketAddr,
}

impl ExactRule {
    /// Parses `block tcp 192.0.2.7:4444 > 198.51.100.1:80 for 10m`.
    ///
    /// # Errors
    ///
    /// What is wrong, where in `text`, and what is probably meant.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut words = Words::new(text, 0..text.len());
        let fate = match words.peek() {
            Some("reflect") => {
                words.next();
                return Err(Error::new("an exact rule cannot reflect", words.span())
                    .help("it can block, pass or bounce; `learn reflect IF` in a rule makes one that does"));
            }
            _ => match words.one_of(&ACTIONS)? {
                "block" => Fate::Block,
                "bounce" => Fate::Bounce,
                _ => Fate::Pass,
            },
        };
        let (packets, lasting) = packets(&mut words)?;
        let (lasting, idle) = lasting.map_or((None, false), |(time, idle)| (Some(time), idle));
        Ok(Self { fate, packets, lasting, idle })
    }
}

impl ExactPackets {
    /// Parses `tcp 192.0.2.7:4444 > 198.51.100.1:80`. An action before that, and a time behind it, are read over.
    ///
    /// # Errors
    ///
    /// What is wrong, where in `text`, and what is probably meant.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut words = Words::new(text, 0..text.len());
        if words.peek().is_some_and(|word| ACTIONS.contains(&word)) {
            words.next();
        }
        Ok(packets(&mut words)?.0)
    }

    /// Returns each direction.
    pub fn directions(self) -> impl Iterator<Item = ExactFlow> {
        std::iter::once(self.flow).chain(self.both.then(|| self.flow.reversed()))
    }
}

impl ExactFlow {
    /// Returns the other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { from: self.to, to: self.from, ..self }
    }
}

/// Parses which packets, and for how long, or how long idle.
fn packets(words: &mut Words<'_>) -> Result<(ExactPackets, Option<(Duration, bool)>), Error> {
    let vlan = words.takes("vlan").then(|| vlan(words)).transpose()?;
    let protocol = protocol_of(words)?;
    let (from, from_place) = endpoint::next(words, protocol, "where the packets come from")?;
    words.expect(&[">"]).map_err(|error| {
        error.help("write `A > B`, with blanks beside it; in a shell, put the rule in quotes")
    })?;
    let (to, to_place) = endpoint::next(words, protocol, "where the packets go")?;
    if from.is_ipv6() != to.is_ipv6() {
        return Err(Error::new("an IPv4 address and an IPv6 address", from_place.start..to_place.end)
            .help("a packet has two of the same kind"));
    }
    let (mut both, mut lasting) = (false, None);
    loop {
        if !both && words.takes("in") {
            words.expect(&["both", "directions"])?;
            both = true;
        } else if lasting.is_none() && words.takes("for") {
            lasting = Some(grammar::lasting(words, "10m")?);
        } else {
            break;
        }
    }
    let flow = ExactFlow { vlan, protocol, from, to };
    match words.next() {
        None => Ok((ExactPackets { flow, both }, lasting)),
        Some(word) => {
            let message = format!("unexpected `{word}`");
            let error = words.wrong(&message, &["for", "in", "idle"]);
            Err(match error.help {
                _ if word == "idle" => error.help("`idle` stands behind a time: `for 10m idle`"),
                Some(_) => error,
                None => error.help("`for 10m`, `for 10m idle` and `in both directions` may follow"),
            })
        }
    }
}

fn vlan(words: &mut Words<'_>) -> Result<u16, Error> {
    let text = words.value("expected an ID after `vlan`")?;
    let id = text.parse().ok().filter(|&id: &u16| id <= HIGHEST_VLAN);
    id.ok_or_else(|| {
        Error::new(format!("`{text}` is not the ID of a VLAN"), words.span()).help("allowed: 0 to 4095")
    })
}

fn protocol_of(words: &mut Words<'_>) -> Result<u8, Error> {
    let text = words.value("expected a protocol, such as tcp")?;
    if text == "proto" {
        let text = words.value("expected a number after `proto`")?;
        let wrong = || Error::new(format!("`{text}` is not the number of a protocol"), words.span());
        return text.parse().map_err(|_| wrong().help("allowed: 0 to 255"));
    }
    if let Some((_, number)) = PROTOCOLS.iter().find(|(name, _)| *name == text) {
        return Ok(*number);
    }
    let error = words.wrong(&format!("unknown protocol `{text}`"), &PROTOCOLS.map(|(name, _)| name));
    Err(match error.help {
        Some(_) => error,
        None => error.help("tcp, udp, sctp, icmp, icmp6, gre, or a number: `proto 89`"),
    })
}

/// Writes it as it is read.
impl fmt::Display for ExactFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(vlan) = self.vlan {
            write!(f, "vlan {vlan} ")?;
        }
        match PROTOCOLS.iter().find(|(_, number)| *number == self.protocol) {
            Some((name, _)) => f.write_str(name)?,
            None => write!(f, "proto {}", self.protocol)?,
        }
        if has_ports(self.protocol) {
            write!(f, " {} > {}", self.from, self.to)
        } else {
            write!(f, " {} > {}", self.from.ip(), self.to.ip())
        }
    }
}

/// Writes them as they are read.
impl fmt::Display for ExactPackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.flow, if self.both { " in both directions" } else { "" })
    }
}

/// Writes it as it is read.
impl fmt::Display for ExactRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.fate, self.packets)?;
        self.lasting.map_or(Ok(()), |time| write!(f, " {}", quantity::lasting_text(time, self.idle)))
    }
}

#[cfg(test)]
mod tests;
