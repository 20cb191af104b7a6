//! How flows are exported, and what goes wrong.

use std::fmt::{self, Display, Formatter};
use std::num::NonZeroU32;
use std::time::Duration;

use super::fields::Fields;
use crate::Flow;

/// What can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What is exported; NetFlow v5 has its own fields, always the same.
    pub fields: Fields,
    /// Who exports: the observation domain of IPFIX, the source ID of v9; its lowest 8 bits are the engine ID of v5.
    pub domain: u32,
    /// Two records for a flow, one for each direction that has packets, in IPFIX, too. NetFlow always does so.
    pub uniflow: bool,
    /// The most bytes of a message: over UDP, what one datagram carries.
    pub message: usize,
    /// Templates are sent again after this time, since datagrams get lost and collectors begin anew; `None`: once, as a file or
    /// a TCP connection needs it. 0 is taken for `None`.
    pub repeat: Option<Duration>,
    /// The interfaces, by [`Flow::interface`](crate::Flow::interface).
    pub interfaces: Vec<Interface>,
    /// Which packets the flows are of, if not of all.
    pub sampling: Option<Sampling>,
}

impl Default for Settings {
    /// Basic fields, both directions in a record, in messages that fit into Ethernet frames; templates once a minute.
    fn default() -> Self {
        Self {
            fields: Fields::default(),
            domain: 0,
            uniflow: false,
            message: 1400,
            repeat: Some(Duration::from_secs(60)),
            interfaces: Vec::new(),
            sampling: None,
        }
    }
}

/// An interface, as collectors are told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its number in records. That of an interface that is not described is [`Flow::interface`](crate::Flow::interface).
    pub index: u32,
    /// Its name; what is longer than 254 bytes is cut, in v9 than 32.
    pub name: String,
    /// What it is; cut as names are, in v9 after 64 bytes.
    pub description: String,
}

/// Which packets were taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// One in so many packets.
    OneIn(NonZeroU32),
    /// Each packet with this probability.
    Probability(f64),
    /// All packets of one in so many flows.
    FlowsOneIn(NonZeroU32),
}

impl Sampling {
    /// The factor by which counts have to be multiplied, rounded.
    pub(super) fn interval(self) -> u32 {
        match self {
            Self::OneIn(number) | Self::FlowsOneIn(number) => number.get(),
            Self::Probability(probability) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "such casts saturate, and 0 is not left"
                )]
                let interval = (1.0 / probability).round() as u32;
                interval.max(1)
            }
        }
    }

    /// As v5 and v9 have it: 1 (every n-th) or 2 (at random).
    pub(super) fn algorithm(self) -> u8 {
        if matches!(self, Self::OneIn(_)) { 1 } else { 2 }
    }
}

/// What only the caller knows of its account. All count from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Flows that were seen.
    pub flows: u64,
    /// Packets that were seen, and not lost. Those that are not ignored are in flows: exported, not sent, or yet to come.
    pub packets: u64,
    /// Packets of them that are in no flow: not of IP, or cut. Their bytes are not known, so they are not exported.
    pub ignored_packets: u64,
    /// Packets that were lost before anybody saw them.
    pub lost_packets: u64,
    /// Flows that will not be sent, and were never given to the encoder.
    pub missed: Missed,
}

/// Flows that somebody has lost, with their packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// How many.
    pub flows: u64,
    /// Their packets, both ways.
    pub packets: u64,
    /// Their bytes from the IP header on, both ways.
    pub bytes: u64,
}

impl Missed {
    /// Counts one more.
    pub fn add(&mut self, flow: &Flow) {
        self.flows += 1;
        self.packets += flow.packets();
        self.bytes += flow.bytes();
    }
}

impl std::ops::AddAssign for Missed {
    fn add_assign(&mut self, other: Self) {
        self.flows += other.flows;
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// Why flows cannot be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No message has room for a record or a template.
    MessageTooSmall {
        /// What was asked for.
        message: usize,
        /// The least that would do.
        least: usize,
    },
    /// NetFlow v9 has none of the fields.
    NoFields,
    /// All fields are about the other direction, which has a record of its own.
    OnlyReverse,
    /// NetFlow v5 has 14 bits for it.
    Sampling {
        /// One in so many packets.
        interval: u32,
    },
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::MessageTooSmall { message, least } => write!(
                f,
                "cannot export in messages of {message} bytes: one needs up to {least}; \
                 try fewer fields, or longer messages"
            ),
            Self::NoFields => {
                write!(f, "cannot export these fields by NetFlow v9: it has none of them; try IPFIX")
            }
            Self::OnlyReverse => {
                write!(
                    f,
                    "cannot export these fields for one direction: they are about both; try packetDeltaCount"
                )
            }
            Self::Sampling { interval } => write!(
                f,
                "cannot tell by NetFlow v5 that one in {interval} packets was taken: it has room up to 16383; \
                 try NetFlow v9 or IPFIX"
            ),
        }
    }
}

impl std::error::Error for Error {}
