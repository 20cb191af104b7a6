//! Where packets leave: by one interface, or the client's by one and the server's by another.

use std::sync::atomic::{AtomicU64, Ordering};

use weir::send::{Report, SendError, Transmission};
use weir_traffic::{Side, Sides};

use super::shift::Shift;
use super::step::Step;
use crate::failure::Failure;
use crate::sending::failure;

/// One interface or two.
#[derive(Debug)]
pub(super) struct Exits<'a> {
    first: Transmission<'a>,
    second: Option<Second<'a>>,
    shift: Option<Shift>,
    steps: Option<Step>,
    /// Packets so far.
    passed: &'a AtomicU64,
}

#[derive(Debug)]
struct Second<'a> {
    transmission: Transmission<'a>,
    sides: &'a mut Sides,
    link_type: u16,
    /// The side of the packet before.
    latest: Side,
}

impl<'a> Exits<'a> {
    pub(super) fn new(first: Transmission<'a>, passed: &'a AtomicU64) -> Self {
        Self { first, second: None, shift: None, steps: None, passed }
    }

    /// Asks before each packet.
    pub(super) fn steps(self, steps: Option<Step>) -> Self {
        Self { steps, ..self }
    }

    /// Gives packets other addresses in each round.
    pub(super) fn shift(self, shift: Option<Shift>) -> Self {
        Self { shift, ..self }
    }

    /// Lets what servers have sent leave by another interface. `link_type` is that of both.
    pub(super) fn second(self, transmission: Transmission<'a>, sides: &'a mut Sides, link_type: u16) -> Self {
        Self { second: Some(Second { transmission, sides, link_type, latest: Side::Client }), ..self }
    }

    /// Begins another round, with addresses so far from those in the file.
    pub(super) fn again(&mut self, distance: u32) {
        self.first.again();
        if let Some(second) = &mut self.second {
            second.transmission.again();
        }
        if let Some(shift) = &mut self.shift {
            shift.to(distance);
        }
    }

    /// Sends a packet when it is due; returns whether nobody wants to stop.
    pub(super) fn packet(&mut self, time: Option<u64>, packet: &[u8]) -> Result<bool, Failure> {
        let goes_on = match &mut self.steps {
            None => self.send(time, packet).map_err(failure)?,
            Some(steps) => {
                let wanted = steps.ask(packet.len())? && self.send(time, packet).map_err(failure)?;
                self.flush()?;
                wanted
            }
        };
        self.passed.fetch_add(u64::from(goes_on), Ordering::Relaxed);
        Ok(goes_on)
    }

    fn send(&mut self, time: Option<u64>, packet: &[u8]) -> Result<bool, SendError> {
        let Self { first, second, shift, .. } = self;
        // The same side in each round.
        let side = second.as_mut().map_or(Side::Client, |second| second.sides.of(second.link_type, packet));
        let packet = match shift {
            Some(shift) => shift.of(packet),
            None => packet,
        };
        let Some(second) = second else { return first.packet(time, packet) };
        let (this, other) = match side {
            Side::Client => (first, &mut second.transmission),
            Side::Server => (&mut second.transmission, first),
        };
        // No answer overtakes what it answers.
        if std::mem::replace(&mut second.latest, side) != side {
            other.flush()?;
        }
        other.pass(time, packet.len());
        this.packet(time, packet)
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.first.flush().map_err(failure)?;
        self.second.as_mut().map_or(Ok(()), |second| second.transmission.flush()).map_err(failure)
    }

    /// Returns what was sent by each interface.
    pub(super) fn reports(&self) -> (Report, Option<Report>) {
        (self.first.report(), self.second.as_ref().map(|second| second.transmission.report()))
    }
}
