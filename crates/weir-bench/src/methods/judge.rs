//! Checks that a method has done its work: compares its result with the kernel's counters, and with the checksums that
//! the sender put into the packets.

use std::net::Ipv4Addr;

use super::work::{Seen, add};

/// What the receiving host has counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Arrived {
    /// By its stack: packets, and their bytes from the IP header on.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// By the interface.
    pub(super) frames: u64,
}

/// The ends of the TCP connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
}

/// Returns what is wrong with packets of iperf3.
pub(super) fn stream(seen: &Seen, arrived: &Arrived, ends: &Ends) -> Vec<String> {
    let mut problems = counts(seen, arrived);
    if !sums_up(seen, ends) {
        problems.push(format!(
            "the sum of {} packets does not fit their checksums: not every byte was copied",
            seen.packets
        ));
    }
    problems
}

/// Returns what is wrong with frames whose bytes are known.
pub(super) fn burst(seen: &Seen, arrived: &Arrived, frames: &[Vec<u8>]) -> Vec<String> {
    let mut problems = counts(seen, arrived);
    if arrived.packets != frames.len() as u64 {
        problems.push(format!("{} of {} frames arrived", arrived.packets, frames.len()));
    }
    let sum = frames.iter().filter_map(|frame| frame.get(14..)).fold(0, add);
    // All ones also mean zero.
    if seen.lost == 0 && seen.sum % u64::MAX != sum % u64::MAX {
        problems.push(format!(
            "the sum of {} packets is {:016x} instead of {sum:016x}: not every byte was copied",
            seen.packets, seen.sum
        ));
    }
    problems
}

/// The interface and its stack have to agree: with GRO, the stack would get fewer packets.
pub(super) fn arrival(arrived: &Arrived) -> Vec<String> {
    let Arrived { packets, frames, .. } = arrived;
    let differ = || format!("the interface has counted {frames} packets and its stack {packets}");
    (frames != packets).then(differ).into_iter().collect()
}

/// Every packet has to be accounted for, by whoever counts.
fn counts(seen: &Seen, arrived: &Arrived) -> Vec<String> {
    let Seen { packets, bytes, others, lost, lost_both_ways, .. } = *seen;
    let mut problems = arrival(arrived);
    let known = packets..=packets + lost;
    let fits =
        if lost_both_ways { known.contains(&arrived.packets) } else { *known.end() == arrived.packets };
    if !fits {
        problems.push(format!(
            "{packets} packets intercepted and {lost} lost are not the {} that arrived",
            arrived.packets
        ));
    }
    if lost == 0 && bytes != arrived.bytes {
        problems.push(format!("{bytes} bytes copied are not the {} that arrived", arrived.bytes));
    }
    if others > 0 {
        problems.push(format!("{others} packets were taken for others than TCP to this host"));
    }
    problems
}

/// Whether the sum fits the checksums in the packets (RFC 1071). IPv4 headers sum up to zero in ones' complement, and so do
/// TCP segments with their pseudo headers (RFC 9293, section 3.1): addresses, protocol and length of the segment. Without
/// options in IPv4 headers, what all pseudo headers sum up to follows from the numbers of packets and bytes.
fn sums_up(seen: &Seen, ends: &Ends) -> bool {
    const ONES: u64 = 0xffff;
    const TCP: u64 = 6;
    const HEADER: u64 = 20;
    let words = |address: Ipv4Addr| {
        let [a, b, c, d] = address.octets();
        u64::from(u16::from_be_bytes([a, b])) + u64::from(u16::from_be_bytes([c, d]))
    };
    let same = words(ends.source) + words(ends.destination) + TCP;
    let pseudo = (seen.packets % ONES) * same + seen.bytes % ONES + ONES * HEADER
        - (seen.packets % ONES) * HEADER % ONES;
    // Swapping the bytes of each word swaps those of the sum.
    let sum = if cfg!(target_endian = "little") { seen.sum % ONES * 256 } else { seen.sum };
    (sum % ONES + pseudo).is_multiple_of(ONES)
}

#[cfg(test)]
mod tests {
    use super::super::traffic;
    use super::super::work::Work;
    use super::*;

    const ENDS: Ends = Ends { source: Ipv4Addr::new(10, 77, 0, 1), destination: Ipv4Addr::new(10, 77, 0, 2) };

    fn frames() -> Vec<Vec<u8>> {
        traffic::frames([[2; 6]; 2], ENDS, 40).expect("frames")
    }

    fn arrived(frames: &[Vec<u8>]) -> Arrived {
        let packets = frames.len() as u64;
        let bytes = frames.iter().map(|frame| frame.len() as u64 - 14).sum();
        Arrived { packets, bytes, frames: packets }
    }

    /// What a method sees that treats each frame, by its number, as `step` says.
    fn seen(frames: &[Vec<u8>], step: impl Fn(usize, &mut Work, &[u8])) -> Seen {
        let mut work = Work::new(ENDS.destination);
        frames.iter().enumerate().for_each(|(number, frame)| step(number, &mut work, frame));
        work.seen(0)
    }

    fn both(seen: &Seen, arrived: &Arrived, frames: &[Vec<u8>]) -> [usize; 2] {
        [stream(seen, arrived, &ENDS).len(), burst(seen, arrived, frames).len()]
    }

    #[test]
    fn nothing_is_wrong_with_all_bytes_of_all_packets() {
        let frames = frames();
        let seen = seen(&frames, |_, work, frame| work.frame(frame));
        assert_eq!((seen.packets, both(&seen, &arrived(&frames), &frames)), (320, [0, 0]));
    }

    #[test]
    fn a_packet_that_is_not_seen_is_missed() {
        let frames = frames();
        let seen = seen(&frames, |number, work, frame| {
            if number != 319 {
                work.frame(frame)
            }
        });
        // Packets, bytes, and in the burst the sum.
        assert_eq!(both(&seen, &arrived(&frames), &frames), [2, 3]);
        let known = Seen { lost: 1, ..seen };
        assert_eq!(both(&known, &arrived(&frames), &frames), [0, 0], "one that is known to be lost is not");
        let more = Seen { lost: 2, ..seen };
        assert_eq!(both(&more, &arrived(&frames), &frames), [1, 1]);
        let both_ways = Seen { lost_both_ways: true, ..more };
        assert_eq!(both(&both_ways, &arrived(&frames), &frames), [0, 0], "the other has been sent");
    }

    #[test]
    fn a_copy_that_is_not_made_shows_in_the_sum() {
        let frames = frames();
        // None of them is looked at before the copy is made.
        for place in [15, 24, 34, 60, 200] {
            let frame = frames.iter().position(|frame| frame.len() > place).expect("a longer frame");
            let seen = seen(&frames, |number, work, bytes| {
                let mut stale = bytes.to_vec();
                if number == frame {
                    stale[place] ^= 8;
                }
                work.frame(&stale);
            });
            assert_eq!(both(&seen, &arrived(&frames), &frames), [1, 1], "byte {place}");
        }
    }

    /// Packets of one length have one sum in ones' complement of 16 bits: that is what known frames are for.
    #[test]
    fn the_copy_of_the_packet_before_shows_in_the_burst() {
        let frames = frames();
        let seen = seen(&frames, |number, work, frame| {
            let last = number.checked_sub(1).and_then(|number| frames.get(number));
            work.frame(last.filter(|last| last.len() == frame.len()).map_or(frame, |last| last));
        });
        assert_eq!(both(&seen, &arrived(&frames), &frames), [0, 1]);
    }

    #[test]
    fn counters_that_disagree_are_a_problem() {
        let frames = frames();
        let seen = seen(&frames, |_, work, frame| work.frame(frame));
        let arrived = arrived(&frames);
        for wrong in [Arrived { frames: 319, ..arrived }, Arrived { bytes: arrived.bytes + 1, ..arrived }] {
            assert_eq!(both(&seen, &wrong, &frames), [1, 1]);
        }
        let others = Seen { others: 1, ..seen };
        assert_eq!(both(&others, &arrived, &frames), [1, 1]);
    }
}
