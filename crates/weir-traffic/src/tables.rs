//! Tables from which frames are written.

use crate::checksum::fold;
use crate::description::{Description, DescriptionField, Refusal};
use crate::flows::flows;
use crate::headers::{Checksum, Headers, Length};
use crate::payload::{Payload, TAIL, tail};
use crate::random::Random;
use crate::sizes::{LONGEST, SHORTEST, Sizes};
use crate::{SIGNATURE_LENGTH, Signature};

/// The longest headers, in bytes.
pub const LONGEST_HEAD: usize = 128;
/// The most checksums of a frame that depend on its size.
pub const MOST_CHECKSUMS: usize = 3;

/// Frames, prepared: frame `n` has the headers `heads[order[n % order.len()]]` and the size `sizes[n % sizes.len()]`. A
/// [`Signature`] follows the headers, then the `payload`.
///
/// Apart from the signature and the number at the end, all that depends on the frame is its size: the fields in `lengths`, and `checksums`, each of
/// which complements the sum that the flow brings and so many times the size. The checksum does not depend on the
/// signature, which sums up to 0, as the payload does.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Bytes of all headers: an even number.
    pub head_length: usize,
    /// The headers of each flow.
    pub heads: Vec<Head>,
    /// Flows, as places in `heads`.
    pub order: Vec<u32>,
    /// Sizes in bytes.
    pub sizes: Vec<u32>,
    /// What follows the signature in the largest frame; zeros in all others.
    pub payload: Vec<u8>,
    /// Whether the last eight bytes of a frame are the low half of its number, in network byte order, and its complement.
    pub numbered: bool,
    /// Fields that depend on the size.
    pub lengths: Vec<Length>,
    /// Checksums that depend on the size: at most [`MOST_CHECKSUMS`].
    pub checksums: Vec<Checksum>,
}

/// The headers of a flow's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The bytes, right for frames of the largest size; zeros behind them.
    pub bytes: [u8; LONGEST_HEAD],
    /// For each of [`Tables::checksums`]: the one's complement sum of what it covers but for what depends on the size.
    pub sums: [u16; MOST_CHECKSUMS],
}

impl Tables {
    /// Prepares the frames of a description.
    ///
    /// # Errors
    ///
    /// What the description asks for is impossible.
    pub fn new(description: &Description) -> Result<Self, Refusal> {
        check(description)?;
        let mut random = Random::new(description.seed);
        let flows = flows(description, &mut random)?;
        let first = Headers::new(description, &flows[0]);
        let head_length = first.bytes.len();
        if head_length > LONGEST_HEAD {
            let why = format!("headers have {head_length} bytes, {LONGEST_HEAD} at most are possible");
            return refused(DescriptionField::Vlans, why, "fewer tags");
        }
        let sizes = sizes(description, head_length, &mut random)?;
        let room = sizes[0] as usize - head_length - SIGNATURE_LENGTH;
        let order = description.order.table(description.flows, &mut random);
        let mut tables = Self {
            head_length,
            heads: Vec::with_capacity(flows.len()),
            order,
            sizes,
            payload: Vec::new(),
            numbered: description.payload == Payload::Pattern && room >= TAIL,
            lengths: first.lengths,
            checksums: first.checksums.iter().map(|(checksum, _)| *checksum).collect(),
        };
        let largest = tables.largest();
        tables.payload = description.payload.bytes(largest as usize - head_length - SIGNATURE_LENGTH);
        for flow in &flows {
            let headers = Headers::new(description, flow);
            let mut head = Head { bytes: [0; LONGEST_HEAD], sums: [0; MOST_CHECKSUMS] };
            head.bytes[..head_length].copy_from_slice(&headers.bytes);
            for (sum, (_, covered)) in head.sums.iter_mut().zip(&headers.checksums) {
                *sum = *covered;
            }
            tables.complete(&mut head.bytes, &head.sums, largest);
            tables.heads.push(head);
        }
        Ok(tables)
    }

    /// Returns the largest size.
    pub fn largest(&self) -> u32 {
        *self.sizes.iter().max().expect("there is a size")
    }

    /// Returns the size of a frame.
    pub fn size(&self, sequence: u64) -> u32 {
        *of(&self.sizes, sequence)
    }

    /// Returns the largest frame of the first flow, without signature and number.
    pub fn template(&self) -> Vec<u8> {
        let head = &self.heads[0].bytes[..self.head_length];
        [head, &[0; SIGNATURE_LENGTH], &self.payload].concat()
    }

    /// Writes a frame over what `frame` has. `time`: see [`Signature`].
    pub fn write(&self, sequence: u64, time: u64, stream: u16, frame: &mut Vec<u8>) {
        let head = &self.heads[*of(&self.order, sequence) as usize];
        let size = self.size(sequence);
        frame.clear();
        frame.extend_from_slice(&head.bytes[..self.head_length]);
        if self.sizes.len() > 1 {
            self.complete(frame, &head.sums, size);
        }
        frame.extend_from_slice(&Signature { stream, sequence, time }.to_bytes());
        frame.extend_from_slice(&self.payload[..size as usize - frame.len()]);
        if self.numbered {
            frame.truncate(size as usize - TAIL);
            frame.extend_from_slice(&tail(sequence));
        }
    }

    /// Writes what depends on the size into headers.
    fn complete(&self, headers: &mut [u8], sums: &[u16; MOST_CHECKSUMS], size: u32) {
        let mut put = |at: u16, word: u16| headers[at.into()..][..2].copy_from_slice(&word.to_be_bytes());
        for length in &self.lengths {
            put(length.at, low(size - u32::from(length.minus)));
        }
        for (checksum, sum) in self.checksums.iter().zip(sums) {
            let complement = !fold(u64::from(*sum) + u64::from(checksum.weight) * u64::from(size));
            put(checksum.at, if complement == 0 && checksum.never_zero { 0xffff } else { complement });
        }
    }
}

/// Returns the entry of a frame in a table whose entries come in turn.
fn of<T>(table: &[T], sequence: u64) -> &T {
    // The remainder is less than a usize.
    &table[usize::try_from(sequence % table.len() as u64).expect("a place in a table")]
}

fn low(number: u32) -> u16 {
    u16::try_from(number).expect("16 bits")
}

fn refused<T>(field: DescriptionField, why: String, remedy: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { field, why, remedy: remedy.into() })
}

/// Checks what needs no tables.
fn check(description: &Description) -> Result<(), Refusal> {
    let Description { vlans, vxlan, sources, destinations, order, sizes, .. } = description;
    if vlans.len() > 2 {
        return refused(DescriptionField::Vlans, format!("there are {} tags", vlans.len()), "one or two");
    }
    if let Some(id) = vlans.iter().find(|id| **id > 4094) {
        return refused(DescriptionField::Vlans, format!("{id} is no ID of a VLAN"), "0 to 4094");
    }
    if let Some(vxlan) = vxlan.filter(|vxlan| vxlan.vni >= 1 << 24) {
        return refused(
            DescriptionField::Vxlan,
            format!("{} has more than 24 bits", vxlan.vni),
            "0 to 16777215",
        );
    }
    if sources.is_ipv6() != destinations.is_ipv6() {
        let why = "sources and destinations are of different IP versions".to_owned();
        return refused(DescriptionField::Destinations, why, "both of IPv4, or both of IPv6");
    }
    if description.payload == Payload::Pattern && !matches!(sizes, None | Some(Sizes::Fixed(_))) {
        return refused(
            DescriptionField::Payload,
            "frames of several sizes have zeros".to_owned(),
            "one size",
        );
    }
    order.mistake().map_or(Ok(()), |why| refused(DescriptionField::Order, why, "1.1"))
}

/// Returns the sizes in turn.
fn sizes(description: &Description, head: usize, random: &mut Random) -> Result<Vec<u32>, Refusal> {
    let least = u32::try_from(head + SIGNATURE_LENGTH).expect("headers are short");
    let sizes = description.sizes.unwrap_or_else(|| Sizes::Fixed(least.max(SHORTEST)));
    let (first, last) = sizes.limits(least);
    if first > last {
        return refused(
            DescriptionField::Sizes,
            format!("{last} is less than {first}"),
            format!("{last}-{first}"),
        );
    }
    if first < least {
        let why =
            format!("{first} bytes have no room for {head} of headers and {SIGNATURE_LENGTH} of signature");
        return refused(DescriptionField::Sizes, why, format!("{least} or more"));
    }
    if last > LONGEST {
        return refused(
            DescriptionField::Sizes,
            format!("{last} bytes are too many"),
            format!("up to {LONGEST}"),
        );
    }
    Ok(sizes.table(least, random))
}
