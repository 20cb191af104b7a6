//! Offloads and other features of a device, as shown by `ethtool -k` and set by `ethtool -K`, by the kernel's own
//! names.

use std::io;

use super::Ethtool;
use crate::CallError;

pub(super) const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
/// Bytes of a name, including trailing zeros (`ETH_GSTRING_LEN`).
pub(super) const NAME: usize = 32;
/// Words of `struct ethtool_gstrings` before the names: command, set, number.
pub(super) const STRINGS: usize = 3;
/// More names than any interface has in a set: veth with 4096 queues, its maximum, has about 50 000 counters.
pub(super) const MOST: usize = 1 << 18;

/// ethtool(8)'s short names, each with the beginning and end of the kernel's feature names it stands for
/// (`off_flag_def` in ethtool.c).
const SHORT: [(&str, &str, &str); 12] = [
    ("rx", "rx-checksum", ""),
    ("tx", "tx-checksum-", ""),
    ("sg", "tx-scatter-gather", ""),
    ("tso", "tx-tcp", "-segmentation"),
    ("ufo", "tx-udp-fragmentation", ""),
    ("gso", "tx-generic-segmentation", ""),
    ("gro", "rx-gro", "rx-gro"),
    ("lro", "rx-lro", ""),
    ("rxvlan", "rx-vlan-hw-parse", ""),
    ("txvlan", "tx-vlan-hw-insert", ""),
    ("ntuple", "rx-ntuple-filter", ""),
    ("rxhash", "rx-hashing", ""),
];

/// A feature of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name: `rx-gro`, `tx-tcp-segmentation`, ... .
    pub name: String,
    /// The feature is on.
    pub on: bool,
    /// The feature cannot be changed.
    pub fixed: bool,
}

impl Ethtool {
    /// Returns all features of the interface; empty if the kernel does not know the interface.
    pub fn features(&self, name: &str) -> Vec<Feature> {
        self.try_features(name).unwrap_or_default()
    }

    /// Turns features of the interface on or off, all at once. Names are the kernel's or ethtool's. An ethtool name may
    /// stand for several kernel names (`tx`: `tx-checksum-ip-generic`, `tx-checksum-sctp`, ...) and sets those that can
    /// be changed.
    ///
    /// # Errors
    ///
    /// `EINVAL`: the interface has no such feature. `EOPNOTSUPP`: it cannot be changed here, or conflicts with the
    /// state of another feature. `EPERM` without `CAP_NET_ADMIN`.
    pub fn set_features(&self, name: &str, features: &[(&str, bool)]) -> Result<(), CallError> {
        let failed = |feature: &str, error| {
            CallError::new(format!("switch feature {feature} of {name}"), io::Error::from_raw_os_error(error))
        };
        // Bits are positions in the kernel's list, where some have no name.
        let count = self.string_count(name, ETH_SS_FEATURES).unwrap_or(0);
        let names = self.feature_names(name, count).unwrap_or_default();
        let there = self.features(name);
        // struct ethtool_sfeatures: valid, requested for every 32 features.
        let blocks = count.div_ceil(32);
        let mut request = vec![0; 2 + blocks * 2];
        request[0] = ETHTOOL_SFEATURES;
        request[1] = u32::try_from(blocks).expect("checked");
        for &(feature, on) in features {
            let known: Vec<&Feature> = there.iter().filter(|known| known.goes_by(feature)).collect();
            if known.is_empty() {
                return Err(failed(feature, libc::EINVAL));
            }
            if known.iter().all(|known| known.fixed) && known.iter().any(|known| known.on != on) {
                return Err(failed(feature, libc::EOPNOTSUPP));
            }
            for known in known.into_iter().filter(|known| !known.fixed) {
                let place = names.iter().position(|name| *name == known.name).expect("it is from there");
                let (at, bit) = (2 + place / 32 * 2, 1 << (place % 32));
                request[at] |= bit;
                request[at + 1] = if on { request[at + 1] | bit } else { request[at + 1] & !bit };
            }
        }
        let all = || features.iter().map(|&(feature, _)| feature).collect::<Vec<_>>().join(", ");
        // SAFETY: the kernel reads the number of two-word blocks given in the second word, and writes none.
        match unsafe { self.call(name, request.as_mut_ptr().cast()) } {
            Ok(0) => Ok(()),
            // ETHTOOL_F_UNSUPPORTED, ETHTOOL_F_WISH: the request is recorded, but not in effect.
            Ok(_) => Err(failed(&all(), libc::EOPNOTSUPP)),
            Err(error) => Err(CallError::new(format!("switch features {} of {name}", all()), error)),
        }
    }

    fn try_features(&self, name: &str) -> Option<Vec<Feature>> {
        let count = self.string_count(name, ETH_SS_FEATURES)?;
        let names = self.feature_names(name, count)?;
        let blocks = count.div_ceil(32);
        // struct ethtool_gfeatures: available, requested, active, never_changed for every 32 features.
        let mut request = vec![0; 2 + blocks * 4];
        request[0] = ETHTOOL_GFEATURES;
        request[1] = u32::try_from(blocks).ok()?;
        // SAFETY: the kernel writes the number of four-word blocks given in the second word.
        unsafe { self.ask_at(name, request.as_mut_ptr().cast()) }?;
        let block = |feature: usize| &request[2 + feature / 32 * 4..];
        let bit = |word: u32, feature: usize| word >> (feature % 32) & 1 != 0;
        let all = names.into_iter().enumerate().filter(|(_, name)| !name.is_empty());
        Some(
            all.map(|(feature, name)| Feature {
                name,
                on: bit(block(feature)[2], feature),
                fixed: bit(block(feature)[3], feature) || !bit(block(feature)[0], feature),
            })
            .collect(),
        )
    }

    /// Returns the number of names in a set (`ETH_SS_*`), through `struct ethtool_sset_info`.
    pub(super) fn string_count(&self, name: &str, set: u32) -> Option<usize> {
        let mask = u64::to_ne_bytes(1 << set);
        let half = |at: usize| u32::from_ne_bytes([mask[at], mask[at + 1], mask[at + 2], mask[at + 3]]);
        let mut request = [ETHTOOL_GSSET_INFO, 0, half(0), half(4), 0];
        self.ask(name, &mut request)?;
        usize::try_from(request[4]).ok().filter(|count| (1..=MOST).contains(count))
    }

    /// Returns the names of all features, through `struct ethtool_gstrings`.
    fn feature_names(&self, name: &str, count: usize) -> Option<Vec<String>> {
        let mut request = vec![0; STRINGS + count * NAME / 4];
        request[0] = ETHTOOL_GSTRINGS;
        request[1] = ETH_SS_FEATURES;
        request[2] = u32::try_from(count).ok()?;
        // SAFETY: the kernel writes all its names; their number, which was just queried, is constant.
        unsafe { self.ask_at(name, request.as_mut_ptr().cast()) }?;
        Some(strings(&request, count))
    }
}

impl Feature {
    /// Returns whether `name` is the feature's kernel name, or an ethtool name that stands for it.
    fn goes_by(&self, name: &str) -> bool {
        let short = SHORT.iter().any(|&(short, begin, end)| {
            short == name && self.name.starts_with(begin) && self.name.ends_with(end)
        });
        short || self.name == name
    }
}

/// Returns the names in a `struct ethtool_gstrings` that the kernel has filled in.
pub(super) fn strings(request: &[u32], count: usize) -> Vec<String> {
    let names = request.get(STRINGS..).unwrap_or_default().chunks_exact(NAME / 4).take(count);
    let bytes = |name: &[u32]| name.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
    names.map(|name| String::from_utf8_lossy(&bytes(name)).trim_end_matches('\0').to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_its_features() {
        let features = Ethtool::new().expect("a socket").features("lo");
        let feature = |name| features.iter().find(|feature| feature.name == name).expect("it is listed");
        // drivers/net/loopback.c
        assert!(feature("loopback").on && feature("loopback").fixed);
        assert!(feature("tx-tcp-segmentation").on && !feature("tx-tcp-segmentation").fixed);
        assert!(!feature("rx-lro").on);
    }

    #[test]
    fn short_names_are_those_of_ethtool() {
        let known = |name: &str, short: &str| {
            Feature { name: name.to_owned(), on: true, fixed: false }.goes_by(short)
        };
        assert!(known("rx-gro", "gro") && known("tx-checksum-sctp", "tx") && known("rx-fcs", "rx-fcs"));
        assert!(known("tx-tcp6-segmentation", "tso") && known("tx-tcp-segmentation", "tso"));
        for (name, short) in [("rx-gro-list", "gro"), ("rx-gro", "rx"), ("tx-udp-segmentation", "tso")] {
            assert!(!known(name, short), "{name} is not {short}");
        }
    }

    #[test]
    fn what_cannot_be_switched_is_named() {
        let ethtool = Ethtool::new().expect("a socket");
        for (feature, errno) in [("warp", libc::EINVAL), ("vlan-challenged", libc::EOPNOTSUPP)] {
            let on = !ethtool.features("lo").iter().any(|known| known.name == feature && known.on);
            let error = ethtool.set_features("lo", &[(feature, on)]).expect_err(feature);
            assert_eq!((error.errno(), error.operation.contains(feature)), (errno, true), "{error}");
        }
    }

    #[test]
    fn an_interface_that_is_not_there_has_none() {
        let ethtool = Ethtool::new().expect("a socket");
        assert!(ethtool.features("no-such-if0").is_empty());
        assert!(ethtool.features("a-name-that-is-much-too-long").is_empty());
    }
}
