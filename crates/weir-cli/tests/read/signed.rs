//! Frames of test traffic.

use weir_lab::Traffic;
use weir_traffic::Signature;

/// Where the payload of UDP over IPv4 begins.
const PAYLOAD: usize = 42;

/// Frame `number` of `traffic` with another signature, which leaves its checksum right.
pub(crate) fn signed(traffic: &Traffic, number: u64, signature: Signature) -> Vec<u8> {
    let mut frame = traffic.frame(number);
    let signature = signature.to_bytes();
    frame[PAYLOAD..PAYLOAD + signature.len()].copy_from_slice(&signature);
    frame
}
