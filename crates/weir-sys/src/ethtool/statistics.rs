//! The driver's own counters, as shown by `ethtool -S`.

use super::Ethtool;
use super::features::{ETHTOOL_GSTRINGS, MOST, NAME, STRINGS, strings};

const ETHTOOL_GSTATS: u32 = 0x1d;
const ETH_SS_STATS: u32 = 1;
/// Words of `struct ethtool_stats` before the counters: command, number.
const STATS: usize = 2;

impl Ethtool {
    /// Returns one of the driver's own counters, if it exists.
    pub fn counter(&self, name: &str, counter: &str) -> Option<u64> {
        let count = self.string_count(name, ETH_SS_STATS)?;
        // The kernel writes all names that exist by then, whatever the size it was given. Memory that it does not touch
        // costs nothing.
        let mut names = vec![0; STRINGS + MOST * NAME / 4];
        names[0] = ETHTOOL_GSTRINGS;
        names[1] = ETH_SS_STATS;
        names[2] = u32::try_from(count).ok()?;
        // SAFETY: the buffer has room for more names than any driver has.
        unsafe { self.ask_at(name, names.as_mut_ptr().cast()) }?;
        let place =
            strings(&names, usize::try_from(names[2]).ok()?).iter().position(|known| known == counter)?;
        let mut values = vec![0; STATS + MOST * 2];
        values[0] = ETHTOOL_GSTATS;
        values[1] = u32::try_from(count).ok()?;
        // SAFETY: the buffer has room for more counters than any driver has.
        unsafe { self.ask_at(name, values.as_mut_ptr().cast()) }?;
        let [low, high] = *values[STATS + place * 2..].first_chunk()?;
        let [a, b, c, d] = u32::to_ne_bytes(low);
        let [e, f, g, h] = u32::to_ne_bytes(high);
        Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
    }
}
