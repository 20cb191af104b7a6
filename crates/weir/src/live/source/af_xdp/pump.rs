//! The thread that copies what a socket receives into the pool, and returns the frames.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use weir_ring::{Consumer, Producer, Shape};
use weir_sys::CallError;
use weir_sys::thread::spawn_bare;
use weir_sys::xsk::{Frame, Umem, XskSocket};

use super::Shared;
use super::arrival::{Arrival, RecordEncoder};
use crate::live::source::losses::Losses;
use crate::live::source::pumped::{self, Finished, Pump, STALL};
use crate::live::source::signals::Signals;

/// Frames taken at once: few, so that they return to the kernel while they are in the caches.
const BATCH: u32 = 64;
/// How long to wait after a stream of packets before checking again. A wake-up for the next packet would cost both
/// sides more, and the frames last longer than that.
const PAUSE: Duration = Duration::from_micros(100);
/// Number of packets without a pause that make a stream.
const STREAM: u32 = 256;

/// The pump: nothing else touches the socket's rings or the producer of its queue.
pub(super) struct SocketPump {
    pub(super) socket: XskSocket,
    pub(super) umem: Umem,
    pub(super) producer: Producer,
    pub(super) encoder: RecordEncoder,
    /// Whether each packet gets a timestamp.
    pub(super) stamped: bool,
    /// Whether it never sleeps, and drives the queue itself.
    pub(super) active: bool,
    pub(super) losses: Losses,
    pub(super) shared: Arc<Shared>,
    /// Dimensions of the pool.
    pub(super) shape: Shape,
    pub(super) counters: PumpCounters,
}

/// Counters of the pump.
#[derive(Default)]
pub(super) struct PumpCounters {
    /// Packets written to the pool, and their original bytes.
    captured: u64,
    bytes: u64,
    /// Packets that did not fit into a record, or differ from what the program saw.
    errors: u64,
    /// Bytes of records.
    written: u64,
    /// Frames taken out of the receive ring, and how many of them are processed.
    taken: u64,
    done: u64,
    /// Packets since the ring was last empty.
    streak: u32,
}

/// A running pump.
struct Pumping<'u> {
    pump: SocketPump,
    umem: &'u Umem,
    /// Frames taken but not copied yet.
    frames: Vec<Frame<'u>>,
    /// Empty frames not returned to the kernel yet. The kernel shows packets before it shows which frames it took for
    /// them, so the fill ring may still look full when they are copied.
    spare: Vec<Frame<'u>>,
}

impl Pump for Pumping<'_> {
    fn signals(&self) -> &Signals {
        &self.pump.shared.signals
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.pump.socket.as_fd()
    }

    fn health(&self) -> Result<(), CallError> {
        self.pump.socket.health()
    }

    fn step(&mut self) -> Result<(), CallError> {
        let Self { pump, umem, frames, spare } = self;
        if frames.is_empty() {
            pump.socket.refill(spare);
            pump.receive(umem, frames)?;
        }
        if frames.is_empty() && pump.active {
            if std::mem::take(&mut pump.counters.streak) > 0 {
                pump.read_losses()?;
            }
            // This call drives the queue: the card's interrupts are off as long as somebody does.
            return pumped::unless_gone(pump.socket.wake());
        }
        if frames.is_empty() {
            if std::mem::take(&mut pump.counters.streak) >= STREAM {
                pump.socket.wake()?;
                self.nap(PAUSE);
                return Ok(());
            }
            pump.read_losses()?;
            if spare.is_empty() {
                return self.sleep();
            }
            // These may be all the frames there are to receive into, and then nothing would end the sleep.
            self.nap(PAUSE);
            return Ok(());
        }
        if !pump.copy(frames, spare) {
            pump.read_losses()?;
            self.nap(STALL);
        }
        Ok(())
    }

    /// Copies what is left, whatever fails; nothing more arrives. Each packet without room is an error.
    fn finish(&mut self, rest: &mut Option<Consumer>) -> Result<(), CallError> {
        let Self { pump, umem, frames, spare } = self;
        let mut result = pump.read_losses();
        let mut room = true;
        loop {
            if frames.is_empty() {
                let received = pump.receive(umem, frames);
                result = result.and(received);
            }
            if frames.is_empty() {
                pump.show_missing();
                return result;
            }
            if !room {
                pump.counters.errors += frames.drain(..).filter(|frame| !frame.continues()).count() as u64;
            } else if !pump.copy(frames, spare) {
                // A record takes less space than its frames.
                match pumped::last_pool(pump.shape, umem.bytes()) {
                    Ok((producer, consumer)) => {
                        pump.producer = producer;
                        *rest = Some(consumer);
                    }
                    Err(error) => {
                        result = result.and(Err(error));
                        room = false;
                    }
                }
            }
        }
    }
}

impl SocketPump {
    /// Starts the thread.
    pub(super) fn start(self) -> io::Result<JoinHandle<Finished>> {
        spawn_bare("weir-af_xdp", move || {
            let umem = self.umem.clone();
            let (frames, mut spare) = (Vec::with_capacity(BATCH as usize), Vec::new());
            umem.take(usize::MAX, &mut spare);
            pumped::run(Pumping { pump: self, umem: &umem, frames, spare })
        })
    }

    /// Takes a batch out of the receive ring.
    fn receive<'u>(&mut self, umem: &'u Umem, frames: &mut Vec<Frame<'u>>) -> Result<(), CallError> {
        // If the kernel has no frame left, it has been dropping packets that belong after all those in the ring.
        let starved = self.socket.starved();
        let packets = self.socket.receive(umem, BATCH, frames);
        self.counters.taken += frames.len() as u64;
        self.counters.streak =
            self.counters.streak.saturating_add(u32::try_from(packets).unwrap_or(u32::MAX));
        if starved { self.read_losses() } else { Ok(()) }
    }

    /// Copies as many of `frames` as possible, and returns them to the kernel or, until later, to `spare`. Returns
    /// whether all were copied.
    fn copy<'u>(&mut self, frames: &mut Vec<Frame<'u>>, spare: &mut Vec<Frame<'u>>) -> bool {
        let mut done = 0;
        while done < frames.len() {
            let length = frames[done..].iter().take_while(|frame| frame.continues()).count() + 1;
            let packet = &mut frames[done..done + length];
            let Some(room) = self.producer.room() else { break };
            let lost = self.losses.to_tell(self.counters.done);
            let arrival = Arrival::take(&mut packet[0], self.stamped);
            // A packet that differs from the one that arrived is an error, and not delivered.
            let whole = arrival.is_whole(packet);
            match whole.then(|| self.encoder.encode(room, packet, arrival, lost)).flatten() {
                Some((bytes, original_len)) => {
                    self.counters.captured += 1;
                    self.counters.bytes += u64::from(original_len);
                    self.counters.written += bytes as u64;
                    self.shared.counts.count(self.counters.captured, self.counters.bytes);
                    self.producer.commit(u32::try_from(bytes).expect("a record is no longer than its chunk"));
                    if lost.is_some() {
                        self.losses.told(self.counters.done);
                    }
                }
                None => self.counters.errors += 1,
            }
            self.counters.done += length as u64;
            done += length;
        }
        spare.extend(frames.drain(..done));
        self.socket.refill(spare);
        self.show_missing();
        self.shared.signals.ring_if_due(self.counters.written);
        frames.is_empty()
    }

    /// Reads the kernel's drop count. The drops belong after all packets that were taken or are in the ring.
    fn read_losses(&mut self) -> Result<(), CallError> {
        let behind = self.counters.taken + u64::from(self.socket.waiting());
        let loss = self.socket.loss()?;
        self.losses.read(loss.dropped + loss.ring_full, None, behind);
        self.show_missing();
        Ok(())
    }

    fn show_missing(&self) {
        let errors = self.counters.errors + self.socket.counts().refused;
        self.shared.counts.count_missing(self.losses.total(), errors);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use weir_lab::programs::xsk::Redirect;
    use weir_lab::{Generator, Network, Traffic, Veth, root_test};
    use weir_sys::bpf::{XdpHook, XdpLink};
    use weir_sys::xsk::{FrameSize, UmemOptions, XskOptions};

    use super::*;
    use crate::live::source::pumped::{Counts, Pumped, private_pool};
    use crate::live::source::signals::Order;

    #[root_test]
    fn root_frames_without_room_in_the_ring_wait_and_no_packet_comes_twice() {
        // Three of four frames never find room in the fill ring.
        const FRAMES: u32 = 256;
        const RING: u32 = 64;
        // This many are in the ring even while those of the previous burst are returned.
        const BURST: u32 = RING / 2;
        let network = Network::new(Veth::default()).unwrap();
        let (pair, traffic) = (network.pair(), Traffic::new(60).unwrap().between(network.pair()));
        let mut generator = Generator::new(pair, &traffic).unwrap();
        network.rx().run(|| {
            let options = UmemOptions {
                frames: FRAMES,
                frame_size: FrameSize::TwoKib,
                zero_copy: false,
                segments: false,
            };
            let umem = Umem::new(options).unwrap();
            let redirect = Redirect::load(pair.rx.queues, false).unwrap();
            let rings = XskOptions { receive: RING, send: 0 };
            let socket = XskSocket::bind(&umem, pair.rx.index, generator.queue(), rings).unwrap();
            redirect.insert(generator.queue(), &socket).unwrap();
            let _link = XdpLink::attach(redirect.program(), pair.rx.index, XdpHook::Native).unwrap();
            let shape = Shape::new(1, 8, 1 << 20, 2048).unwrap();
            let (producer, _consumer) = private_pool(shape).unwrap();
            let signals = Arc::new(Signals::new().unwrap());
            let shared = Arc::new(Shared { counts: Counts::default(), signals });
            let pump = SocketPump {
                losses: Losses::new(FRAMES),
                socket,
                umem,
                producer,
                encoder: RecordEncoder { interface: 0, snap_len: 2048, directions: false },
                stamped: false,
                active: false,
                shared: Arc::clone(&shared),
                shape,
                counters: PumpCounters::default(),
            };
            let pump = pump.start().unwrap();
            let (mut sent, start) = (0, Instant::now());
            for _ in 0..8 * FRAMES / BURST {
                sent += generator.send(BURST.into()).unwrap().accepted;
                while shared.counts.pumped().captured < sent {
                    assert!(
                        start.elapsed() < Duration::from_secs(30),
                        "{sent}: {:?}",
                        shared.counts.pumped()
                    );
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            // The pump ends when it has taken everything: an extra packet would be counted.
            shared.signals.give(Order::Leave);
            assert!(pump.join().unwrap().result.is_ok());
            let Pumped { captured, lost, errors, .. } = shared.counts.pumped();
            assert_eq!((captured, lost, errors), (sent, 0, 0));
            assert_eq!(sent, u64::from(8 * FRAMES));
        });
    }
}
