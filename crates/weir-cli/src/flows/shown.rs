//! Flows on standard output: each when it ends, or a table of the busiest.

use std::io::{self, IsTerminal as _, Write};

use weir::flows::{Counts, Flow, Rank};
use weir_render::flows::{line, object};
use weir_render::json;

use super::args::Form;
use super::busiest::{self, Growth};
use super::outlet::Destination;
use crate::columns::Drawn;
use crate::{out, protocol, style, units};

/// Prints each flow.
#[derive(Debug)]
pub(super) struct Printer {
    form: Form,
    /// Names of interfaces, by number.
    interfaces: Vec<String>,
    text: Vec<u8>,
}

impl Printer {
    pub(super) fn new(form: Form, interfaces: Vec<String>) -> Self {
        Self { form, interfaces, text: Vec::new() }
    }

    /// Adds the next interface.
    pub(super) fn interface(&mut self, name: String) {
        self.interfaces.push(name);
    }

    /// Prints a flow, to be written with others.
    pub(super) fn print(&mut self, flow: &Flow) -> io::Result<()> {
        let unknown = String::new();
        let interface = self.interfaces.get(usize::from(flow.interface)).unwrap_or(&unknown);
        if self.form == Form::Json {
            json::to_writer(&mut self.text, &object(flow, interface))?;
            self.text.push(b'\n');
            return Ok(());
        }
        let mut text = String::new();
        line(flow, &units::local_time(flow.first), &protocol::shown(flow.protocol), &mut text);
        self.text.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// Writes what was printed.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let mut stdout = out::stdout();
        stdout.write_all(&self.text)?;
        self.text.clear();
        stdout.flush()
    }
}

impl Destination for Printer {
    fn send(&mut self, flows: &[Flow]) -> io::Result<()> {
        // What is written at once is written soon.
        for some in flows.chunks(1000) {
            some.iter().try_for_each(|flow| self.print(flow))?;
            self.write()?;
        }
        Ok(())
    }
}

/// The busiest flows on a terminal, redrawn, or one table below the other.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// The table on the screen, if it is there.
    drawn: Drawn,
    /// What the last table was about; `None`: there is only one.
    growth: Option<Growth>,
    /// There has been a table that is not drawn over.
    printed: bool,
}

impl Shown {
    /// Of a table that comes again and again.
    pub(super) fn repeated() -> Self {
        Self { growth: Some(Growth::start()), ..Self::default() }
    }

    /// Prints the table, over the last one on a terminal. `counts`: of all flows.
    pub(super) fn print(
        &mut self,
        flows: &[Flow],
        counts: &Counts,
        rank: Rank,
        redrawn: bool,
    ) -> io::Result<()> {
        let is_terminal = io::stdout().is_terminal();
        let width = if is_terminal { style::columns().saturating_sub(1) } else { usize::MAX };
        let now = self.growth.as_mut().map(|growth| growth.rates(flows));
        let mut lines = busiest::table(flows, now.as_deref(), counts, rank, width);
        if redrawn {
            // The table, the cursor, and one line more.
            let room = style::rows().saturating_sub(2).max(2);
            let sums = lines.split_off(lines.len() - 1);
            lines.truncate(room - 1);
            lines.extend(sums);
            return self.drawn.draw(&mut out::stdout(), &lines, style::columns());
        }
        // In place of the table that was redrawn, if there is one.
        let mut stdout = out::stdout();
        write!(stdout, "{}", self.drawn.clear())?;
        if std::mem::replace(&mut self.printed, true) {
            writeln!(stdout)?;
        }
        lines.iter().try_for_each(|line| writeln!(stdout, "{line}"))?;
        stdout.flush()
    }

    /// Leaves the table, if there is one, above other output, and draws the next one below that.
    pub(super) fn leave(&mut self) {
        self.drawn.leave();
    }
}
