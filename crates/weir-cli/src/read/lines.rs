//! Prints packets as text, in tcpdump's format, with the interface if there are several.

use std::io::{self, Write};

use weir::reader::{Reader, Run};
use weir::{Direction, FileInterface, Packet};
use weir_dissect::{Dissector, Dump, Names};

use super::clock::Clock;
use super::sink::{End, Page, Sink};
use crate::style;

/// The dump below a line: its format, and whether it includes the link-layer header.
pub(crate) type Below = Option<(Dump, bool)>;

/// Prints packets as lines.
#[derive(Debug)]
pub(crate) struct Lines {
    page: Page,
    clock: Clock,
    dissector: Dissector,
    below: Below,
    numbers: bool,
    count: u64,
    /// By number.
    interfaces: Vec<Printed>,
}

/// The printed form of an interface.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) link_type: u16,
    pub(super) name: String,
    /// Names of the interfaces that its packets may belong to, if it stands for all.
    pub(super) others: Names,
}

impl Printed {
    pub(super) fn new(interface: &FileInterface, name: String) -> Self {
        let others = interface.others().into_iter().map(|(index, name)| (index, harmless(&name))).collect();
        Self { link_type: interface.link_type, name, others }
    }
}

impl Lines {
    /// `numbers`: whether each line begins with the packet's number.
    pub(crate) fn new(clock: Clock, dissector: Dissector, below: Below, numbers: bool) -> Self {
        Self { page: Page::new(), clock, dissector, below, numbers, count: 0, interfaces: Vec::new() }
    }
}

impl Sink for Lines {
    fn interface(&mut self, interface: &FileInterface, _fine: bool) -> Result<(), End> {
        let number = self.interfaces.len();
        let name = interface.name.as_deref().map(harmless).unwrap_or_else(|| format!("#{number}"));
        self.interfaces.push(Printed::new(interface, name));
        Ok(())
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), End> {
        let text = &mut self.page.text;
        self.count += 1;
        if self.numbers {
            write!(text, "{:5}  ", self.count)?;
        }
        self.clock.write(packet.timestamp, text);
        let unknown = Printed::default();
        let Printed { link_type, name, others } =
            self.interfaces.get(packet.interface as usize).unwrap_or(&unknown);
        if self.interfaces.len() > 1 {
            text.extend_from_slice(name.as_bytes());
            text.resize(text.len() + 5_usize.saturating_sub(name.len()) + 1, b' ');
        }
        match packet.direction {
            Some(Direction::In) => text.extend_from_slice(b"In  "),
            Some(Direction::Out) => text.extend_from_slice(b"Out "),
            _ => {}
        }
        let facts = self.dissector.packet_among(others, *link_type, packet.data, packet.original_len, text);
        if packet.lost_before > 0 {
            write!(text, "  [{} lost before]", packet.lost_before)?;
        }
        for comment in packet.notes.comments() {
            write!(text, "  [{}]", harmless(comment))?;
        }
        if let Some((dump, whole)) = self.below {
            let from = if whole { 0 } else { facts.link_len.min(packet.data.len()) };
            dump.write(&packet.data[from..], text);
        }
        text.push(b'\n');
        Ok(self.page.turn()?)
    }

    fn finish(&mut self) -> Result<(), End> {
        Ok(self.page.flush()?)
    }
}

/// Makes text from a file safe to print on a terminal.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|c| if style::is_order(c) { '\u{fffd}' } else { c }).collect()
}

/// Counts packets, and prints only their number.
#[derive(Debug, Default)]
pub(crate) struct Count {
    count: u64,
    /// Whether the number would be incomplete.
    refused: bool,
}

impl Sink for Count {
    fn interface(&mut self, _interface: &FileInterface, _fine: bool) -> Result<(), End> {
        Ok(())
    }

    fn packet(&mut self, _packet: &Packet<'_>) -> Result<(), End> {
        self.count += 1;
        Ok(())
    }

    fn takes_runs(&self, _input: &Reader) -> bool {
        true
    }

    fn run(&mut self, run: &Run<'_>) -> Result<(), End> {
        self.count += run.packets;
        Ok(())
    }

    fn refused(&mut self) {
        self.refused = true;
    }

    fn finish(&mut self) -> Result<(), End> {
        if self.refused { Ok(()) } else { Ok(writeln!(io::stdout(), "{}", self.count)?) }
    }
}
