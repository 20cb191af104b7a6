//! Packets as text: lines in tcpdump's format, or JSON objects; from files and live.

mod args;
mod clock;
mod details;
mod lines;
mod naming;
mod objects;
mod page;

use std::io;

use weir::{FileInterface, Packet};
use weir_dissect::Names;

pub(crate) use self::args::LineArgs;
pub(crate) use self::lines::{Column, Lines, harmless};
pub(crate) use self::naming::Naming;
pub(crate) use self::objects::{Objects, time as rfc3339};
pub(crate) use self::page::Page;

/// Turns packets into text.
#[derive(Debug)]
pub(crate) enum Text {
    /// A line per packet.
    Lines(Box<Lines>),
    /// A JSON object per packet.
    Objects(Box<Objects>),
}

/// Whether a packet can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    Now,
    /// After a [wait](Text::wait) for names, before which complete lines should go out.
    Soon,
    /// It has no line: it is there only because names are printed.
    Never,
}

impl Text {
    /// Prepares for the next packet.
    pub(crate) fn prepare(&mut self, packet: &Packet<'_>) -> Ready {
        match self {
            Self::Lines(lines) => lines.prepare(packet),
            Self::Objects(_) => Ready::Now,
        }
    }

    /// Waits for names, but not for long.
    pub(crate) fn wait(&mut self) {
        if let Self::Lines(lines) = self {
            lines.wait();
        }
    }

    /// Adds an interface; the first is number 0.
    pub(crate) fn interface(&mut self, interface: &FileInterface) {
        match self {
            Self::Lines(lines) => lines.interface(interface),
            Self::Objects(objects) => objects.interface(interface),
        }
    }

    /// Appends a packet to `text`.
    pub(crate) fn packet(&mut self, packet: &Packet<'_>, text: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Lines(lines) => lines.packet(packet, text),
            Self::Objects(objects) => objects.packet(packet, text),
        }
    }

    /// Appends a mark for packets that are not printed.
    pub(crate) fn not_printed(&mut self, packets: u64, text: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Lines(lines) => lines.not_printed(packets, text),
            Self::Objects(objects) => objects.not_printed(packets, text),
        }
    }

    /// Appends a mark for at least `bytes` bytes of a file that were overwritten unread.
    pub(crate) fn not_read(&mut self, bytes: u64, text: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Lines(_) => Lines::not_read(bytes, text),
            Self::Objects(_) => Objects::not_read(bytes, text),
        }
    }
}

/// The printed form of an interface.
#[derive(Debug, Default)]
struct Printed {
    link_type: u16,
    name: String,
    /// Names of the interfaces that its packets may belong to, if it stands for all.
    others: Names,
}

impl Printed {
    fn new(interface: &FileInterface, name: String) -> Self {
        let others = interface.others().into_iter().map(|(index, name)| (index, harmless(&name))).collect();
        Self { link_type: interface.link_type, name, others }
    }
}
