//! The experiments of WinPcap's authors (Risso and Degioanni 2001; Degioanni, Baldi, Risso and Varenni 2003), on a stock kernel.
//!
//! | file | asks |
//! |---|---|
//! | `send.rs` | how fast packets are sent, by size |
//! | `filter.rs` | what a filter that accepts nothing costs |
//! | `delivery.rs` | how fast packets reach an application, by size |
//! | `dump.rs` | how fast they reach a file, whole or cut to 68 bytes |
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

/// What differs from every published experiment.
const DIFFERS: &str = "Frames come from a veth pair as fast as a processor makes them, not from a wire of 100 Mbit/s. libpcap and tcpdump \
                       replace the captures of the other systems, weir replaces WinPcap.";

/// Two contestants, compared round by round.
struct Pair<'a> {
    /// The target's.
    name: &'a str,
    contestants: [&'static str; 2],
    measure: &'static str,
    wanted: Wanted,
    unit: &'static str,
    /// From the ratio, first to second, to the value that is judged.
    value: fn(f64) -> f64,
}

impl Pair<'_> {
    /// A target for each measured frame size.
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
