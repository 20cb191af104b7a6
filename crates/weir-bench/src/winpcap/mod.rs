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

use crate::experiment::{Judged, Outcome};
use crate::wanted::Wanted;

/// What differs in all of them.
const DIFFERS: &str = "Frames come from a veth pair at the rate of a processor, not from a wire of 100 Mbit/s; libpcap and tcpdump are in \
                       the place of the other systems' captures, weir is in that of WinPcap.";

/// Two contestants that are compared round by round.
struct Pair<'a> {
    /// Of the target.
    name: &'a str,
    contestants: [&'static str; 2],
    measure: &'static str,
    wanted: Wanted,
    unit: &'static str,
    /// What is made of how many times the second the first is.
    value: fn(f64) -> f64,
}

impl Pair<'_> {
    /// A target for each size of frames that was measured.
    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let bar = |size: f64| {
            let ratios = outcome.ratios(self.contestants, self.measure, Some(size));
            let name = format!("{}, {size} B", self.name);
            let values = ratios.into_iter().map(self.value);
            Some(Judged::new(&name, self.wanted, self.unit, values)).filter(|bar| bar.met.is_some())
        };
        outcome.places().into_iter().flatten().filter_map(bar).collect()
    }
}
