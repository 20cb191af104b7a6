//! IPFIX (RFC 7011): messages for any transport; one after the other they are a file (RFC 5655).

use super::element::VARIABLE;
use super::outbox::{Described, Exported, Outbox, SET_HEADER, low16};
use super::record::{Column, LONGEST, Layout, View, cut, put, put_text};
use super::repeat::Repeat;
use super::settings::{Account, Error, Interface, Sampling, Settings};
use crate::flow::Flow;

const HEADER: usize = 16;
/// IDs of the sets that describe others.
const TEMPLATES: u16 = 2;
const OPTIONS: u16 = 3;
/// IDs of templates.
const FLOWS: [u16; 2] = [256, 257];
const INTERFACES: u16 = 258;
const SAMPLING: u16 = 259;
const ACCOUNT: u16 = 260;

/// An options template: an ID, how many fields are the scope, and all fields with their lengths.
struct Options {
    id: u16,
    scope: u16,
    fields: &'static [(u16, u16)],
}

const OBSERVATION_DOMAIN: (u16, u16) = (149, 4);

const OF_INTERFACES: Options =
    Options { id: INTERFACES, scope: 1, fields: &[(10, 4), (82, VARIABLE), (83, VARIABLE)] };
/// exportedMessageTotalCount, exportedOctetTotalCount, exportedFlowRecordTotalCount, observedFlowTotalCount, packetTotalCount,
/// ignoredPacketTotalCount, droppedPacketTotalCount, notSentFlowTotalCount, notSentPacketTotalCount, notSentOctetTotalCount.
const OF_ACCOUNT: Options = Options {
    id: ACCOUNT,
    scope: 1,
    fields: &[
        OBSERVATION_DOMAIN,
        (41, 8),
        (40, 8),
        (42, 8),
        (163, 8),
        (86, 8),
        (164, 8),
        (135, 8),
        (166, 8),
        (167, 8),
        (168, 8),
    ],
};

impl Options {
    /// selectorAlgorithm with samplingPacketInterval and samplingPacketSpace, or with samplingProbability; of flows
    /// flowSelectorAlgorithm with samplingProbability.
    fn of(sampling: Sampling) -> Self {
        let fields: &[_] = match sampling {
            Sampling::OneIn(_) => &[OBSERVATION_DOMAIN, (304, 2), (305, 4), (306, 4)],
            Sampling::Probability(_) => &[OBSERVATION_DOMAIN, (304, 2), (311, 8)],
            Sampling::FlowsOneIn(_) => &[OBSERVATION_DOMAIN, (390, 2), (311, 8)],
        };
        Self { id: SAMPLING, scope: 1, fields }
    }

    fn length(&self) -> usize {
        6 + 4 * self.fields.len()
    }

    fn write(&self, out: &mut Vec<u8>) {
        for word in [self.id, low16(self.fields.len()), self.scope] {
            out.extend(word.to_be_bytes());
        }
        for (number, length) in self.fields {
            out.extend(number.to_be_bytes());
            out.extend(length.to_be_bytes());
        }
    }
}

/// Makes messages of IPFIX.
///
/// The sequence number counts records of flows and of options, as RFC 7011 has it and tshark expects it. nfcapd 1.7 counts
/// those of flows only: it reports an error whenever interfaces, sampling or the account are told.
#[derive(Debug)]
pub struct Ipfix {
    outbox: Outbox,
    layouts: [Layout; 2],
    domain: u32,
    uniflow: bool,
    repeat: Repeat,
    interfaces: Vec<Interface>,
    sampling: Option<Sampling>,
    /// Records before the message that is being made, and in it.
    sequence: u32,
    records: u32,
}

impl Ipfix {
    /// # Errors
    ///
    /// If the messages are too small, or no field is left because all are about the other direction.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let elements = settings.fields.elements();
        let layouts = [(FLOWS[0], false), (FLOWS[1], true)]
            .map(|(id, is_v6)| Layout::ipfix(id, elements, is_v6, settings.uniflow));
        // A template without fields would withdraw another.
        if layouts.iter().any(|layout| layout.columns.is_empty()) {
            return Err(Error::OnlyReverse);
        }
        let records = layouts.iter().map(Layout::longest);
        let templates = layouts.iter().map(template_length);
        let options = [&OF_INTERFACES, &OF_ACCOUNT].map(Options::length);
        let interfaces = settings.interfaces.iter().map(interface_length);
        let longest = records.chain(templates).chain(options).chain(interfaces).max().unwrap_or_default();
        let account = 4 + 8 * (OF_ACCOUNT.fields.len() - 1);
        let least = HEADER + SET_HEADER + longest.max(account);
        if settings.message < least {
            return Err(Error::MessageTooSmall { message: settings.message, least });
        }
        Ok(Self {
            outbox: Outbox::new(HEADER, settings.message, 1),
            layouts,
            domain: settings.domain,
            uniflow: settings.uniflow,
            repeat: Repeat::new(settings.repeat),
            interfaces: settings.interfaces.clone(),
            sampling: settings.sampling,
            sequence: 0,
            records: 0,
        })
    }

    /// Adds a flow. Messages that are full are handed to `send`, which returns whether it has sent them. `now`: nanoseconds
    /// since the Unix epoch.
    pub fn add(&mut self, flow: &Flow, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        let views = match self.uniflow {
            true => View::each(flow, &self.interfaces),
            false => [Some(View::both(flow, &self.interfaces)), None],
        };
        for view in views.into_iter().flatten() {
            let which = usize::from(view.is_v6());
            let (id, length) = (self.layouts[which].id, self.layouts[which].length(&view));
            self.make_room(id, length, now, send);
            self.layouts[which].write(&view, self.outbox.record(id));
            self.outbox.count(&view);
            self.records += 1;
        }
    }

    /// Adds a record of what became of all packets and flows, up to the latest message that was handed out.
    pub fn account(&mut self, account: &Account, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        self.make_room(ACCOUNT, 4 + 8 * (OF_ACCOUNT.fields.len() - 1), now, send);
        let Exported { sent, unsent, .. } = self.outbox.exported();
        let out = self.outbox.record(ACCOUNT);
        put(self.domain.into(), 4, out);
        for number in [
            sent.messages,
            sent.octets,
            sent.records,
            account.flows,
            account.packets,
            account.ignored_packets,
            account.lost_packets,
            unsent.records + account.missed.flows,
            unsent.packets + account.missed.packets,
            unsent.bytes + account.missed.bytes,
        ] {
            put(number, 8, out);
        }
        self.records += 1;
    }

    /// Hands out the message that is being made, if there is one.
    pub fn flush(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        if self.outbox.is_empty() {
            return;
        }
        let (sequence, domain) = (self.sequence, self.domain);
        let header = |message: &mut [u8]| {
            let length = low16(message.len());
            message[..2].copy_from_slice(&10_u16.to_be_bytes());
            message[2..4].copy_from_slice(&length.to_be_bytes());
            let seconds = u32::try_from(now / 1_000_000_000).unwrap_or(u32::MAX);
            for (place, word) in [seconds, sequence, domain].into_iter().enumerate() {
                message[4 + 4 * place..][..4].copy_from_slice(&word.to_be_bytes());
            }
        };
        self.outbox.send(header, send);
        self.sequence = self.sequence.wrapping_add(self.records);
        self.records = 0;
    }

    /// Has templates go with the next message, for a collector that has perhaps begun anew.
    pub fn remind(&mut self) {
        self.repeat.restart();
    }

    /// Begins a new session, for another TCP connection or another file: with templates, and the sequence number 0. The message
    /// that is being made belongs to the old session, and is handed out first.
    pub fn restart(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        self.flush(now, send);
        self.repeat.restart();
        self.sequence = 0;
    }

    /// Begins a new session in place of one that broke: hands out a message with the templates, which has the sequence number 0. The
    /// message that is being made follows in the new session; with [`Settings::repeat`] it may have templates, too.
    pub fn resume(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        let (kept, records) = (self.outbox.take(), std::mem::take(&mut self.records));
        self.repeat.restart();
        self.sequence = 0;
        self.describe(now, send);
        self.flush(now, send);
        self.outbox.put_back(kept);
        self.records = records;
    }

    /// Returns what became of the flows.
    pub fn exported(&self) -> Exported {
        self.outbox.exported()
    }
}

impl Described for Ipfix {
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
        }
        let of_interfaces = (!self.interfaces.is_empty()).then_some(OF_INTERFACES);
        let of_sampling = self.sampling.map(Options::of);
        for options in [Some(OF_ACCOUNT), of_interfaces, of_sampling].into_iter().flatten() {
            // Each in a set of its own: nfacctd takes the second one in a set for malformed, and loses the flows of that message.
            self.outbox.close();
            self.make_bare_room(OPTIONS, options.length(), now, send);
            options.write(self.outbox.record(OPTIONS));
        }
        for which in 0..self.interfaces.len() {
            self.make_bare_room(INTERFACES, interface_length(&self.interfaces[which]), now, send);
            let (interface, out) = (&self.interfaces[which], self.outbox.record(INTERFACES));
            put(interface.index.into(), 4, out);
            put_text(&interface.name, out);
            put_text(&interface.description, out);
            self.records += 1;
        }
        if let Some(sampling) = self.sampling {
            self.make_bare_room(SAMPLING, 16, now, send);
            let out = self.outbox.record(SAMPLING);
            put(self.domain.into(), 4, out);
            write_sampling(sampling, out);
            self.records += 1;
        }
    }
}

fn interface_length(interface: &Interface) -> usize {
    let length = |text: &str| 1 + cut(text, LONGEST).len();
    4 + length(&interface.name) + length(&interface.description)
}

/// Numbers of algorithms: 1 systematic by count, 4 uniform probability (IANA: PSAMP, flow selection).
fn write_sampling(sampling: Sampling, out: &mut Vec<u8>) {
    match sampling {
        Sampling::OneIn(number) => {
            put(1, 2, out);
            put(1, 4, out);
            put(u64::from(number.get()) - 1, 4, out);
        }
        Sampling::Probability(probability) => {
            put(4, 2, out);
            out.extend(probability.to_be_bytes());
        }
        Sampling::FlowsOneIn(number) => {
            put(4, 2, out);
            out.extend((1.0 / f64::from(number.get())).to_be_bytes());
        }
    }
}

fn field_length(column: &Column) -> usize {
    if column.enterprise == 0 { 4 } else { 8 }
}

fn template_length(layout: &Layout) -> usize {
    4 + layout.columns.iter().map(field_length).sum::<usize>()
}

fn write_template(layout: &Layout, out: &mut Vec<u8>) {
    out.extend(layout.id.to_be_bytes());
    out.extend(low16(layout.columns.len()).to_be_bytes());
    for column in &layout.columns {
        let has_enterprise = u16::from(column.enterprise != 0) << 15;
        out.extend((column.number | has_enterprise).to_be_bytes());
        out.extend(column.length.to_be_bytes());
        if column.enterprise != 0 {
            out.extend(column.enterprise.to_be_bytes());
        }
    }
}
