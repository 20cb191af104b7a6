//! Tests of every interleaving of the process and the kernel at the four rings, in loom's memory model. The kernel's
//! ends follow the same rules as ours (net/xdp/xsk_queue.h), so our ends stand in for them.
//!
//! Run with `make loom`.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use super::memory::RingMemory;
use super::ring::{Consumer, Descriptor, Entry, Producer};

/// The contents of the frames; loom reports any frame that two threads access at once.
#[derive(Clone)]
struct Frames(Arc<Vec<UnsafeCell<u32>>>);

// SAFETY: loom checks this promise, which is the purpose of the cells.
unsafe impl Send for Frames {}

impl Frames {
    fn new(count: u64) -> Self {
        Self(Arc::new((0..count).map(|_| UnsafeCell::new(0)).collect()))
    }

    fn write(&self, address: u64, value: u32) {
        // SAFETY: as above.
        self.0[usize::try_from(address).expect("few frames")].with_mut(|frame| unsafe { *frame = value });
    }

    fn read(&self, address: u64) -> u32 {
        // SAFETY: as above.
        self.0[usize::try_from(address).expect("few frames")].with(|frame| unsafe { *frame })
    }
}

/// Creates a ring, and returns both of its ends.
fn ring<E: Entry>(entries: u32) -> (Producer<E>, Consumer<E>) {
    let memory = RingMemory::new(entries, E::WORDS);
    (Producer::new(memory.clone()), Consumer::new(memory))
}

fn push<E: Entry>(ring: &mut Producer<E>, entry: E) -> bool {
    if ring.room() == 0 {
        return false;
    }
    ring.set(0, entry);
    ring.publish(1);
    true
}

fn pop<E: Entry>(ring: &mut Consumer<E>) -> Option<E> {
    if ring.available() == 0 {
        return None;
    }
    let entry = ring.get(0);
    ring.release(1);
    Some(entry)
}

#[test]
fn what_is_received_is_whole_in_order_and_nobody_elses() {
    loom::model(|| {
        let frames = Frames::new(2);
        let (mut fill, mut empty) = ring::<u64>(2);
        let (mut full, mut received) = ring::<Descriptor>(2);
        assert!(push(&mut fill, 0) && push(&mut fill, 1));
        let kernel = thread::spawn({
            let frames = frames.clone();
            move || {
                let mut packets = 0;
                for _ in 0..3 {
                    let Some(address) = pop(&mut empty) else { continue };
                    packets += 1;
                    frames.write(address, packets);
                    assert!(push(&mut full, Descriptor { address, length: packets, options: 0 }));
                }
                packets
            }
        });
        let mut seen = 0;
        let mut take = |received: &mut Consumer<Descriptor>| {
            let Some(packet) = pop(received) else { return };
            seen += 1;
            assert_eq!((frames.read(packet.address), packet.length), (seen, seen));
            assert!(push(&mut fill, packet.address));
        };
        take(&mut received);
        let packets = kernel.join().expect("does not panic");
        (0..packets).for_each(|_| take(&mut received));
        assert_eq!(seen, packets);
    });
}

#[test]
fn an_entry_is_not_overwritten_before_it_was_read() {
    loom::model(|| {
        let (mut sent, mut taken) = ring::<Descriptor>(1);
        let kernel = thread::spawn(move || {
            let mut packets = Vec::new();
            for _ in 0..2 {
                packets.extend(pop(&mut taken));
            }
            (packets, taken)
        });
        let mut put = 0;
        for _ in 0..2 {
            let packet = Descriptor { address: u64::from(put), length: put, options: put };
            put += u32::from(push(&mut sent, packet));
        }
        let (mut packets, mut taken) = kernel.join().expect("does not panic");
        packets.extend(pop(&mut taken));
        let wanted: Vec<_> = (0..put)
            .map(|number| Descriptor { address: u64::from(number), length: number, options: number })
            .collect();
        assert_eq!(packets, wanted);
    });
}
