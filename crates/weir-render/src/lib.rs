//! Packets as text: lines in tcpdump's format, or JSON objects; from files and live.
//!
//! ```text
//! Packet -> Text -> Lines    clock, interface, weir-dissect's line [with the names of a Directory], dump
//!                '> Objects  numbers, weir-dissect's facts, details of DNS, TLS and HTTP, line
//! ```
//!
//! ```
//! use weir::reader::{Item, Reader};
//! use weir_dissect::Dissector;
//! use weir_render::clock::{Clock, Style};
//! use weir_render::{Column, Lines, Text};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut file = [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 101, 1_700_000_000, 5, 28, 28].map(u32::to_ne_bytes).concat();
//! # file[4..8].copy_from_slice(&[2_u16, 4].map(u16::to_ne_bytes).concat());
//! # file.extend(*b"\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02\x04\0\x08\0\0\x08\0\0");
//! let clock = Clock::new(Style::Epoch, false, jiff::tz::TimeZone::UTC);
//! let lines = Lines::new(clock, Dissector::new(Default::default()), None, false, Column::Never);
//! let mut text = Text::Lines(Box::new(lines));
//! let mut page = Vec::new();
//! let mut reader = Reader::from_read(Box::new(std::io::Cursor::new(file)), "a.pcap")?;
//! while let Some(item) = reader.next()? {
//!     match item {
//!         Item::Interface(number) => text.interface(&reader.interfaces()[number as usize]),
//!         Item::Packet(packet) => text.packet(&packet, &mut page)?,
//!         _ => {}
//!     }
//! }
//! assert_eq!(page, b"1700000000.000005 IP 10.0.0.1.1024 > 10.0.0.2.2048: UDP, length 0\n");
//! # Ok(())
//! # }
//! ```
//!
//! - `lines`, `clock`, `naming`: lines, their timestamps, and the names in them.
//! - `objects`, `details`: objects, and what they say of payloads.
//! - `flows`: flows as lines and objects.
//! - `ruling`: what rules decide about a packet. `owners`: whose it is.
//! - `beneath`: the interfaces that one of a file stands for.
//! - `units`: numbers as people read them; `quantities`: with their unit, as people write them.
//! - `harmless`, `json`: text from others, safe to print on a terminal.
//!
//! All text is appended to what the caller hands over. Nothing here reads, writes or asks anything: names come from a
//! [`Directory`], which may, and time zones from the caller.

#![forbid(unsafe_code)]

mod beneath;
pub mod clock;
mod details;
pub mod flows;
mod harmless;
pub mod json;
mod lines;
mod naming;
mod objects;
mod owners;
pub mod quantities;
mod ruling;
pub mod units;

use std::io;

use weir::who::Whose;
use weir::{FileInterface, Packet};
use weir_dissect::Names;

pub use self::beneath::Beneath;
pub use self::harmless::{harmless, is_order, visible};
pub use self::lines::{Below, Column, Lines};
pub use self::naming::{Directory, Naming};
pub use self::objects::{Objects, time as rfc3339};
pub use self::owners::{OwnersComment, OwnersLine};
pub use self::ruling::Ruling;

/// Turns packets into text.
#[derive(Debug)]
pub enum Text {
    /// A line per packet.
    Lines(Box<Lines>),
    /// A JSON object per packet.
    Objects(Box<Objects>),
}

/// Whether a packet can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// At once.
    Now,
    /// After a [wait](Text::wait) for names, before which complete lines should go out.
    Soon,
    /// It has no line: it is there only because names are printed.
    Never,
}

impl Text {
    /// Prepares for the next packet.
    pub fn prepare(&mut self, packet: &Packet<'_>) -> Ready {
        match self {
            Self::Lines(lines) => lines.prepare(packet),
            Self::Objects(_) => Ready::Now,
        }
    }

    /// Waits for names, but not for long.
    pub fn wait(&mut self) {
        if let Self::Lines(lines) = self {
            lines.wait();
        }
    }

    /// Adds an interface; the first is number 0.
    pub fn interface(&mut self, interface: &FileInterface) {
        match self {
            Self::Lines(lines) => lines.interface(interface),
            Self::Objects(objects) => objects.interface(interface),
        }
    }

    /// Adds what rules decide about the next packet.
    pub fn judged(&mut self, ruling: &Ruling) {
        match self {
            Self::Lines(lines) => lines.judged(ruling),
            Self::Objects(objects) => objects.judged(ruling),
        }
    }

    /// Adds whose the next packet is.
    pub fn owned(&mut self, whose: &Whose) {
        match self {
            Self::Lines(lines) => lines.owned(whose),
            Self::Objects(objects) => objects.owned(whose),
        }
    }

    /// Appends a packet to `text`.
    pub fn packet(&mut self, packet: &Packet<'_>, text: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Lines(lines) => lines.packet(packet, text),
            Self::Objects(objects) => objects.packet(packet, text),
        }
    }

    /// Appends a mark for packets that are not printed.
    pub fn not_printed(&mut self, packets: u64, text: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Lines(lines) => lines.not_printed(packets, text),
            Self::Objects(objects) => objects.not_printed(packets, text),
        }
    }

    /// Appends a mark for at least `bytes` bytes of a file that were overwritten unread.
    pub fn not_read(&mut self, bytes: u64, text: &mut Vec<u8>) -> io::Result<()> {
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
