//! `pcap_setmode`: packets, or only how many there were.
//!
//! In statistics mode, each read waits for the end of an interval, which is as long as the read timeout, and gives 16
//! bytes: two 64-bit numbers in the host's byte order, of the packets that the filter has accepted since the last ones,
//! and of their bytes on the wire.

use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use crate::abi::*;
use crate::filter::Filter;
use crate::handle::{Handle, Pcap, with};
use crate::live::{self, Live};
use crate::loops::Step;
use crate::savefile::Packet;

const MODE_CAPT: c_int = 0;
const MODE_STAT: c_int = 1;
const MODE_MON: c_int = 2;
const MODE_DUMP: c_int = 0x10;
const STAT_AND_DUMP: c_int = MODE_STAT | MODE_DUMP;

/// The interval of a handle without a read timeout: the timeout that WinPcap begins with.
const INTERVAL: Duration = Duration::from_secs(1);

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
    fn new(interval: Duration) -> Self {
        Self { interval, due: Instant::now() + interval, packets: 0, bytes: 0, told: Vec::new() }
    }

    /// Waits for the end of the interval, and counts until then. `begun`: C already has numbers of this call.
    pub(crate) fn step(
        &mut self,
        pcap: &Pcap,
        live: &mut Live,
        filter: Option<&Filter>,
        begun: bool,
        to: &mut Packet,
        precision: c_int,
    ) -> Step {
        loop {
            if pcap.stop.load(Ordering::Relaxed) {
                if !begun {
                    pcap.stop.store(false, Ordering::Relaxed);
                }
                return Step::Break;
            }
            let counted = self.count(live, filter, to).and_then(|()| {
                if Instant::now() >= self.due || begun {
                    return Ok(());
                }
                if live.nonblocking { live.health() } else { live.wait(Some(self.due)) }
            });
            if let Err(text) = counted {
                return Step::Failed(pcap.fail(PCAP_ERROR, &text));
            }
            if Instant::now() >= self.due {
                self.tell(to, precision == PCAP_TSTAMP_PRECISION_NANO);
                return Step::Packet;
            }
            if begun || live.nonblocking {
                return Step::Nothing;
            }
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

/// Chooses what reads give: packets (`MODE_CAPT`) or statistics (`MODE_STAT`). Returns 0 or -1.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pcap_setmode(pcap: *mut Pcap, mode: c_int) -> c_int {
    let set = |pcap: &Pcap, handle: &mut Handle| {
        let refused = match mode {
            MODE_CAPT | MODE_STAT => None,
            MODE_MON => Some("monitoring by WinPcap's TME is not supported; try MODE_STAT"),
            MODE_DUMP | STAT_AND_DUMP => Some("call pcap_live_dump to write packets to a file"),
            _ => Some("there is no such mode; try MODE_CAPT or MODE_STAT"),
        };
        if let Some(why) = refused {
            return pcap.fail(PCAP_ERROR, &format!("cannot set mode {mode}: {why}"));
        }
        let Some(live) = handle.live_mut() else { return handle.needs_device(pcap, "set the mode") };
        live.count_only(mode == MODE_STAT);
        let interval = live.timeout().unwrap_or(INTERVAL);
        handle.special().statistics = (mode == MODE_STAT).then(|| Statistics::new(interval));
        0
    };
    // SAFETY: C1.
    unsafe { with(pcap, PCAP_ERROR, set) }
}
