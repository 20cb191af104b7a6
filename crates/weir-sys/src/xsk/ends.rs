//! The process's ends of one socket's four rings. Everything that comes out is checked, so that a faulty driver or
//! kernel can neither lead outside the memory nor to a frame twice.

use super::frame::{Frame, FrameDescriptor};
use super::ring::{Consumer, Descriptor, Producer};
use super::umem::Umem;

/// A socket's own counts of its traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XskCounts {
    /// Packets received.
    pub received: u64,
    /// Packets put into the transmit ring.
    pub sent: u64,
    /// Sent frames that the kernel has not given back.
    pub sending: u64,
    /// Packets put into the transmit ring that the device did not accept, if reported by the kernel.
    pub unsent: u64,
    /// Invalid entries: packets or completions outside the memory, or in frames that the kernel did not have; also
    /// empty packets that were to be sent.
    pub refused: u64,
}

/// `XDP_PKT_CONTD` (linux/if_xdp.h): the packet continues in the next descriptor.
const CONTINUES: u32 = 1;
/// Most frames per packet. The kernel's largest packet has one more than `MAX_SKB_FRAGS`, which is at most 45.
const MOST_PARTS: usize = 64;

/// The ends of one socket's rings. A socket that only sends or only receives lacks the other rings.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) umem: Umem,
    pub(super) fill: Producer<u64>,
    pub(super) received: Option<Consumer<Descriptor>>,
    pub(super) sent: Option<Producer<Descriptor>>,
    pub(super) completed: Consumer<u64>,
    /// Numbers of the rings that frames go into (`Memory::put`).
    pub(super) fill_number: u32,
    pub(super) sent_number: u32,
    /// Parts of a packet whose end has not arrived yet.
    pub(super) begun: Vec<FrameDescriptor>,
    /// One of its parts was refused, and so the whole packet.
    pub(super) spoilt: bool,
    pub(super) counts: XskCounts,
}

impl Ends {
    /// # Panics
    ///
    /// If `umem` is not the socket's memory.
    fn check(&self, umem: &Umem) {
        assert!(std::sync::Arc::ptr_eq(&self.umem.0, &umem.0), "the socket has another memory");
    }

    /// Appends the frames of received packets, each packet whole, from at most `most` descriptors. Returns the number
    /// of packets.
    pub(super) fn receive<'u>(&mut self, umem: &'u Umem, most: u32, into: &mut Vec<Frame<'u>>) -> usize {
        self.check(umem);
        let Some(received) = &mut self.received else { return 0 };
        let batch = received.available().min(most);
        let mut packets = 0;
        for ahead in 0..batch {
            let descriptor = received.get(ahead);
            let continues = descriptor.options & CONTINUES != 0;
            let part = umem.0.locate(descriptor.address).and_then(|(index, start)| {
                let part = FrameDescriptor { index, start, length: descriptor.length, continues };
                umem.0.fetch(index, self.fill_number).then_some(part)
            });
            if self.begun.is_empty() && !continues && !self.spoilt {
                // The usual case.
                match part.and_then(|part| Frame::full(&umem.0, part)) {
                    Some(frame) => {
                        into.push(frame);
                        packets += 1;
                    }
                    None => self.counts.refused += 1,
                }
                continue;
            }
            self.spoilt |= part.is_none() || self.begun.len() >= MOST_PARTS;
            self.begun.extend(part);
            if self.spoilt {
                // The packet's frames are free again.
                self.begun.drain(..).for_each(|part| umem.0.let_go(part.index));
            }
            if continues {
                continue;
            }
            let first = into.len();
            let parts = self.begun.len();
            into.extend(self.begun.drain(..).filter_map(|part| Frame::full(&umem.0, part)));
            if std::mem::take(&mut self.spoilt) || into.len() - first < parts {
                into.truncate(first);
                self.counts.refused += 1;
            } else {
                packets += 1;
            }
        }
        if batch > 0 {
            received.release(batch);
        }
        self.counts.received += packets as u64;
        packets
    }

    /// Gives the kernel the last of `frames` to receive into, as many as the ring has room for. Returns their number.
    pub(super) fn refill(&mut self, frames: &mut Vec<Frame<'_>>) -> usize {
        let count = (self.fill.room() as usize).min(frames.len());
        let mut ahead = 0;
        for frame in frames.drain(frames.len() - count..) {
            assert!(std::ptr::eq(frame.memory(), &raw const *self.umem.0), "the socket has another memory");
            let part = frame.into_descriptor();
            self.umem.0.put(part.index, self.fill_number);
            self.fill.set(ahead, self.umem.0.address(part.index, 0));
            ahead += 1;
        }
        if ahead > 0 {
            self.fill.publish(ahead);
        }
        count
    }

    /// Queues the first packets of `frames` to be sent, as many as the ring has room for, each whole. Returns their
    /// number. An empty frame, which the kernel would not give back, is dropped and counted.
    pub(super) fn send(&mut self, frames: &mut Vec<Frame<'_>>) -> usize {
        let Some(sent) = &mut self.sent else { return 0 };
        let room = (sent.room() as usize).min(frames.len());
        let whole = frames[..room].iter().rposition(|frame| !frame.continues()).map_or(0, |last| last + 1);
        let (mut ahead, mut packets) = (0, 0);
        for frame in frames.drain(..whole) {
            assert!(std::ptr::eq(frame.memory(), &raw const *self.umem.0), "the socket has another memory");
            if frame.is_empty() {
                self.counts.refused += 1;
                continue;
            }
            let part = frame.into_descriptor();
            self.umem.0.put(part.index, self.sent_number);
            let address = self.umem.0.address(part.index, part.start);
            let options = if part.continues { CONTINUES } else { 0 };
            sent.set(ahead, Descriptor { address, length: part.length, options });
            ahead += 1;
            packets += usize::from(!part.continues);
        }
        if ahead > 0 {
            sent.publish(ahead);
        }
        self.counts.sent += packets as u64;
        self.counts.sending += u64::from(ahead);
        packets
    }

    /// Appends the frames that the kernel has finished sending, empty. Returns their number.
    pub(super) fn complete<'u>(&mut self, umem: &'u Umem, into: &mut Vec<Frame<'u>>) -> usize {
        self.check(umem);
        let batch = self.completed.available();
        let before = into.len();
        for ahead in 0..batch {
            let address = self.completed.get(ahead);
            match umem.0.locate(address).filter(|&(index, _)| umem.0.fetch(index, self.sent_number)) {
                Some((index, _)) => into.push(Frame::empty(&umem.0, index)),
                None => self.counts.refused += 1,
            }
        }
        if batch > 0 {
            self.completed.release(batch);
        }
        let frames = into.len() - before;
        self.counts.sending -= frames as u64;
        frames
    }
}

#[cfg(test)]
mod tests {
    //! The tests play the kernel's side, well-behaved or hostile.

    use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

    use rustix::net::xdp::XdpRingOffset;

    use super::*;
    use crate::xsk::mapping::Mapping;
    use crate::xsk::memory::RingMemory;
    use crate::xsk::ring::Entry;
    use crate::xsk::{FrameSize, UmemOptions};

    const ENTRIES: u32 = 8;
    const FRAMES: u32 = 16;
    const SIZE: u64 = 2048;

    fn memory<E: Entry>() -> RingMemory {
        let at = XdpRingOffset { producer: 0, consumer: 64, flags: Some(128), desc: 192 };
        RingMemory::new(Mapping::anonymous(4096).unwrap(), &at, ENTRIES, E::WORDS).unwrap()
    }

    fn ends(segments: bool) -> (Umem, Ends) {
        let options =
            UmemOptions { frames: FRAMES, frame_size: FrameSize::TwoKib, zero_copy: false, segments };
        let umem = Umem::new(options).unwrap();
        let ends = Ends {
            umem: umem.clone(),
            fill: Producer::new(memory::<u64>()),
            received: Some(Consumer::new(memory::<Descriptor>())),
            sent: Some(Producer::new(memory::<Descriptor>())),
            completed: Consumer::new(memory::<u64>()),
            fill_number: 1,
            sent_number: 2,
            begun: Vec::new(),
            spoilt: false,
            counts: XskCounts::default(),
        };
        (umem, ends)
    }

    /// Takes everything out of a ring, as the kernel.
    fn drain<E: Entry>(ring: &Producer<E>) -> Vec<E> {
        let (from, to) = (ring.ring.consumer().load(Relaxed), ring.ring.producer().load(Acquire));
        let entries = (0..to.wrapping_sub(from))
            .map(|n| E::load(|word| ring.ring.slot(from.wrapping_add(n), word).load(Relaxed)))
            .collect();
        ring.ring.consumer().store(to, Release);
        entries
    }

    /// Puts entries into a ring, as the kernel.
    fn produce<E: Entry>(ring: &Consumer<E>, entries: &[E]) {
        let mut index = ring.ring.producer().load(Relaxed);
        for entry in entries {
            entry.store(|word, value| ring.ring.slot(index, word).store(value, Relaxed));
            index = index.wrapping_add(1);
        }
        ring.ring.producer().store(index, Release);
    }

    fn descriptor(address: u64, length: u32, options: u32) -> Descriptor {
        Descriptor { address, length, options }
    }

    /// Gives the kernel `count` frames, and returns their addresses.
    fn give(umem: &Umem, ends: &mut Ends, count: usize) -> Vec<u64> {
        let mut frames = Vec::new();
        umem.take(count, &mut frames);
        assert_eq!(ends.refill(&mut frames), count);
        drain(&ends.fill)
    }

    fn arrive(ends: &Ends, descriptors: &[Descriptor]) {
        produce(ends.received.as_ref().unwrap(), descriptors);
    }

    #[test]
    fn frames_go_round() {
        let (umem, mut ends) = ends(false);
        let mut frames = Vec::new();
        for round in 0..50_u8 {
            let given = give(&umem, &mut ends, 5);
            for (n, &address) in given.iter().enumerate() {
                assert_eq!(address % SIZE, 0);
                let (index, _) = umem.0.locate(address).unwrap();
                // SAFETY: inside the frame.
                let first = unsafe { umem.0.frame(index).add(256) };
                // SAFETY: the test is the kernel, and has the frame.
                unsafe { first.write(round + u8::try_from(n).unwrap()) };
            }
            arrive(&ends, &given.iter().map(|address| descriptor(address + 256, 60, 0)).collect::<Vec<_>>());
            assert_eq!(ends.receive(&umem, 3, &mut frames), 3);
            assert_eq!(ends.receive(&umem, 64, &mut frames), 2);
            for (n, frame) in frames.iter().enumerate() {
                assert_eq!((frame.len(), frame.bytes()[0]), (60, round + u8::try_from(n).unwrap()));
            }
            frames[0].shrink_head(4);
            assert_eq!((ends.send(&mut frames), frames.len()), (5, 0));
            let sent = drain(ends.sent.as_ref().unwrap());
            assert_eq!(sent[0], descriptor(given[0] + 260, 56, 0));
            assert_eq!(sent[4], descriptor(given[4] + 256, 60, 0));
            assert_eq!(ends.counts.sending, 5);
            produce(&ends.completed, &sent.iter().map(|sent| sent.address).collect::<Vec<_>>());
            assert_eq!(ends.complete(&umem, &mut frames), 5);
            frames.clear();
            assert_eq!((umem.free(), ends.counts.sending), (FRAMES as usize, 0));
        }
        assert_eq!(ends.counts, XskCounts { received: 250, sent: 250, ..XskCounts::default() });
    }

    #[test]
    fn a_ring_takes_what_it_has_room_for() {
        let (umem, mut ends) = ends(false);
        let mut frames = Vec::new();
        umem.take(12, &mut frames);
        assert_eq!((ends.refill(&mut frames), frames.len()), (8, 4));
        assert_eq!((ends.refill(&mut frames), frames.len()), (0, 4));
        umem.take(4, &mut frames);
        frames.iter_mut().for_each(|frame| frame.grow_tail(60).unwrap().fill(1));
        umem.take(1, &mut frames);
        assert_eq!((ends.send(&mut frames), frames.len()), (8, 0));
        assert_eq!(ends.send(&mut frames), 0);
    }

    #[test]
    fn what_was_not_given_is_refused() {
        let (umem, mut ends) = ends(false);
        let given = give(&umem, &mut ends, 2);
        let mut frames = Vec::new();
        let (good, other) = (given[0], given[1]);
        let never_given = (0..16).map(|n| n * SIZE).find(|address| !given.contains(address)).unwrap();
        let wild = [
            descriptor(never_given + 256, 60, 0),
            descriptor(16 * SIZE, 60, 0),
            descriptor(u64::MAX, 60, 0),
            descriptor(u64::MAX - 59, 60, 0),
            descriptor(good + 256, 60, 0),
            descriptor(good + 256, 60, 0),
            descriptor(good, 0, 0),
        ];
        arrive(&ends, &wild);
        assert_eq!(ends.receive(&umem, 64, &mut frames), 1);
        assert_eq!(ends.counts, XskCounts { received: 1, refused: 6, ..XskCounts::default() });
        // The kernel had it, but the packet is too long for the frame: the frame is ours again, and free.
        let free = umem.free();
        arrive(&ends, &[descriptor(other + 256, 1793, 0)]);
        assert_eq!((ends.receive(&umem, 64, &mut frames), umem.free()), (0, free + 1));
        let again = give(&umem, &mut ends, 1);
        arrive(&ends, &[descriptor(again[0] + 256, u32::MAX, 0)]);
        assert_eq!(ends.receive(&umem, 64, &mut frames), 0);
        assert_eq!((frames.len(), ends.counts.refused), (1, 8));
    }

    #[test]
    fn completions_of_what_was_not_sent_are_refused() {
        let (umem, mut ends) = ends(false);
        let given = give(&umem, &mut ends, 1);
        let mut frames = Vec::new();
        umem.take(1, &mut frames);
        frames[0].grow_tail(60).unwrap().fill(1);
        assert_eq!(ends.send(&mut frames), 1);
        let sent = drain(ends.sent.as_ref().unwrap())[0].address;
        produce(&ends.completed, &[given[0], 7 * SIZE, u64::MAX, sent, sent]);
        assert_eq!(ends.complete(&umem, &mut frames), 1);
        assert_eq!((frames.len(), ends.counts.refused, ends.counts.sending), (1, 4, 0));
        // A frame that is being sent is never received, either.
        frames[0].grow_tail(60).unwrap().fill(1);
        ends.send(&mut frames);
        let sent = drain(ends.sent.as_ref().unwrap())[0].address;
        arrive(&ends, &[descriptor(sent, 60, 0)]);
        assert_eq!(ends.receive(&umem, 64, &mut frames), 0);
        assert_eq!((frames.len(), ends.counts.refused), (0, 5));
    }

    #[test]
    fn an_empty_frame_is_not_sent() {
        let (umem, mut ends) = ends(false);
        let mut frames = Vec::new();
        umem.take(2, &mut frames);
        frames[1].grow_tail(60).unwrap().fill(1);
        assert_eq!(ends.send(&mut frames), 1);
        assert_eq!(drain(ends.sent.as_ref().unwrap()).len(), 1);
        assert_eq!((ends.counts.refused, umem.free()), (1, FRAMES as usize - 1));
    }

    #[test]
    fn wild_indices_never_exceed_a_ring() {
        let (umem, mut ends) = ends(false);
        let mut frames = Vec::new();
        umem.take(FRAMES as usize, &mut frames);
        for wild in [1, 9, 1 << 31, u32::MAX] {
            ends.fill.ring.consumer().store(wild, Relaxed);
            assert!(ends.fill.room() <= ENTRIES, "{wild}");
            ends.completed.ring.producer().store(wild, Relaxed);
            assert_eq!(ends.complete(&umem, &mut frames), 0, "{wild}");
            let received = ends.received.as_ref().unwrap();
            received.ring.producer().store(received.consumed.wrapping_add(wild), Relaxed);
            assert!(received.available() <= ENTRIES, "{wild}");
            assert_eq!(ends.receive(&umem, u32::MAX, &mut frames), 0, "{wild}");
        }
        assert_eq!(frames.len(), FRAMES as usize);
    }

    #[test]
    fn a_packet_of_several_frames_comes_whole() {
        let (umem, mut ends) = ends(true);
        let given = give(&umem, &mut ends, 6);
        let mut frames = Vec::new();
        let part = |n: usize, length, options| descriptor(given[n] + 256, length, options);
        arrive(&ends, &[part(0, 60, 0), part(1, 1792, CONTINUES), part(2, 1792, CONTINUES)]);
        assert_eq!((ends.receive(&umem, 64, &mut frames), frames.len()), (1, 1));
        arrive(&ends, &[part(3, 10, 0), part(4, 60, 0)]);
        assert_eq!((ends.receive(&umem, 64, &mut frames), frames.len()), (2, 5));
        let continues: Vec<_> = frames.iter().map(|frame| (frame.len(), frame.continues())).collect();
        assert_eq!(continues, [(60, false), (1792, true), (1792, true), (10, false), (60, false)]);

        // Sending is all or nothing as well: three of the ring's eight entries are left, then all.
        let mut others = Vec::new();
        umem.take(5, &mut others);
        others.iter_mut().for_each(|frame| frame.grow_tail(60).unwrap().fill(1));
        ends.send(&mut others);
        assert_eq!((ends.send(&mut frames), frames.len()), (1, 4));
        drain(ends.sent.as_ref().unwrap());
        assert_eq!((ends.send(&mut frames), frames.len()), (2, 0));
        let options: Vec<_> =
            drain(ends.sent.as_ref().unwrap()).iter().map(|sent| (sent.length, sent.options)).collect();
        assert_eq!(options, [(1792, CONTINUES), (1792, CONTINUES), (10, 0), (60, 0)]);
    }

    #[test]
    fn a_packet_with_a_part_that_is_refused_is_refused_whole() {
        let (umem, mut ends) = ends(true);
        let mut frames = Vec::new();
        let free = umem.free();
        for spoil in 0..3 {
            let given = give(&umem, &mut ends, 4);
            let mut parts: Vec<_> =
                (0..3).map(|n| descriptor(given[n] + 256, 100, if n < 2 { CONTINUES } else { 0 })).collect();
            parts[spoil].length = 1793;
            parts.push(descriptor(given[3] + 256, 60, 0));
            arrive(&ends, &parts);
            assert_eq!((ends.receive(&umem, 64, &mut frames), frames.len()), (1, 1), "{spoil}");
            frames.clear();
            assert_eq!(umem.free(), free);
        }
        assert_eq!((ends.counts.refused, ends.counts.received), (3, 3));
        // A packet without end.
        for _ in 0..FRAMES {
            let given = give(&umem, &mut ends, 8);
            let endless: Vec<_> =
                given.iter().map(|address| descriptor(address + 256, 1, CONTINUES)).collect();
            arrive(&ends, &endless);
            assert_eq!(ends.receive(&umem, 64, &mut frames), 0);
            if umem.free() < 8 {
                break;
            }
        }
        assert!(ends.begun.len() <= MOST_PARTS && frames.is_empty());
    }
}
