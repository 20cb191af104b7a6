//! Addresses behind which nobody finds the old ones without the key: Crypto-PAn (Xu, Fan, Ammar, Moon: "Prefix-Preserving
//! IP Address Anonymization", ICNP 2002).
//!
//! Two addresses that begin with the same bits get new ones that begin with as many equal bits: each bit is turned, or not,
//! by what AES makes of the bits before it. Bits on the way to an address that programs know stay, so that this address
//! stays, and no other becomes one of these.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use pbkdf2::pbkdf2_hmac;
use sha2::Sha256;
use weir_traffic::Pseudonyms;

/// The most addresses that are remembered.
const MOST: usize = 1 << 18;

/// Addresses that stay: bits from the left, how many count, and whether those behind them stay, too.
type Known = (u128, u32, bool);

/// 0/8, loopback, link-local (hosts change), multicast, broadcast.
const KNOWN_4: [Known; 5] = [
    (v4([0, 0, 0, 0]), 8, true),
    (v4([127, 0, 0, 0]), 8, true),
    (v4([169, 254, 0, 0]), 16, false),
    (v4([224, 0, 0, 0]), 4, true),
    (v4([255; 4]), 32, true),
];
/// Groups that have the number or the addresses of their owner (RFC 3180, RFC 6034).
const OWNED_4: [Known; 2] = [(v4([233, 0, 0, 0]), 8, false), (v4([234, 0, 0, 0]), 8, false)];

/// Unspecified, loopback, link-local (hosts change), multicast.
const KNOWN_6: [Known; 4] =
    [(0, 128, true), (1, 128, true), (0xfe80 << 112, 64, false), (0xff << 120, 8, true)];
/// Groups that have a part of the address of a host (RFC 4291, section 2.7.1).
const OWNED_6: [Known; 1] = [((0xff02 << 112) | 0x0001_ff00_0000, 104, false)];

const fn v4([a, b, c, d]: [u8; 4]) -> u128 {
    (u32::from_be_bytes([a, b, c, d]) as u128) << 96
}

/// The key of an anonymisation: that of AES, and what becomes the padding.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(..)")
    }
}

impl Key {
    /// Parses `--anonymise`: a passphrase, or `@FILE` with 32 bytes.
    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            Some(path) => Self::of_file(path),
            None if Path::new(text).is_file() => Err(format!(
                "{text} is a file here; for the key in it write @{text}, or choose a passphrase that names no file"
            )),
            None => Self::of_passphrase(text),
        }
    }

    fn of_passphrase(text: &str) -> Result<Self, String> {
        /// Guessing takes as long each time.
        const ROUNDS: u32 = 100_000;
        if text.is_empty() {
            return Err("the passphrase is empty; allowed: a passphrase, or @FILE with 32 bytes".to_owned());
        }
        let mut key = [0; 32];
        // The same passphrase has to give the same addresses everywhere.
        pbkdf2_hmac::<Sha256>(text.as_bytes(), b"weir --anonymise", ROUNDS, &mut key);
        Ok(Self(key))
    }

    fn of_file(path: &str) -> Result<Self, String> {
        const MOST: u64 = 200;
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
        read.map_err(|error| format!("cannot read the key from {path}: {error}"))?;
        if let Ok(key) = bytes.as_slice().try_into() {
            return Ok(Self(key));
        }
        let digits: Vec<u8> = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let key = digits.iter().all(u8::is_ascii_hexdigit).then(|| digits.chunks(2).map(pair).collect());
        let key: Option<Vec<u8>> = key.flatten();
        let key = key.filter(|_| digits.len() == 64).and_then(|key| key.try_into().ok());
        key.map(Self).ok_or_else(|| {
            format!("cannot use {path} as a key: it has neither 32 bytes nor 64 hexadecimal digits; try head -c 32 /dev/urandom > {path}")
        })
    }
}

/// The value of `--anonymise`: a key, and the file that it was read from.
#[derive(Clone, Debug)]
pub(super) struct KeyArg {
    key: Key,
    file: Option<PathBuf>,
}

impl KeyArg {
    /// Parses a passphrase, or `@FILE` with 32 bytes.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { key: Key::parse(text)?, file: text.strip_prefix('@').map(PathBuf::from) })
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

/// The new address of each address.
pub(super) struct CryptoPan {
    cipher: Aes128,
    padding: u128,
    /// That of hardware addresses, whose bits have nothing to do with those of others.
    padding_of_macs: u128,
    known: HashMap<IpAddr, IpAddr>,
    known_macs: HashMap<[u8; 6], [u8; 6]>,
}

impl fmt::Debug for CryptoPan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CryptoPan(..)")
    }
}

impl CryptoPan {
    pub(super) fn new(Key(key): &Key) -> Self {
        let (key, padding) = key.split_at(16);
        let cipher = Aes128::new(&Array::try_from(key).expect("16 bytes"));
        let encrypted = |block: u128| {
            let mut block = Array::from(block.to_be_bytes());
            cipher.encrypt_block(&mut block);
            u128::from_be_bytes(block.into())
        };
        let padding = encrypted(u128::from_be_bytes(padding.try_into().expect("16 bytes")));
        let padding_of_macs = encrypted(!padding);
        Self { cipher, padding, padding_of_macs, known: HashMap::new(), known_macs: HashMap::new() }
    }

    /// Returns which of the first bits are turned. `bits` begin on the left.
    fn turned(&self, padding: u128, bits: u128, count: u32) -> u128 {
        let block = |place: u32| {
            let mask = u128::MAX.checked_shr(place).unwrap_or(0);
            Array::from(((bits & !mask) | (padding & mask)).to_be_bytes())
        };
        let mut blocks: Vec<_> = (0..count).map(block).collect();
        self.cipher.encrypt_blocks(&mut blocks);
        let bit = |(place, block): (u32, &Array<u8, _>)| u128::from(block[0] >> 7) << (127 - place);
        (0..).zip(&blocks).map(bit).sum()
    }

    /// Returns the new address; `known` stay, unless they are `owned`.
    fn substitute(&self, bits: u128, count: u32, known: &[Known], owned: &[Known]) -> u128 {
        let stay = |&(prefix, length, rest): &Known| match (prefix ^ bits).leading_zeros() {
            common if common < length => common + 1,
            _ if rest => 128,
            _ => length,
        };
        let is_in = |&(prefix, length, _): &Known| (prefix ^ bits).leading_zeros() >= length;
        let stay = match owned.iter().find(|owned| is_in(owned)) {
            Some((_, length, _)) => *length,
            None => known.iter().map(stay).max().unwrap_or(0),
        };
        bits ^ (self.turned(self.padding, bits, count) & u128::MAX.checked_shr(stay).unwrap_or(0))
    }

    fn fresh(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => {
                let new = self.substitute(v4(address.octets()), 32, &KNOWN_4, &OWNED_4);
                Ipv4Addr::from_bits(u32::try_from(new >> 96).expect("32 bits")).into()
            }
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                // The prefix of the owner follows (RFC 3306).
                let owned = (bits >> 120 == 0xff && bits >> 112 & 0xf0 == 0x30).then_some((
                    bits & !(u128::MAX >> 32),
                    32,
                    false,
                ));
                let owned: Vec<_> = owned.into_iter().chain(OWNED_6).collect();
                Ipv6Addr::from_bits(self.substitute(bits, 128, &KNOWN_6, &owned)).into()
            }
        }
    }

    fn fresh_mac(&self, mac: [u8; 6]) -> [u8; 6] {
        /// Groups, and addresses that no manufacturer has given.
        const KIND: u128 = 0x03 << 120;
        let [a, b, c, d, e, f] = mac;
        let bits = u128::from(u64::from_be_bytes([a, b, c, d, e, f, 0, 0])) << 64;
        let [a, b, c, d, e, f, ..] =
            (bits ^ (self.turned(self.padding_of_macs, bits, 48) & !KIND)).to_be_bytes();
        [a, b, c, d, e, f]
    }
}

impl Pseudonyms for CryptoPan {
    fn address(&mut self, address: IpAddr) -> IpAddr {
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let new = self.fresh(address);
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(address, new);
        new
    }

    fn mac(&mut self, mac: [u8; 6]) -> [u8; 6] {
        const NOBODY: [u8; 6] = [0; 6];
        match mac {
            NOBODY => return mac,
            // The group of an address, of which it has three bytes.
            [0x33, 0x33, 0xff, a, b, c] => {
                let group =
                    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]));
                let IpAddr::V6(group) = self.address(group.into()) else { return NOBODY };
                let [.., a, b, c] = group.octets();
                return [0x33, 0x33, 0xff, a, b, c];
            }
            [first, ..] if first & 1 == 1 => return mac,
            _ => {}
        }
        if let Some(known) = self.known_macs.get(&mac) {
            return *known;
        }
        let new = match self.fresh_mac(mac) {
            // Which stays: the one that becomes it gets what it would have become.
            NOBODY => self.fresh_mac(NOBODY),
            new => new,
        };
        if self.known_macs.len() >= MOST {
            self.known_macs.clear();
        }
        self.known_macs.insert(mac, new);
        new
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The key of the authors' sample.
    const SAMPLE: [u8; 32] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131, 121, 121,
        101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];

    fn sample() -> CryptoPan {
        CryptoPan::new(&Key(SAMPLE))
    }

    #[test]
    fn bits_are_turned_as_in_the_sample_of_the_authors() {
        for (from, to) in [
            ("128.11.68.132", "135.242.180.132"),
            ("129.118.74.4", "134.136.186.123"),
            ("130.132.252.244", "133.68.164.234"),
            ("141.223.7.43", "141.167.8.160"),
            ("24.0.250.221", "100.15.198.226"),
        ] {
            let [from, to] =
                [from, to].map(|text| v4(text.parse::<Ipv4Addr>().expect("an address").octets()));
            let pan = sample();
            assert_eq!(from ^ pan.turned(pan.padding, from, 32), to);
        }
    }

    #[test]
    fn addresses_that_programs_know_stay() {
        let mut pan = sample();
        let parsed = |text: &str| text.parse::<IpAddr>().expect("an address");
        for same in [
            "0.0.0.0",
            "127.0.0.1",
            "224.0.0.251",
            "239.255.255.250",
            "255.255.255.255",
            "::",
            "::1",
            "ff02::1",
            "ff02::1:2",
            "ff05::fb",
        ] {
            assert_eq!(pan.address(parsed(same)), parsed(same));
        }
        for (other, prefix) in [
            ("169.254.7.8", "169.254."),
            ("233.1.2.3", "233."),
            ("fe80::1234:56ff:fe78:9abc", "fe80::"),
            ("ff02::1:ff12:3456", "ff02::1:ff"),
            ("ff3e:40:2001:db8::1", "ff3e:40:"),
            ("2001:db8::1", ""),
            ("10.0.0.1", ""),
            ("192.168.0.1", ""),
        ] {
            let new = pan.address(parsed(other));
            assert_ne!(new, parsed(other));
            assert!(new.to_string().starts_with(prefix), "{other} {new}");
        }
        for same in [[0xff; 6], [0; 6], [1, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1]] {
            assert_eq!(pan.mac(same), same);
        }
        let IpAddr::V6(group) = pan.address(parsed("ff02::1:ff12:3456")) else { panic!("IPv6") };
        assert_eq!(pan.mac([0x33, 0x33, 0xff, 0x12, 0x34, 0x56])[2..], group.octets()[12..]);
    }

    #[test]
    fn keys_are_texts_or_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let key = |bytes: &[u8]| {
            let path = directory.path().join("key");
            std::fs::write(&path, bytes).expect("a file");
            Key::parse(&format!("@{}", path.display()))
        };
        let digits: String = SAMPLE.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((key(&SAMPLE), key((digits + "\n").as_bytes())), (Ok(Key(SAMPLE)), Ok(Key(SAMPLE))));
        for wrong in [&SAMPLE[1..], b"a passphrase", &[b'0'; 63], &[b'g'; 64]] {
            assert!(key(wrong).expect_err("no key").contains("neither 32 bytes nor 64 hexadecimal digits"));
        }
        assert!(Key::parse("@/does/not/exist").expect_err("no file").contains("cannot read the key"));
        assert!(
            Key::parse(&directory.path().join("key").display().to_string())
                .expect_err("a file")
                .contains("write @")
        );
        assert!(Key::parse("").expect_err("nothing").contains("is empty"));
        // PBKDF2-HMAC-SHA256 of Python's hashlib.
        let Key(found) = Key::parse("correct horse").expect("a key");
        assert_eq!(found[..4], [101, 105, 59, 176]);
        assert_eq!(format!("{:?}", Key(SAMPLE)), "Key(..)");
    }

    fn common(one: u128, other: u128) -> u32 {
        (one ^ other).leading_zeros()
    }

    fn bits(address: IpAddr) -> u128 {
        match address {
            IpAddr::V4(address) => v4(address.octets()),
            IpAddr::V6(address) => address.to_bits(),
        }
    }

    proptest! {
        /// From which it follows that no two addresses become the same.
        #[test]
        fn common_prefixes_are_preserved(key: [u8; 32], one: u128, other: u128, shared in 0_u32..=128) {
            let mut pan = CryptoPan::new(&Key(key));
            let mask = u128::MAX.checked_shr(shared).unwrap_or(0);
            let other = (one & !mask) | (other & mask);
            let [v6, others] = [one, other].map(|bits| IpAddr::from(Ipv6Addr::from_bits(bits)));
            prop_assert_eq!(common(bits(pan.address(v6)), bits(pan.address(others))), common(one, other));
            let v4 = |bits: u128| IpAddr::from(Ipv4Addr::from_bits((bits >> 96) as u32));
            let [one, other] = [v4(one), v4(other)];
            prop_assert_eq!(common(bits(pan.address(one)), bits(pan.address(other))), common(bits(one), bits(other)));
        }

        #[test]
        fn hardware_addresses_stay_apart_and_of_their_kind(key: [u8; 32], one: [u8; 6], other: [u8; 6]) {
            let mut pan = CryptoPan::new(&Key(key));
            let new = pan.mac(one);
            prop_assert_eq!(new[0] & 3, one[0] & 3);
            prop_assert_eq!(new == pan.mac(other), one == other);
        }
    }
}
