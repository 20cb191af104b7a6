//! Reading only some of the packets that the filter accepts.

use std::ffi::c_int;

use super::Pcap;
use crate::abi::{PCAP_TSTAMP_PRECISION_NANO, PcapPkthdr, PcapSamp};

const ONE_EVERY_N: c_int = 1;
const FIRST_AFTER_N_MS: c_int = 2;

/// Where a handle is in its sampling.
#[derive(Debug, Default)]
pub(crate) struct Sampling {
    /// Packets since the last that was taken, and that one.
    passed: u32,
    /// When the next packet may be taken, in nanoseconds.
    due: Option<i128>,
}

impl Sampling {
    /// Returns whether the program gets this packet.
    pub(crate) fn takes(&mut self, pcap: &Pcap, header: &PcapPkthdr, precision: c_int) -> bool {
        // SAFETY: C writes between its calls only (C4).
        let wish = unsafe { pcap.shared.sampling.get().read() };
        self.takes_by(wish, header, precision)
    }

    fn takes_by(&mut self, wish: PcapSamp, header: &PcapPkthdr, precision: c_int) -> bool {
        let Some(value) = u32::try_from(wish.value).ok().filter(|&value| value > 0) else { return true };
        match wish.method {
            ONE_EVERY_N => {
                let takes = self.passed == 0 || self.passed >= value;
                self.passed = if takes { 1 } else { self.passed + 1 };
                if self.passed == value {
                    self.passed = 0;
                }
                takes
            }
            FIRST_AFTER_N_MS => {
                let tick = if precision == PCAP_TSTAMP_PRECISION_NANO { 1 } else { 1000 };
                let at = i128::from(header.ts.tv_sec) * 1_000_000_000 + i128::from(header.ts.tv_usec) * tick;
                let wait = i128::from(value) * 1_000_000;
                // A packet long before the due time is from a clock that was set back.
                let takes = self.due.is_none_or(|due| at >= due || due - at > wait);
                if takes {
                    self.due = Some(at + wait);
                }
                takes
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(wish: PcapSamp, microseconds: &[i64]) -> Vec<i64> {
        let mut sampling = Sampling::default();
        let header = |at: i64| PcapPkthdr {
            ts: libc::timeval { tv_sec: at / 1_000_000, tv_usec: at % 1_000_000 },
            ..PcapPkthdr::NONE
        };
        microseconds.iter().copied().filter(|&at| sampling.takes_by(wish, &header(at), 0)).collect()
    }

    #[test]
    fn one_of_n_begins_with_the_first() {
        let all = [1, 2, 3, 4, 5, 6, 7];
        assert_eq!(taken(PcapSamp { method: ONE_EVERY_N, value: 3 }, &all), [1, 4, 7]);
        for wish in [(ONE_EVERY_N, 1), (ONE_EVERY_N, 0), (ONE_EVERY_N, -1), (0, 3), (9, 3)] {
            assert_eq!(taken(PcapSamp { method: wish.0, value: wish.1 }, &all), all, "{wish:?}");
        }
    }

    #[test]
    fn time_counts_from_the_packet_that_was_taken() {
        let wish = PcapSamp { method: FIRST_AFTER_N_MS, value: 10 };
        let second = 1_000_000;
        let stamps = [second, second + 9_999, second + 10_000, second + 10_001, second + 25_000, 5, 6];
        assert_eq!(taken(wish, &stamps), [second, second + 10_000, second + 25_000, 5]);
    }
}
