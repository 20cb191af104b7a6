//! How a device spreads packets over its receive queues (RSS).

use super::Ethtool;

const ETHTOOL_GRSSH: u32 = 0x46;
/// Words of `struct ethtool_rxfh` before the table.
const HEADER: usize = 6;
const TABLE_SIZE: usize = 2;
const KEY_SIZE: usize = 3;
/// The word that holds `hfunc` and `input_xfrm`.
const FUNCTION: usize = 4;
const TOEPLITZ: u8 = 1;
/// `RXH_XFRM_SYM_XOR`, `RXH_XFRM_SYM_OR_XOR` (Linux 6.8, 6.17), and the kernel's value for drivers without a choice.
const SYMMETRIC: u8 = 1 << 0 | 1 << 1;
const NO_TRANSFORM: u8 = 0xff;

/// How a device spreads packets over its receive queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rss {
    /// The queue for each value of the hash's low bits.
    pub table: Vec<u32>,
    /// The hash key; empty if not reported by the driver.
    pub key: Vec<u8>,
    /// The hash is Toeplitz; otherwise the driver's own choice.
    pub toeplitz: bool,
    /// The driver makes addresses and ports symmetric before it hashes them.
    pub symmetric_input: bool,
}

impl Rss {
    /// Returns whether key and input guarantee that both directions of a flow reach the same queue: the hash input is
    /// symmetric, the key repeats every 16 bits (Woo and Park, 2012), or there is only one queue.
    pub fn is_symmetric(&self) -> bool {
        let repeats =
            !self.key.is_empty() && self.key.iter().zip(self.key.iter().skip(2)).all(|(a, b)| a == b);
        self.queues() <= 1 || self.symmetric_input || (self.toeplitz && repeats)
    }

    /// Returns the number of queues that packets are spread over.
    pub fn queues(&self) -> usize {
        let mut queues = self.table.clone();
        queues.sort_unstable();
        queues.dedup();
        queues.len()
    }
}

impl Ethtool {
    /// Returns how packets are spread, if reported by the driver.
    pub fn rss(&self, name: &str) -> Option<Rss> {
        let mut sizes = [0; HEADER];
        sizes[0] = ETHTOOL_GRSSH;
        // If the sizes are zero, the kernel returns only the sizes.
        self.ask(name, &mut sizes)?;
        let (table, key) = (sizes[TABLE_SIZE] as usize, sizes[KEY_SIZE] as usize);
        if table > 1 << 20 || key > 1 << 16 || table + key == 0 {
            return None;
        }
        let mut request = vec![0; HEADER + table + key.div_ceil(4)];
        request[0] = ETHTOOL_GRSSH;
        request[TABLE_SIZE..=KEY_SIZE].copy_from_slice(&sizes[TABLE_SIZE..=KEY_SIZE]);
        // SAFETY: the kernel writes the table and the key if they have the given sizes, and otherwise refuses.
        unsafe { self.ask_at(name, request.as_mut_ptr().cast()) }?;
        let [function, input, ..] = request[FUNCTION].to_ne_bytes();
        let bytes = request[HEADER + table..].iter().flat_map(|word| word.to_ne_bytes());
        Some(Rss {
            table: request[HEADER..HEADER + table].to_vec(),
            key: bytes.take(key).collect(),
            toeplitz: function == TOEPLITZ,
            symmetric_input: input != NO_TRANSFORM && input & SYMMETRIC != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symmetry_is_seen_in_key_and_input() {
        let mut rss = Rss {
            table: vec![0, 1, 0, 1],
            key: vec![0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a],
            toeplitz: true,
            symmetric_input: false,
        };
        assert!(rss.is_symmetric() && rss.queues() == 2);
        rss.key[5] = 0x5b;
        assert!(!rss.is_symmetric());
        rss.symmetric_input = true;
        assert!(rss.is_symmetric());
        rss.symmetric_input = false;
        rss.table = vec![3; 4];
        assert!(rss.is_symmetric(), "one queue");
    }

    #[test]
    fn the_loopback_spreads_nothing() {
        assert_eq!(Ethtool::new().expect("a socket").rss("lo"), None);
    }
}
