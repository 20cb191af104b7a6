//! Flows on standard output: each when it ends, or a table of the busiest.

use std::io::{self, Write};

use weir::flows::{Counts, Flow, Rank};
use weir_render::flows::{label, line, object};
use weir_render::json;

use super::args::Form;
use super::outlet::Destination;
use crate::columns::{aligned, draw};
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
        line(flow, &units::local_time(flow.first), &protocol_of(flow), &mut text);
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

fn protocol_of(flow: &Flow) -> String {
    protocol::name(flow.protocol).map_or_else(|| flow.protocol.to_string(), str::to_owned)
}

/// The columns behind the label, with their widths. `>`: from who began.
const COLUMNS: [(&str, usize); 8] = [
    ("bit/s", 12),
    ("bytes", 9),
    ("packets", 11),
    ("> bytes", 9),
    ("< bytes", 9),
    ("again", 7),
    ("server", 8),
    ("seconds", 8),
];

/// The busiest flows on a terminal, redrawn, or once.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Lines of the table on the screen, if it is there.
    drawn: usize,
}

impl Shown {
    /// Prints the table, over the last one on a terminal. `counts`: of all flows.
    pub(super) fn print(
        &mut self,
        flows: &[Flow],
        counts: &Counts,
        rank: Rank,
        redrawn: bool,
    ) -> io::Result<()> {
        let width = if redrawn { style::columns().saturating_sub(1) } else { usize::MAX };
        let mut lines = table(flows, counts, rank, width);
        if redrawn {
            // The table, the cursor, and one line more.
            let room = style::rows().saturating_sub(2).max(2);
            let sums = lines.split_off(lines.len() - 1);
            lines.truncate(room - 1);
            lines.extend(sums);
            return draw(&mut out::stdout(), &lines, &mut self.drawn);
        }
        // In place of the table that was redrawn, if there is one.
        let up = if self.drawn > 0 { format!("\x1b[{}A\r\x1b[J", self.drawn) } else { String::new() };
        self.drawn = 0;
        let mut stdout = out::stdout();
        write!(stdout, "{up}")?;
        lines.iter().try_for_each(|line| writeln!(stdout, "{line}"))?;
        stdout.flush()
    }

    /// Leaves the table, if there is one, above other output, and draws the next one below that.
    pub(super) fn leave(&mut self) {
        self.drawn = 0;
    }
}

/// Returns the head, a row for each flow, and one for all.
fn table(flows: &[Flow], counts: &Counts, rank: Rank, most: usize) -> Vec<String> {
    let head = match rank {
        Rank::Bytes => "flows by bytes",
        Rank::Packets => "flows by packets",
        Rank::Rate => "flows by rate",
        Rank::Retransmissions => "flows by retransmissions",
    };
    let rows: Vec<_> = flows.iter().map(|flow| (label(flow, &protocol_of(flow)), cells(flow))).collect();
    let all = counts.flows + counts.all_ended();
    let sum = vec![
        String::new(),
        units::bytes(counts.bytes),
        units::grouped(counts.packets - counts.not_ip - counts.cut),
    ];
    let name = if all == 1 {
        "(1 flow in all)".to_owned()
    } else {
        format!("({} flows in all)", units::grouped(all))
    };
    aligned(head, &COLUMNS, &rows.into_iter().chain([(name, sum)]).collect::<Vec<_>>(), most)
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn cells(flow: &Flow) -> Vec<String> {
    let seconds = (flow.last - flow.first) as f64 / 1e9;
    let again = flow.tcp.map(|_| units::grouped(flow.rank(Rank::Retransmissions))).unwrap_or_default();
    let server = flow.tcp.and_then(|tcp| tcp.handshake[0]);
    vec![
        // A packet alone has no rate.
        if seconds > 0.0 { format!("{}bit/s", units::scaled(flow.rate() as f64)) } else { String::new() },
        units::bytes(flow.bytes()),
        units::grouped(flow.packets()),
        units::bytes(flow.sides[0].bytes),
        units::bytes(flow.sides[1].bytes),
        again,
        server.map(|time| format!("{:.1} ms", f64::from(time) / 1000.0)).unwrap_or_default(),
        format!("{seconds:.1}"),
    ]
}
