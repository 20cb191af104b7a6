//! WinPcap's extensions, under their names and with their meanings: `include/weir/win32-extensions.h` declares them.
//!
//! A function that needs a capture on a device returns -1 with a text for every other handle.

pub mod list;
pub mod live_dump;
pub mod mode;
pub mod open;
pub mod queue;
pub mod sampling;
pub mod source;
pub mod tuning;

use std::cell::UnsafeCell;
use std::ffi::c_int;

use self::mode::Statistics;
use self::sampling::{PcapSamp, Sampling};
use self::tuning::PcapStatEx;
use crate::abi::PCAP_ERROR;
use crate::handle::{Handle, NOT_ACTIVATED, Pcap, Source};

/// What C has pointers to, as long as the handle is open.
pub(crate) struct Shared {
    /// Written by C at any time between its calls.
    sampling: UnsafeCell<PcapSamp>,
    /// What `pcap_stats_ex` returns.
    counts: UnsafeCell<PcapStatEx>,
}

impl Shared {
    pub(crate) const fn new() -> Self {
        Self { sampling: UnsafeCell::new(PcapSamp::ALL), counts: UnsafeCell::new(PcapStatEx::NONE) }
    }
}

/// How a handle is read, if not packet by packet.
#[derive(Debug, Default)]
pub(crate) struct Special {
    pub(crate) sampling: Sampling,
    /// Statistics mode.
    pub(crate) statistics: Option<Statistics>,
    /// How the last dump of `pcap_live_dump` ended.
    dumped: Option<Result<(), String>>,
}

impl Handle {
    fn special(&mut self) -> &mut Special {
        self.special.get_or_insert_default()
    }

    /// Answers that only a capture on a device can do this.
    fn needs_device(&self, pcap: &Pcap, what: &str) -> c_int {
        let why = match self.source {
            _ if pcap.foreign.is_some() => "the system's libpcap serves this device",
            Source::Created(_) => return pcap.fail(PCAP_ERROR, NOT_ACTIVATED),
            Source::Dead => "the handle is of pcap_open_dead",
            Source::File(_) => "the handle reads a file",
            Source::Dumping(_) => "pcap_live_dump is writing the packets to a file",
            Source::Live(_) => "the handle captures on a device",
            Source::Foreign => "the system's libpcap serves this device",
        };
        pcap.fail(PCAP_ERROR, &format!("cannot {what}: {why}"))
    }
}
