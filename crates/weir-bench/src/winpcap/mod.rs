//! The experiments of WinPcap's authors (Risso and Degioanni 2001; Degioanni, Baldi, Risso and Varenni 2003), on a stock kernel.
//!
//! | file | asks |
//! |---|---|
//! | `send.rs` | how fast packets are sent, by size |
//! | `filter.rs` | what a filter costs that accepts nothing |
//! | `delivery.rs` | how fast an application gets packets, by size |
//! | `dump.rs` | how fast they get to a file, whole or their first 68 bytes |
//! | `statistics.rs` | counting in the kernel beside counting in user space |
//! | `gains.rs` | what each improvement gains alone |

pub(crate) mod delivery;
pub(crate) mod dump;
pub(crate) mod filter;
pub(crate) mod gains;
pub(crate) mod send;
pub(crate) mod statistics;

use crate::bars::{Bar, Wanted};
use crate::sample::Sample;
use crate::spread::Spread;

/// What differs in all of them.
const DIFFERS: &str = "Frames come from a veth pair at the rate of a processor, not from a wire of 100 Mbit/s; libpcap and tcpdump are in \
                       the place of the other systems' captures, weir is in that of WinPcap.";

/// Two contestants that are compared round by round.
struct Pair<'a> {
    /// Of the bar.
    name: &'a str,
    contestants: [&'static str; 2],
    wanted: Wanted,
    unit: &'static str,
    value: fn(&Sample, &Sample) -> f64,
}

impl Pair<'_> {
    /// A bar for each size of frames that was measured.
    fn bars(&self, samples: &[Sample], sizes: &[u16]) -> Vec<Bar> {
        let [one, other] = self.contestants;
        let of = |name: &'static str, size: usize| {
            samples.iter().filter(move |sample| sample.contestant == name && sample.size == size)
        };
        let bar = |size: usize| {
            let values = of(one, size).filter_map(|sample| {
                let other = of(other, size).find(|other| other.round == sample.round)?;
                Some((self.value)(sample, other))
            });
            Some(Bar::new(self.name, Some(size), self.wanted, self.unit, Some(Spread::of(values)?)))
        };
        sizes.iter().filter_map(|&size| bar(size.into())).collect()
    }
}

/// Processor time of a packet, in the kernel and in the application, nanoseconds.
fn time(sample: &Sample) -> f64 {
    sample.kernel_ns + sample.reader_ns.unwrap_or(0.0)
}
