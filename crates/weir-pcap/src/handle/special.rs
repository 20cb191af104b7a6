//! What WinPcap's extensions add to a handle.

use std::cell::UnsafeCell;

use super::sampling::Sampling;
use super::statistics::Statistics;
use crate::abi::{PcapSamp, PcapStatEx};

/// What C has pointers to, as long as the handle is open.
pub(crate) struct Shared {
    /// Written by C at any time between its calls.
    pub(crate) sampling: UnsafeCell<PcapSamp>,
    /// What `pcap_stats_ex` returns.
    pub(crate) counts: UnsafeCell<PcapStatEx>,
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
    pub(crate) dumped: Option<Result<(), String>>,
}
