//! Frames of test traffic.

use weir_lab::Traffic;
use weir_traffic::Signature;

/// Where the payload of UDP over IPv4 begins.
const PAYLOAD: usize = 42;

/// Frame `number` of `traffic`, of 60 bytes or more, with a signature as its payload and a UDP checksum.
pub(crate) fn signed(traffic: &Traffic, number: u64, signature: Signature) -> Vec<u8> {
    let mut frame = traffic.frame(number);
    let signature = signature.to_bytes();
    frame[PAYLOAD..PAYLOAD + signature.len()].copy_from_slice(&signature);
    let length = u32::try_from(frame.len() - 34).expect("short");
    let mut sum = 17 + length;
    let (words, rest) = frame[26..].as_chunks::<2>();
    sum += words.iter().map(|&word| u32::from(u16::from_be_bytes(word))).sum::<u32>();
    sum += rest.first().map_or(0, |&byte| u32::from(byte) << 8);
    sum = (sum & 0xffff) + (sum >> 16);
    let [.., high, low] = (!((sum & 0xffff) + (sum >> 16))).to_be_bytes();
    frame[40..PAYLOAD].copy_from_slice(&[high, low]);
    frame
}
