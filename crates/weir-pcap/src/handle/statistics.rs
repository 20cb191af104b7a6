//! Reading how many packets there were, instead of the packets: WinPcap's statistics mode.
//!
//! Each read waits for the end of an interval, which is as long as the read timeout, and gives 16 bytes: two 64-bit numbers
//! in the host's byte order, of the packets that the filter has accepted since the last ones, and of their bytes on the wire.

use std::ffi::c_int;
use std::time::{Duration, Instant, SystemTime};

use super::{Pcap, Step, StepContext};
use crate::abi::*;
use crate::cancel::held;
use crate::filter::Filter;
use crate::live::{self, Live};
use crate::savefile::Packet;

/// What was counted, and when to tell.
#[derive(Debug)]
pub(crate) struct Statistics {
    interval: Duration,
    due: Instant,
    packets: u64,
    bytes: u64,
    /// What C has read.
    told: Vec<u8>,
}

impl Statistics {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, due: Instant::now() + interval, packets: 0, bytes: 0, told: Vec::new() }
    }

    /// Counts until the end of the interval, and tells how to wait for it.
    pub(crate) fn step(
        &mut self,
        pcap: &Pcap,
        live: &mut Live,
        filter: Option<&Filter>,
        context: &mut StepContext,
        to: &mut Packet,
        precision: c_int,
    ) -> Step {
        let found = match context.woken.take() {
            Some(woken) => held(|| live.woken(woken)),
            None => Ok(()),
        };
        if found.is_ok() && context.is_broken(pcap) {
            return Step::Break;
        }
        if let Err(text) = found.and_then(|()| self.count(live, filter, to)) {
            return Step::Failed(pcap.fail(PCAP_ERROR, &text));
        }
        if Instant::now() >= self.due {
            self.tell(to, precision == PCAP_TSTAMP_PRECISION_NANO);
            return Step::Packet;
        }
        if context.begun {
            return Step::Nothing;
        }
        if !live.nonblocking {
            return Step::Wait(live.sleep(Some(self.due)));
        }
        match held(|| live.health()) {
            Ok(()) => Step::Nothing,
            Err(text) => Step::Failed(pcap.fail(PCAP_ERROR, &text)),
        }
    }

    /// Counts packets that are there, but not so many that a flood would keep it from anything else.
    fn count(&mut self, live: &mut Live, filter: Option<&Filter>, to: &mut Packet) -> Result<(), String> {
        for _ in 0..AT_ONCE {
            if !live.next(filter, to)? {
                break;
            }
            self.packets += 1;
            self.bytes += u64::from(to.header.len);
        }
        Ok(())
    }

    /// Gives C the numbers, and begins the next interval.
    fn tell(&mut self, to: &mut Packet, nanoseconds: bool) {
        let now = Instant::now();
        self.told.clear();
        self.told.extend(self.packets.to_ne_bytes());
        self.told.extend(self.bytes.to_ne_bytes());
        (self.packets, self.bytes) = (0, 0);
        // A program that was late for more than an interval gets no reports of those that it missed.
        let next = self.due + self.interval;
        self.due = if next > now { next } else { now + self.interval };
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let stamp = live::time(since_1970.as_nanos().try_into().unwrap_or(u64::MAX), nanoseconds);
        to.header = PcapPkthdr { ts: stamp, caplen: 16, len: 16 };
        to.data = self.told.as_ptr();
    }
}

/// Packets that are counted at once.
const AT_ONCE: u32 = 4096;
