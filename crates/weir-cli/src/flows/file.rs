//! Flows of files.

use std::cmp::Reverse;
use std::io;

use serde::Serialize;
use weir::Filter;
use weir::filter::FileFilter;
use weir::flows::{Flow, Observation, Rank, Table, observation};
use weir::reader::{Item, ReadError};
use weir_render::json;
use weir_service::archive::Archive;
use weir_service::confine::{self, Needs};
use weir_service::launcher::Launcher;

use super::args::{FlowsArgs, Form};
use super::exports::{Exports, Opened};
use super::losses;
use super::outlet::{self, Outlet};
use super::shown::{Printer, Shown};
use super::summary::FlowCounts;
use super::tables;
use crate::failure::{self, Failure};
use crate::read::{self, Input, Progress, Sort};
use crate::{out, style};

/// The account of a file.
#[derive(Debug, Serialize)]
struct FileAccount<'a> {
    /// Always `account`.
    r#type: &'static str,
    flows: &'a FlowCounts,
}

/// Shows the flows of the files.
pub(super) fn run(args: &FlowsArgs, filter: Option<Filter>) -> Result<(), Failure> {
    let files = &args.read;
    let confined = args.live.confine.is_on();
    let opened = Opened::open(
        &args.to,
        &args.exported(),
        files,
        |directory| Archive::new(directory, confined),
        Launcher::start,
    )?;
    // What was read by then is sent, and counted. Without destinations a signal ends the process, as other commands that read.
    if !args.to.is_empty() {
        opened.on_signals()?;
    }
    let filter = filter.map(FileFilter::new).transpose();
    let filter = filter.map_err(|error| Failure::usage(error.to_string()))?;
    let held = args.live.confine.confine(|| {
        let needs = Needs::to_read(files, None);
        if filter.is_some() { needs.make_code() } else { needs }
    })?;
    // As the live traffic came, the queues of a capture together.
    let sort = Sort::ByQueue;
    let mut input = Input::open_until_signal(files, sort, filter.as_ref())?;
    let form = args.form();
    let mut progress = Progress::new(input.meters(), input.size(), form == Form::Lines);
    // The interfaces are known as packets come, so collectors are told numbers.
    let exports = Exports::start(opened, args.exported(), &[])?;
    let mut found = Found::new(args, exports.outlets().cloned().collect())?;
    let (mut damage, mut has_code) = (Vec::<ReadError>::new(), filter.is_some());
    let result = loop {
        if exports.is_interrupted() {
            read::note(format_args!("interrupted: the rest was not read"));
            break Ok(());
        }
        match input.next() {
            Ok(Some(Item::Packet(packet))) => {
                if std::mem::take(&mut has_code) {
                    confine::end_of_code(held.as_ref())?;
                }
                found.read.packet(&packet, &mut found.table);
                let link_type = found.link_types[packet.interface as usize];
                if found.gathered.add(&observation(&packet, link_type))
                    && let Err(error) = found.take()
                {
                    break Err(error);
                }
            }
            Ok(Some(Item::Interface(number))) => {
                let Some(interface) = input.interfaces().get(number as usize) else { continue };
                if let Some(filter) = &filter {
                    filter.expect([interface.link_type]);
                }
                found.link_types.push(interface.link_type);
                let name = interface.name.clone().filter(|name| !name.is_empty());
                let name = name.unwrap_or_else(|| format!("#{number}"));
                exports.interface(name.clone());
                found.printer.interface(name);
            }
            Ok(Some(_)) => {}
            Ok(None) => break Ok(()),
            Err(error) => damage.push(error),
        }
    };
    progress.clear();
    let printed = result.and_then(|()| found.end());
    let counts = found.table.counts();
    exports.set_account(&counts);
    let counts = FlowCounts::new(&counts, None, exports.finish());
    let printed = printed.and_then(|()| match form {
        Form::Json => json::line(out::stdout(), &FileAccount { r#type: "account", flows: &counts }),
        Form::Table | Form::Lines | Form::Nothing => Ok(()),
    });
    let piped = printed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
    if !args.quiet && !piped {
        style::print(&counts.text());
        read::say_odd(&input, sort);
    }
    let printed = failure::printed(printed).err();
    let result = Failure::each(damage.into_iter().map(read::failure).chain(printed).collect());
    args.live.loss.end(result, counts.loss(), !args.quiet)
}

/// Packets that are added together, which is faster.
#[derive(Debug, Default)]
struct Gathered {
    bytes: Vec<u8>,
    /// Each without its frame, and where that ends.
    packets: Vec<(Observation<'static>, usize)>,
}

impl Gathered {
    /// So many.
    const MOST: usize = 256;

    /// Adds a packet. Returns whether there are enough.
    fn add(&mut self, packet: &Observation<'_>) -> bool {
        self.bytes.extend_from_slice(packet.frame);
        self.packets.push((Observation { frame: &[], ..*packet }, self.bytes.len()));
        self.packets.len() >= Self::MOST
    }

    fn packets(&self) -> impl Iterator<Item = Observation<'_>> {
        let begins = std::iter::once(0).chain(self.packets.iter().map(|(_, end)| *end));
        begins
            .zip(&self.packets)
            .map(|(begin, (packet, end))| Observation { frame: &self.bytes[begin..*end], ..*packet })
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.packets.clear();
    }
}

/// Flows as they are found.
struct Found {
    read: losses::Read,
    gathered: Gathered,
    table: Table,
    link_types: Vec<u16>,
    form: Form,
    rank: Rank,
    most: usize,
    printer: Printer,
    /// All that flows are handed to.
    outlets: Vec<Outlet>,
    ended: Vec<Flow>,
    busiest: Vec<Flow>,
}

/// How many flows are sorted or printed at a time.
const BATCH: usize = 10_000;

impl Found {
    fn new(args: &FlowsArgs, outlets: Vec<Outlet>) -> Result<Self, Failure> {
        let form = args.form();
        Ok(Self {
            read: losses::Read::default(),
            gathered: Gathered::default(),
            table: tables::table(&args.table())?,
            link_types: Vec::new(),
            form,
            rank: args.rank(),
            most: args.top(),
            printer: Printer::new(form, Vec::new()),
            outlets,
            ended: Vec::new(),
            busiest: Vec::new(),
        })
    }

    /// Adds the packets that were gathered. Exports the flows that have ended, and prints them or keeps the busiest, once there are many.
    fn take(&mut self) -> io::Result<()> {
        self.table.add_all(self.gathered.packets(), &mut |flow| self.ended.push(flow));
        self.gathered.clear();
        if self.ended.len() < BATCH { Ok(()) } else { self.put() }
    }

    fn put(&mut self) -> io::Result<()> {
        if !self.outlets.is_empty() {
            outlet::give_all(&self.outlets, self.ended.clone(), Outlet::give_patiently);
        }
        match self.form {
            Form::Nothing => self.ended.clear(),
            Form::Table => {
                self.busiest.append(&mut self.ended);
                let rank = self.rank;
                self.busiest.sort_by_key(|flow| Reverse(flow.rank(rank)));
                self.busiest.truncate(self.most);
            }
            Form::Lines | Form::Json => {
                self.ended.drain(..).try_for_each(|flow| self.printer.print(&flow))?;
                self.printer.write()?;
            }
        }
        Ok(())
    }

    /// Ends all flows, and prints what is left.
    fn end(&mut self) -> io::Result<()> {
        self.take()?;
        self.table.end_all(&mut |flow| self.ended.push(flow));
        self.put()?;
        if self.form == Form::Table {
            Shown::default().print(&self.busiest, &self.table.counts(), self.rank, false)?;
        }
        Ok(())
    }
}
