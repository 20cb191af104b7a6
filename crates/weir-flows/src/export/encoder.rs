//! Any of the formats.

use std::fmt::{self, Display, Formatter};

use super::ipfix::Ipfix;
use super::netflow5::Netflow5;
use super::netflow9::Netflow9;
use super::outbox::Exported;
use super::settings::{Account, Error, Settings};
use crate::flow::Flow;

/// How flows become messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// IPFIX, which can tell all.
    #[default]
    Ipfix,
    /// NetFlow v9.
    Netflow9,
    /// NetFlow v5.
    Netflow5,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ipfix, Self::Netflow9, Self::Netflow5];

    /// Returns the port that collectors listen on: IANA's for IPFIX, and what is usual for NetFlow.
    pub fn port(self) -> u16 {
        match self {
            Self::Ipfix => 4739,
            Self::Netflow9 | Self::Netflow5 => 2055,
        }
    }
}

impl Display for Format {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipfix => "IPFIX",
            Self::Netflow9 => "NetFlow v9",
            Self::Netflow5 => "NetFlow v5",
        })
    }
}

/// Makes messages of one format, chosen when the program runs.
///
/// `now` is in nanoseconds since the Unix epoch. `send` gets whole messages, each for a datagram of its own, and returns whether
/// it has sent them; sequence numbers count those as well that it has not, so that collectors see what is missing.
#[derive(Debug)]
pub enum Encoder {
    /// Of IPFIX.
    Ipfix(Ipfix),
    /// Of NetFlow v9.
    Netflow9(Netflow9),
    /// Of NetFlow v5.
    Netflow5(Netflow5),
}

/// Does the same whatever the format is.
macro_rules! each {
    ($encoder:ident, $inner:ident => $what:expr) => {
        match $encoder {
            Self::Ipfix($inner) => $what,
            Self::Netflow9($inner) => $what,
            Self::Netflow5($inner) => $what,
        }
    };
}

impl Encoder {
    /// # Errors
    ///
    /// If the format cannot do what the settings say.
    pub fn new(format: Format, settings: &Settings) -> Result<Self, Error> {
        Ok(match format {
            Format::Ipfix => Self::Ipfix(Ipfix::new(settings)?),
            Format::Netflow9 => Self::Netflow9(Netflow9::new(settings)?),
            Format::Netflow5 => Self::Netflow5(Netflow5::new(settings)?),
        })
    }

    /// Adds a flow. Messages that are full are handed out.
    pub fn add(&mut self, flow: &Flow, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        each!(self, inner => inner.add(flow, now, send));
    }

    /// Adds a record of what became of all packets and flows, as far as the format has one: IPFIX tells it all, v9 what was
    /// exported, v5 nothing.
    pub fn account(&mut self, account: &Account, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        each!(self, inner => inner.account(account, now, send));
    }

    /// Hands out the message that is being made, if there is one.
    pub fn flush(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        each!(self, inner => inner.flush(now, send));
    }

    /// Has templates go with the next message, for a collector that has perhaps begun anew.
    pub fn remind(&mut self) {
        match self {
            Self::Ipfix(inner) => inner.remind(),
            Self::Netflow9(inner) => inner.remind(),
            Self::Netflow5(_) => {}
        }
    }

    /// Begins a new session, for another TCP connection, file or collector: with templates, and the sequence number 0. The
    /// message that is being made belongs to the old session, and is handed out first.
    pub fn restart(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        each!(self, inner => inner.restart(now, send));
    }

    /// Begins a new session in place of one that broke, such as a TCP connection: IPFIX hands out its templates, and the message
    /// that is being made follows in the new session. NetFlow has no such sessions, and does what [`Self::restart`] does.
    pub fn resume(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        match self {
            Self::Ipfix(inner) => inner.resume(now, send),
            Self::Netflow9(inner) => inner.restart(now, send),
            Self::Netflow5(inner) => inner.restart(now, send),
        }
    }

    /// Returns what became of the flows.
    pub fn exported(&self) -> Exported {
        each!(self, inner => inner.exported())
    }
}
