//! Prints packets, or only their number, to standard output.

use weir::reader::{Reader, Run};
use weir::who::Whose;
use weir::{FileInterface, Packet};
use weir_render::{Ready, Ruling, Text};

use super::sink::{End, Sink};
use crate::out;
use crate::text::Page;

/// Prints packets.
#[derive(Debug)]
pub(crate) struct Lines {
    text: Text,
    page: Page,
}

impl Lines {
    pub(crate) fn new(text: Text) -> Self {
        Self { text, page: Page::new() }
    }
}

impl Sink for Lines {
    fn interface(&mut self, interface: &FileInterface, _fine: bool) -> Result<(), End> {
        self.text.interface(interface);
        Ok(())
    }

    fn judged(&mut self, ruling: &Ruling) {
        self.text.judged(ruling);
    }

    fn owned(&mut self, whose: &Whose) {
        self.text.owned(whose);
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), End> {
        match self.text.prepare(packet) {
            Ready::Now => {}
            Ready::Soon => {
                self.page.flush()?;
                self.text.wait();
            }
            Ready::Never => return Ok(()),
        }
        self.text.packet(packet, &mut self.page.text)?;
        if self.page.is_full() { Ok(self.page.flush()?) } else { Ok(()) }
    }

    fn pause(&mut self) -> Result<(), End> {
        Ok(self.page.flush()?)
    }

    fn overwritten(&mut self, bytes: u64) -> Result<(), End> {
        Ok(self.text.not_read(bytes, &mut self.page.text)?)
    }

    fn finish(&mut self) -> Result<(), End> {
        Ok(self.page.flush()?)
    }
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
        if self.refused { Ok(()) } else { Ok(out::print(format!("{}\n", self.count).as_bytes())?) }
    }
}
