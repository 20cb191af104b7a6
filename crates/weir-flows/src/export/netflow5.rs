//! NetFlow v5: 24 bytes of header, and up to 30 records of 48 bytes, always of the same fields. For what reads nothing else.
//!
//! What v5 cannot carry:
//!
//! - Flows over IPv6: each direction counts as refused ([`Exported::refused`]), with its packets and bytes.
//! - Counts of more than 32 bits: the direction becomes as many records as it takes, which differ in their counts only and
//!   add up. There are 256 at most (1 TiB); what is left then counts as refused.
//! - Interfaces beyond 65535 are 0. Autonomous systems, masks, and where a packet goes next are 0, too: no flow knows them.
//!
//! The port of the destination is type and code of ICMP, as routers have it. The sequence number counts records.

use std::net::IpAddr;

use super::element::{Unit, Value, Way};
use super::outbox::{Exported, Outbox};
use super::record::{View, put};
use super::settings::{Account, Error, Interface, Settings};
use super::uptime::Uptime;
use crate::flow::Flow;

const HEADER: usize = 24;
const RECORD: usize = 48;
/// The most records of a message.
const MOST: u16 = 30;
/// The most records of a direction.
const PARTS: u64 = 256;
const LARGEST: u64 = u32::MAX as u64;

/// Makes messages of NetFlow v5.
#[derive(Debug)]
pub struct Netflow5 {
    outbox: Outbox,
    uptime: Uptime,
    most: u16,
    engine: u8,
    sampling: u16,
    interfaces: Vec<Interface>,
    sequence: u32,
    records: u16,
}

impl Netflow5 {
    /// # Errors
    ///
    /// If the messages are too small, or the sampling has more than 14 bits.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let most = settings.message.saturating_sub(HEADER) / RECORD;
        let most = u16::try_from(most).unwrap_or(MOST).min(MOST);
        if most == 0 {
            return Err(Error::MessageTooSmall { message: settings.message, least: HEADER + RECORD });
        }
        let sampling = settings.sampling.map_or(Ok(0), |sampling| {
            let interval = sampling.interval();
            let number = u16::try_from(interval).ok().filter(|number| *number < 1 << 14);
            let number = number.ok_or(Error::Sampling { interval })?;
            Ok(u16::from(sampling.algorithm()) << 14 | number)
        })?;
        Ok(Self {
            outbox: Outbox::new(HEADER, HEADER + usize::from(most) * RECORD, 1),
            uptime: Uptime::default(),
            most,
            engine: settings.domain.to_be_bytes()[3],
            sampling,
            interfaces: settings.interfaces.clone(),
            sequence: 0,
            records: 0,
        })
    }

    /// Adds a flow, as [`Ipfix::add`](super::Ipfix::add) does.
    pub fn add(&mut self, flow: &Flow, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        for view in View::each(flow, &self.interfaces).into_iter().flatten() {
            let (mut packets, mut bytes) = (view.packets(), view.bytes());
            if view.is_v6() {
                self.outbox.refuse(1, packets, bytes);
                continue;
            }
            let parts = packets.max(bytes).div_ceil(LARGEST).clamp(1, PARTS);
            for left in (1..=parts).rev() {
                // As even as possible, so that each part has packets, if there are enough.
                let part = [packets, bytes].map(|all| all.div_ceil(left).min(LARGEST));
                if self.records == self.most || !self.uptime.fits(flow.first, flow.last) {
                    self.flush(now, send);
                }
                let boot = self.uptime.add(flow.first, flow.last, now);
                self.write(&view.since(boot), part);
                packets -= part[0];
                bytes -= part[1];
            }
            if packets > 0 || bytes > 0 {
                self.outbox.refuse(0, packets, bytes);
            }
        }
    }

    fn write(&mut self, view: &View<'_>, [packets, bytes]: [u64; 2]) {
        let out = self.outbox.bare();
        for way in [Way::Forth, Way::Back] {
            match view.side(way).end.address {
                IpAddr::V4(address) => out.extend(address.octets()),
                IpAddr::V6(_) => out.extend([0; 4]),
            }
        }
        let is_icmp = view.number(Value::Protocol) == u64::from(weir_packet::protocol::ICMP);
        let to = if is_icmp { Value::Icmp } else { Value::Port(Way::Back) };
        put(0, 4, out);
        put(u16::try_from(view.interface()).unwrap_or_default().into(), 2, out);
        put(0, 2, out);
        put(packets, 4, out);
        put(bytes, 4, out);
        put(view.number(Value::First(Unit::Uptime)), 4, out);
        put(view.number(Value::Last(Unit::Uptime)), 4, out);
        put(view.number(Value::Port(Way::Forth)), 2, out);
        put(view.number(to), 2, out);
        put(view.number(Value::TcpFlags(Way::Forth)), 2, out);
        put(view.number(Value::Protocol), 1, out);
        put(view.number(Value::Tos(Way::Forth)), 1, out);
        put(0, 8, out);
        self.outbox.count_part(packets, bytes);
        self.records += 1;
    }

    /// Does nothing: v5 has no room for an account.
    pub fn account(&mut self, _account: &Account, _now: u64, _send: &mut impl FnMut(&[u8]) -> bool) {}

    /// Hands out the message that is being made, if there is one.
    pub fn flush(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        if self.outbox.is_empty() {
            return;
        }
        let stamp = self.uptime.end(now);
        let (records, sequence, engine, sampling) = (self.records, self.sequence, self.engine, self.sampling);
        let header = |message: &mut [u8]| {
            message[..2].copy_from_slice(&5_u16.to_be_bytes());
            message[2..4].copy_from_slice(&records.to_be_bytes());
            for (place, word) in [stamp.uptime, stamp.seconds, 0, sequence].into_iter().enumerate() {
                message[4 + 4 * place..][..4].copy_from_slice(&word.to_be_bytes());
            }
            message[21] = engine;
            message[22..24].copy_from_slice(&sampling.to_be_bytes());
        };
        self.outbox.send(header, send);
        self.sequence = self.sequence.wrapping_add(records.into());
        self.records = 0;
    }

    /// Begins a new session, for another file or another collector, as [`Ipfix::restart`](super::Ipfix::restart) does.
    pub fn restart(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        self.flush(now, send);
        self.sequence = 0;
    }

    /// Returns what became of the flows.
    pub fn exported(&self) -> Exported {
        self.outbox.exported()
    }
}
