//! Prints packets as text, in tcpdump's format, with the interface where tcpdump prints it or if asked.

use std::io::{self, Write};

use weir::who::Whose;
use weir::{Direction, FileInterface, Packet};
use weir_dissect::{Dissector, Dump, Resolve};

use crate::clock::Clock;
use crate::harmless::harmless;
use crate::{Naming, OwnersLine, Printed, Ready, Ruling, units};

/// The dump below a line: its format, and whether it includes the link-layer header.
pub type Below = Option<(Dump, bool)>;

/// When lines begin with the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// However many there are.
    Never,
    /// If there are several interfaces, as in a live capture of tcpdump.
    Several,
    /// Even if there is only one.
    Always,
}

/// Prints packets as lines.
#[derive(Debug)]
pub struct Lines {
    clock: Clock,
    dissector: Dissector,
    below: Below,
    numbers: bool,
    count: u64,
    column: Column,
    /// By number.
    interfaces: Vec<Printed>,
    /// `None`: numbers.
    naming: Option<Naming>,
    /// Of the next packet.
    ruling: Option<Ruling>,
    whose: Option<Whose>,
}

impl Lines {
    /// `numbers`: whether each line begins with the packet's number.
    pub fn new(clock: Clock, dissector: Dissector, below: Below, numbers: bool, column: Column) -> Self {
        let (interfaces, naming, ruling, whose) = (Vec::new(), None, None, None);
        Self { clock, dissector, below, numbers, count: 0, column, interfaces, naming, ruling, whose }
    }

    /// Prints names from now on.
    pub fn with_names(self, naming: Naming) -> Self {
        Self { naming: Some(naming), ..self }
    }

    /// Asks for the names in the line of a packet.
    pub(crate) fn prepare(&mut self, packet: &Packet<'_>) -> Ready {
        let Some(naming) = &mut self.naming else { return Ready::Now };
        let unknown = Printed::default();
        let printed = self.interfaces.get(packet.interface as usize).unwrap_or(&unknown);
        naming.prepare(packet, printed.link_type, &printed.others)
    }

    /// Waits for the names that the last call of `prepare` has asked for.
    pub(crate) fn wait(&mut self) {
        self.naming.iter_mut().for_each(Naming::wait);
    }

    /// Adds an interface.
    pub(crate) fn interface(&mut self, interface: &FileInterface) {
        let number = self.interfaces.len();
        let name = interface.name.as_deref().map(harmless).unwrap_or_else(|| format!("#{number}"));
        self.interfaces.push(Printed::new(interface, name));
    }

    /// Adds what rules decide about the next packet.
    pub(crate) fn judged(&mut self, ruling: &Ruling) {
        self.ruling = Some(ruling.clone());
    }

    /// Adds whose the next packet is.
    pub(crate) fn owned(&mut self, whose: &Whose) {
        self.whose = Some(whose.clone());
    }

    /// Appends the line of a packet.
    pub(crate) fn packet(&mut self, packet: &Packet<'_>, text: &mut Vec<u8>) -> io::Result<()> {
        self.count += 1;
        if self.numbers {
            write!(text, "{:5}  ", self.count)?;
        }
        self.clock.write(packet.timestamp, text);
        let unknown = Printed::default();
        let Printed { link_type, name, others } =
            self.interfaces.get(packet.interface as usize).unwrap_or(&unknown);
        let shown = match self.column {
            Column::Never => false,
            Column::Several => self.interfaces.len() > 1,
            Column::Always => true,
        };
        if shown {
            text.extend_from_slice(name.as_bytes());
            text.resize(text.len() + 5_usize.saturating_sub(name.len()) + 1, b' ');
            match packet.direction {
                Some(Direction::In) => text.extend_from_slice(b"In  "),
                Some(Direction::Out) => text.extend_from_slice(b"Out "),
                _ => {}
            }
        }
        let naming = self.naming.as_mut().map(|naming| naming as &mut dyn Resolve);
        let (data, len) = (packet.data, packet.original_len);
        let facts = self.dissector.packet_named(naming, others, *link_type, data, len, text);
        if let Some(whose) = self.whose.take() {
            write!(text, "  {}", OwnersLine(&whose))?;
        }
        if packet.lost_before > 0 {
            write!(text, "  [{} lost before]", packet.lost_before)?;
        }
        for comment in packet.notes.comments() {
            write!(text, "  [{}]", harmless(comment))?;
        }
        if let Some(ruling) = self.ruling.take() {
            write!(text, "  {ruling}")?;
        }
        if let Some((dump, whole)) = self.below {
            let from = if whole { 0 } else { facts.link_len.min(packet.data.len()) };
            dump.write(&packet.data[from..], text);
        }
        text.push(b'\n');
        Ok(())
    }

    /// Appends a line that stands for packets without one.
    pub(crate) fn not_printed(&mut self, packets: u64, text: &mut Vec<u8>) -> io::Result<()> {
        self.count += packets;
        writeln!(text, "[{} not printed]", units::grouped(packets))
    }

    /// Appends a line that stands for at least `bytes` bytes of a file.
    pub(crate) fn not_read(bytes: u64, text: &mut Vec<u8>) -> io::Result<()> {
        writeln!(text, "[at least {} bytes not read: overwritten]", units::grouped(bytes))
    }
}
