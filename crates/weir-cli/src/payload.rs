//! What `weir count` does with packets: nothing, read them, verify them, or a known amount of work.

use serde::Serialize;
use weir::{Interface, Share};
use weir_lab::{SequenceCheck, Traffic};

use crate::args::CountArgs;
use crate::failure::Failure;
use crate::load::{Load, LoadFindings};

/// The processing of each packet.
#[derive(Debug)]
pub(crate) enum Payload {
    /// None, because a chunk knows its number of packets.
    Ignored,
    /// Every byte is read, the minimum for any real application.
    Summed(u64),
    /// Every byte is compared, and the numbers in packets show which are missing or out of order.
    Verified(Box<SequenceCheck>),
    /// A filter is run on it many times.
    Loaded(Load),
}

/// The expected traffic of the lab: `SIZE,FLOWS,FRAMES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    size: usize,
    flows: u32,
    frames: u64,
}

/// The results; fields that were not requested are absent.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Findings {
    /// Sum of all payload as 64-bit words, which proves that it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_sum: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<Verified>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<LoadFindings>,
}

impl Findings {
    /// Returns the sum of these results and another thread's.
    pub(crate) fn and(self, other: Self) -> Self {
        let sums = self.payload_sum.zip(other.payload_sum);
        Self {
            payload_sum: sums.map(|(one, other)| one.wrapping_add(other)),
            // Never with several threads, because only one that sees all packets can check their order.
            verified: self.verified,
            load: self.load.zip(other.load).map(|(one, other)| one.and(other)),
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Verified {
    received: u64,
    lost: u64,
    duplicated: u64,
    reordered: u64,
    corrupt: u64,
}

impl Payload {
    /// Returns the requested processing for packets of `interfaces`.
    pub(crate) fn new(args: &CountArgs, interfaces: &[Interface]) -> Result<Self, Failure> {
        if let Some(load) = args.load.on(interfaces)? {
            return Ok(Self::Loaded(load));
        }
        let Some(Expected { size, flows, frames }) = args.verify else {
            return Ok(if args.touch { Self::Summed(0) } else { Self::Ignored });
        };
        let wrong = |error: weir_lab::Error| Failure::usage(error.to_string());
        let traffic = Traffic::new(size).and_then(|traffic| traffic.flows(flows)).map_err(wrong)?;
        Ok(Self::Verified(Box::new(SequenceCheck::new(&traffic, 0..frames))))
    }

    pub(crate) fn take(&mut self, share: &Share) {
        match self {
            Self::Ignored => {}
            Self::Summed(sum) => {
                *sum = share.packets().fold(*sum, |sum, packet| sum.wrapping_add(words(packet.data)))
            }
            Self::Verified(check) => share.packets().for_each(|packet| check.frame(packet.data)),
            Self::Loaded(load) => share.packets().for_each(|packet| load.packet(&packet)),
        }
    }

    pub(crate) fn finish(self) -> Findings {
        match self {
            Self::Ignored => Findings::default(),
            Self::Summed(sum) => Findings { payload_sum: Some(sum), ..Findings::default() },
            Self::Loaded(load) => Findings { load: Some(load.finish()), ..Findings::default() },
            Self::Verified(check) => {
                let report = check.finish();
                let weir_lab::FlowTally { received, lost, duplicated, reordered } = report.total;
                let verified = Verified { received, lost, duplicated, reordered, corrupt: report.corrupt };
                Findings { verified: Some(verified), ..Findings::default() }
            }
        }
    }
}

/// Returns the sum of all bytes, eight at a time.
pub(crate) fn words(data: &[u8]) -> u64 {
    let (words, rest) = data.as_chunks();
    let sum = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_ne_bytes(*word)));
    rest.iter().fold(sum, |sum, &byte| sum.wrapping_add(u64::from(byte)))
}

impl std::str::FromStr for Expected {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "allowed: SIZE,FLOWS,FRAMES, for instance 60,1,1000000".to_owned();
        let mut numbers = text.splitn(3, ',');
        let mut next = || numbers.next().ok_or_else(wrong);
        Ok(Self {
            size: next()?.parse().map_err(|_| wrong())?,
            flows: next()?.parse().map_err(|_| wrong())?,
            frames: next()?.parse().map_err(|_| wrong())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_read() {
        assert_eq!("60,1,1000".parse(), Ok(Expected { size: 60, flows: 1, frames: 1000 }));
        for text in ["", "60", "60,1", "60,1,x", "60,1,2,3"] {
            assert!(text.parse::<Expected>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_byte_is_in_the_sum() {
        let data: Vec<u8> = (0..29).collect();
        for place in 0..data.len() {
            let mut changed = data.clone();
            changed[place] ^= 0x40;
            assert_ne!(words(&data), words(&changed), "{place}");
        }
    }
}
