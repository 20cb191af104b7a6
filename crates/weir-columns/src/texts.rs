//! Texts of a row group: each is made once, however many flows have it.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

use parquet::data_type::ByteArray;
use weir_render::flows::{flags, mac};

/// Names that are remembered: some have one of their own for each flow.
const MOST_NAMES: usize = 10_000;

#[derive(Default)]
pub(super) struct Texts {
    addresses: HashMap<IpAddr, ByteArray>,
    macs: HashMap<[u8; 6], ByteArray>,
    flags: HashMap<u8, ByteArray>,
    words: HashMap<&'static str, ByteArray>,
    names: HashMap<String, ByteArray>,
    /// Of interfaces, by number.
    interfaces: Vec<ByteArray>,
}

fn once<K: Eq + Hash + Copy>(
    known: &mut HashMap<K, ByteArray>,
    key: K,
    text: impl FnOnce(K) -> String,
) -> ByteArray {
    known.entry(key).or_insert_with(|| text(key).into_bytes().into()).clone()
}

impl Texts {
    /// Learns the names of interfaces, of which there may be more than before.
    pub(super) fn begin(&mut self, interfaces: &[String]) {
        let new = interfaces.iter().skip(self.interfaces.len());
        self.interfaces.extend(new.map(|name| ByteArray::from(name.as_str())));
    }

    pub(super) fn interface(&self, number: u16) -> ByteArray {
        self.interfaces.get(usize::from(number)).cloned().unwrap_or_else(|| ByteArray::from(""))
    }

    pub(super) fn address(&mut self, address: IpAddr) -> ByteArray {
        once(&mut self.addresses, address, |address| address.to_string())
    }

    pub(super) fn mac(&mut self, bytes: [u8; 6]) -> ByteArray {
        once(&mut self.macs, bytes, mac)
    }

    pub(super) fn flags(&mut self, bits: u8) -> ByteArray {
        once(&mut self.flags, bits, flags)
    }

    pub(super) fn word(&mut self, word: &'static str) -> ByteArray {
        once(&mut self.words, word, str::to_owned)
    }

    pub(super) fn name(&mut self, name: &str) -> ByteArray {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let text = ByteArray::from(name);
        if self.names.len() < MOST_NAMES {
            self.names.insert(name.to_owned(), text.clone());
        }
        text
    }

    /// Forgets what a row group had.
    pub(super) fn clear(&mut self) {
        self.addresses.clear();
        self.macs.clear();
        self.names.clear();
    }
}
