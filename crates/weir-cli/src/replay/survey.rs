//! What is to be sent, and whether it can be.

use std::time::Duration;

use weir::send::{Destination, Pace, SendReason, Sent};
use weir_traffic::{Copies, Framing, Sides};

use super::args::ReplayArgs;
use super::source::Found;
use crate::failure::Failure;
use crate::rewriting::Kept;
use crate::sending::Snapped;
use crate::sending::fits;
use crate::{link_types, style, units};

/// `LINKTYPE_ETHERNET`.
const ETHERNET: u16 = 1;

/// The packets so far.
#[derive(Debug)]
pub(super) struct Survey {
    destination: Destination,
    refuses_snapped: bool,
    /// Packets without an Ethernet header get one, if they can have one.
    reframes: bool,
    /// What is sent in each round.
    pub(super) planned: Sent,
    pub(super) snapped: u64,
    /// What could not be changed, and what was cut.
    pub(super) kept: Kept,
    /// Who has sent what, with two interfaces.
    pub(super) sides: Option<Sides>,
    /// The flows, if each round is to have its own.
    pub(super) copies: Option<Copies>,
    /// Packets that are left out.
    pub(super) skipped: u64,
    /// Time of the first packet, from which the others count, and the latest time.
    span: Option<(u64, u64)>,
    /// Packets with another link type, and that link type.
    others: (u64, u16),
    too_long: u64,
    longest: Option<SendReason>,
    /// Of these, the bytes of the shortest one in the file.
    shortest: usize,
    too_short: u64,
}

impl Survey {
    pub(super) fn new(destination: &Destination, args: &ReplayArgs) -> Self {
        Self {
            destination: destination.clone(),
            refuses_snapped: args.snapped == Snapped::Refuse,
            reframes: args.rewriting.reframes(),
            planned: Sent::default(),
            snapped: 0,
            kept: Kept::default(),
            sides: None,
            copies: None,
            skipped: 0,
            span: None,
            others: (0, 0),
            too_long: 0,
            longest: None,
            shortest: usize::MAX,
            too_short: 0,
        }
    }

    /// Looks at a packet.
    pub(super) fn add(&mut self, found: &Found<'_>) {
        self.snapped += u64::from(found.snapped && !found.later);
        self.kept.add(found.left, found.later);
        let Some(data) = found.data else {
            self.skipped += 1;
            return;
        };
        if !fits(found.link_type, self.destination.link_type) {
            self.others = (self.others.0 + 1, found.link_type);
        }
        self.planned += Sent { packets: 1, bytes: data.len() as u64 };
        if let Some(sides) = &mut self.sides {
            sides.learn(found.link_type, data);
        }
        if let Some(copies) = &mut self.copies {
            copies.add(found.link_type, data);
        }
        if let Some(time) = found.time {
            let (_, last) = self.span.get_or_insert((time, time));
            *last = time.max(*last);
        }
        match self.destination.check(data) {
            Err(reason @ SendReason::TooLong { .. }) => {
                self.too_long += 1;
                self.shortest = found.bytes.min(self.shortest);
                if needed(&reason) > self.longest.as_ref().map_or(0, needed) {
                    self.longest = Some(reason);
                }
            }
            Err(_) => self.too_short += 1,
            Ok(()) => {}
        }
    }

    /// Returns why the packets so far cannot be sent.
    pub(super) fn refusal(&self) -> Result<(), Failure> {
        let all = self.planned.packets + self.skipped;
        let name = style::visible(&self.destination.name);
        let refused = |packets: u64, why: String, hint: String| {
            let packets = format!("{} of {}", units::grouped(packets), units::packets(all));
            Err(Failure::new(format_args!("cannot send {packets} on `{name}`: {why}")).hint(hint))
        };
        if self.others.0 > 0 {
            let [theirs, ours] = [self.others.1, self.destination.link_type].map(link_types::name);
            let why = format!("they are {theirs}, the interface takes {ours}");
            let hint = match self.destination.link_type {
                ETHERNET if !self.reframes && Framing::can_be(self.others.1) => {
                    "try --dst-mac RECEIVER, which gives them an Ethernet header, or an interface of their link type"
                }
                _ => "try an interface of their link type",
            };
            return refused(self.others.0, why, hint.to_owned());
        }
        if self.refuses_snapped && self.snapped > 0 {
            let why = "the capture kept only their first bytes".to_owned();
            return refused(self.snapped, why, "try --snapped skip, cut or pad".to_owned());
        }
        if let Some(SendReason::TooLong { bytes, most, mtu }) = self.longest {
            let why = format!("they are longer than {most} bytes (up to {bytes})");
            let (inside, name) = weir::parts::command::place(&self.destination.name);
            // A filter sees packets as they are in the file.
            let least = if self.reframes { self.shortest.saturating_sub(1) } else { most };
            let hint = format!(
                "try --segment for TCP super-frames, {inside}ip link set {name} mtu {mtu}, or leave them out: -- less {least}"
            );
            return refused(self.too_long, why, hint);
        }
        if self.too_short > 0 {
            let least = self.destination.header().max(1);
            let why = format!("they are shorter than {least} bytes, the link-layer header");
            return refused(self.too_short, why, format!("leave them out: -- greater {least}"));
        }
        Ok(())
    }

    /// Returns by how much addresses grow in each round, if each is to have its own.
    pub(super) fn step(&self, rounds: u64) -> Result<u32, Failure> {
        // Of those without an end, only these can be promised.
        const PROMISED: u64 = 1 << 16;
        let wanted = if rounds == u64::MAX { PROMISED } else { rounds };
        let step = self.copies.as_ref().map_or(Some(1), |copies| copies.step(wanted));
        step.ok_or_else(|| {
            let rounds = units::grouped(wanted);
            let message =
                format!("cannot give each of {rounds} rounds its own flows: there are not enough addresses");
            Failure::new(message).hint("try a smaller --loop, or leave out --unique-ips")
        })
    }

    /// Returns how long it takes to send everything `rounds` times, as long as the machine keeps up; `None`: nobody knows.
    pub(super) fn duration(&self, pace: Pace, rounds: u64) -> Option<Duration> {
        let all = |number: u64| u128::from(number) * u128::from(rounds);
        let seconds = match pace {
            Pace::Recorded { speed } => {
                let span = self.span.map_or(0, |(first, last)| last - first);
                float(all(span)) / 1e9 / speed
            }
            // The last packet takes no time.
            Pace::PacketsPerSecond(rate) => float(all(self.planned.packets).saturating_sub(1)) / rate,
            Pace::BitsPerSecond(rate) => float(all(self.planned.bytes) * 8) / rate,
            Pace::Top => return None,
        };
        Duration::try_from_secs_f64(seconds).ok()
    }
}

fn needed(reason: &SendReason) -> usize {
    match reason {
        SendReason::TooLong { mtu, .. } => *mtu,
        _ => 0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn float(number: u128) -> f64 {
    number as f64
}
