//! NetFlow v9 (RFC 3954), for collectors that do not read IPFIX: each direction in a record of its own, times in milliseconds.

use super::outbox::{Described, Exported, Outbox, SET_HEADER, low16};
use super::record::{Layout, View, cut, put};
use super::repeat::Repeat;
use super::settings::{Account, Error, Interface, Sampling, Settings};
use super::uptime::Uptime;
use crate::flow::Flow;

const HEADER: usize = 20;
/// IDs of the sets that describe others.
const TEMPLATES: u16 = 0;
const OPTIONS: u16 = 1;
/// IDs of templates.
const FLOWS: [u16; 2] = [256, 257];
const INTERFACES: u16 = 258;
const SAMPLING: u16 = 259;
const ACCOUNT: u16 = 260;

/// What is told of the exporter, or of an interface of it.
const SYSTEM: (u16, u16) = (1, 4);
const INTERFACE: (u16, u16) = (2, 4);
/// Bytes of names and descriptions, of a record about an interface.
const NAME: u16 = 32;
const DESCRIPTION: u16 = 64;

struct Options {
    id: u16,
    scope: (u16, u16),
    fields: &'static [(u16, u16)],
}

const OF_INTERFACES: Options =
    Options { id: INTERFACES, scope: INTERFACE, fields: &[(82, NAME), (83, DESCRIPTION)] };
/// SAMPLING_INTERVAL and SAMPLING_ALGORITHM.
const OF_SAMPLING: Options = Options { id: SAMPLING, scope: SYSTEM, fields: &[(34, 4), (35, 1)] };
/// TOTAL_BYTES_EXP, TOTAL_PKTS_EXP and TOTAL_FLOWS_EXP.
const OF_ACCOUNT: Options = Options { id: ACCOUNT, scope: SYSTEM, fields: &[(40, 8), (41, 8), (42, 8)] };

impl Options {
    fn length(&self) -> usize {
        10 + 4 * self.fields.len()
    }

    fn record_length(&self) -> usize {
        let lengths = self.fields.iter().map(|(_, length)| usize::from(*length));
        usize::from(self.scope.1) + lengths.sum::<usize>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        for word in [self.id, 4, low16(4 * self.fields.len())] {
            out.extend(word.to_be_bytes());
        }
        for (number, length) in std::iter::once(&self.scope).chain(self.fields) {
            out.extend(number.to_be_bytes());
            out.extend(length.to_be_bytes());
        }
    }
}

/// Makes messages of NetFlow v9. The sequence number counts messages.
#[derive(Debug)]
pub struct Netflow9 {
    outbox: Outbox,
    layouts: [Layout; 2],
    uptime: Uptime,
    source: u32,
    repeat: Repeat,
    interfaces: Vec<Interface>,
    sampling: Option<Sampling>,
    sequence: u32,
    /// Records of all kinds in the message.
    records: u16,
}

impl Netflow9 {
    /// # Errors
    ///
    /// If the messages are too small, or v9 has none of the fields.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let elements = settings.fields.elements();
        let layouts =
            [(FLOWS[0], false), (FLOWS[1], true)].map(|(id, is_v6)| Layout::netflow9(id, elements, is_v6));
        if layouts.iter().any(|layout| layout.columns.is_empty()) {
            return Err(Error::NoFields);
        }
        let records = layouts.iter().map(Layout::longest);
        let templates = layouts.iter().map(template_length);
        let options = [OF_INTERFACES, OF_SAMPLING, OF_ACCOUNT];
        let longest = options.iter().flat_map(|options| [options.length(), options.record_length()]);
        let longest = records.chain(templates).chain(longest).max().unwrap_or_default();
        let least = HEADER + (SET_HEADER + longest).next_multiple_of(4);
        // Padding that has room for a record would be one.
        let align = if layouts.iter().any(|layout| layout.longest() < 4) { 1 } else { 4 };
        if settings.message < least {
            return Err(Error::MessageTooSmall { message: settings.message, least });
        }
        Ok(Self {
            outbox: Outbox::new(HEADER, settings.message, align),
            layouts,
            uptime: Uptime::default(),
            source: settings.domain,
            repeat: Repeat::new(settings.repeat),
            interfaces: settings.interfaces.clone(),
            sampling: settings.sampling,
            sequence: 0,
            records: 0,
        })
    }

    /// Adds a flow, as [`Ipfix::add`](super::Ipfix::add) does.
    pub fn add(&mut self, flow: &Flow, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        for view in View::each(flow, &self.interfaces).into_iter().flatten() {
            let which = usize::from(view.is_v6());
            let (id, length) = (self.layouts[which].id, self.layouts[which].longest());
            self.make_room(id, length, now, send);
            if !self.uptime.fits(flow.first, flow.last) {
                self.flush(now, send);
                self.make_room(id, length, now, send);
            }
            let boot = self.uptime.add(flow.first, flow.last, now);
            self.layouts[which].write(&view.since(boot), self.outbox.record(id));
            self.outbox.count(&view);
            self.records += 1;
        }
    }

    /// Adds a record of what was exported, up to the latest message that was handed out.
    pub fn account(&mut self, _account: &Account, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        self.make_room(ACCOUNT, OF_ACCOUNT.record_length(), now, send);
        let sent = self.outbox.exported().sent;
        let out = self.outbox.record(ACCOUNT);
        put(self.source.into(), 4, out);
        for number in [sent.octets, sent.messages, sent.records] {
            put(number, 8, out);
        }
        self.records += 1;
    }

    /// Hands out the message that is being made, if there is one.
    pub fn flush(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        if self.outbox.is_empty() {
            return;
        }
        let stamp = self.uptime.end(now);
        let (records, sequence, source) = (self.records, self.sequence, self.source);
        let header = |message: &mut [u8]| {
            message[..2].copy_from_slice(&9_u16.to_be_bytes());
            message[2..4].copy_from_slice(&records.to_be_bytes());
            for (place, word) in [stamp.uptime, stamp.seconds, sequence, source].into_iter().enumerate() {
                message[4 + 4 * place..][..4].copy_from_slice(&word.to_be_bytes());
            }
        };
        self.outbox.send(header, send);
        self.sequence = self.sequence.wrapping_add(1);
        self.records = 0;
    }

    /// Has templates go with the next message, for a collector that has perhaps begun anew.
    pub fn remind(&mut self) {
        self.repeat.restart();
    }

    /// Begins a new session, for another file or another collector, as [`Ipfix::restart`](super::Ipfix::restart) does.
    pub fn restart(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        self.flush(now, send);
        self.repeat.restart();
        self.sequence = 0;
    }

    /// Returns what became of the flows.
    pub fn exported(&self) -> Exported {
        self.outbox.exported()
    }
}

impl Described for Netflow9 {
    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn hand_out(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        self.flush(now, send);
    }

    /// Puts templates, and what is told beside flows, at the beginning of a message, if they are due.
    fn describe(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        if !self.outbox.is_empty() || !self.repeat.is_due(now) {
            return;
        }
        for which in 0..self.layouts.len() {
            self.make_bare_room(TEMPLATES, template_length(&self.layouts[which]), now, send);
            write_template(&self.layouts[which], self.outbox.record(TEMPLATES));
            self.records += 1;
        }
        let of_interfaces = (!self.interfaces.is_empty()).then_some(OF_INTERFACES);
        let of_sampling = self.sampling.map(|_| OF_SAMPLING);
        for options in [Some(OF_ACCOUNT), of_interfaces, of_sampling].into_iter().flatten() {
            // Each in a set of its own: some collectors take the padding behind several for another one.
            self.outbox.close();
            self.make_bare_room(OPTIONS, options.length(), now, send);
            options.write(self.outbox.record(OPTIONS));
            self.records += 1;
        }
        for which in 0..self.interfaces.len() {
            self.make_bare_room(INTERFACES, OF_INTERFACES.record_length(), now, send);
            let (interface, out) = (&self.interfaces[which], self.outbox.record(INTERFACES));
            put(interface.index.into(), 4, out);
            put_padded(&interface.name, NAME, out);
            put_padded(&interface.description, DESCRIPTION, out);
            self.records += 1;
        }
        if let Some(sampling) = self.sampling {
            self.make_bare_room(SAMPLING, OF_SAMPLING.record_length(), now, send);
            let out = self.outbox.record(SAMPLING);
            put(self.source.into(), 4, out);
            put(sampling.interval().into(), 4, out);
            put(sampling.algorithm().into(), 1, out);
            self.records += 1;
        }
    }
}

/// Writes a string, and zeros behind it.
fn put_padded(text: &str, length: u16, out: &mut Vec<u8>) {
    let (end, text) = (out.len() + usize::from(length), cut(text, length.into()));
    out.extend_from_slice(text.as_bytes());
    out.resize(end, 0);
}

fn template_length(layout: &Layout) -> usize {
    4 + 4 * layout.columns.len()
}

fn write_template(layout: &Layout, out: &mut Vec<u8>) {
    out.extend(layout.id.to_be_bytes());
    out.extend(low16(layout.columns.len()).to_be_bytes());
    for column in &layout.columns {
        out.extend(column.number.to_be_bytes());
        out.extend(column.length.to_be_bytes());
    }
}
