//! Offloads and other switches of a device, by the kernel's own names: what `ethtool -k` shows.

use super::Ethtool;

const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETH_SS_FEATURES: u32 = 4;
/// Bytes of a name, the closing zeros included (`ETH_GSTRING_LEN`).
const NAME: usize = 32;

/// One switch of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name: `rx-gro`, `tx-tcp-segmentation`, ... .
    pub name: String,
    /// Switched on.
    pub on: bool,
    /// Nobody can switch it.
    pub fixed: bool,
}

impl Ethtool {
    /// All switches of the interface; empty if the kernel does not know the interface.
    pub fn features(&self, name: &str) -> Vec<Feature> {
        self.try_features(name).unwrap_or_default()
    }

    fn try_features(&self, name: &str) -> Option<Vec<Feature>> {
        let count = self.feature_count(name)?;
        let names = self.feature_names(name, count)?;
        let blocks = count.div_ceil(32);
        // struct ethtool_gfeatures: for each 32 features available, requested, active, never_changed.
        let mut request = vec![0; 2 + blocks * 4];
        request[0] = ETHTOOL_GFEATURES;
        request[1] = u32::try_from(blocks).ok()?;
        // SAFETY: the kernel writes as many blocks of four words as the second word says.
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

    /// `struct ethtool_sset_info`: asked for one set, it answers with one number.
    fn feature_count(&self, name: &str) -> Option<usize> {
        let mask = u64::to_ne_bytes(1 << ETH_SS_FEATURES);
        let half = |at: usize| u32::from_ne_bytes([mask[at], mask[at + 1], mask[at + 2], mask[at + 3]]);
        let mut request = [ETHTOOL_GSSET_INFO, 0, half(0), half(4), 0];
        self.ask(name, &mut request)?;
        usize::try_from(request[4]).ok().filter(|count| (1..=4096).contains(count))
    }

    /// `struct ethtool_gstrings`.
    fn feature_names(&self, name: &str, count: usize) -> Option<Vec<String>> {
        const HEADER: usize = 3;
        let mut request = vec![0; HEADER + count * NAME / 4];
        request[0] = ETHTOOL_GSTRINGS;
        request[1] = ETH_SS_FEATURES;
        request[2] = u32::try_from(count).ok()?;
        // SAFETY: the kernel writes its number of names, which is the one it was just asked for: it is a constant.
        unsafe { self.ask_at(name, request.as_mut_ptr().cast()) }?;
        let bytes: Vec<u8> = request[HEADER..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let text = |name: &[u8]| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
        Some(bytes.chunks_exact(NAME).map(text).collect())
    }
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
    fn an_interface_that_is_not_there_has_none() {
        let ethtool = Ethtool::new().expect("a socket");
        assert!(ethtool.features("no-such-if0").is_empty());
        assert!(ethtool.features("a-name-that-is-much-too-long").is_empty());
    }
}
