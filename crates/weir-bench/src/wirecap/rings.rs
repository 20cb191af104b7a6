//! Rings without a pool behind them, each with a thread that takes its packets: what engines without WireCAP's pool and groups
//! have, built from what a stock kernel has.

use std::ops::ControlFlow;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weir_lab::Port;
use weir_sys::packet::{PacketRing, RingOptions, Traffic};
use weir_sys::xsk::FrameSize;

use super::pace::Over;
use crate::failure::Failure;
use crate::receive::Bare;

/// Which of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// The kernel copies packets to it: TPACKET_V3, of so many bytes.
    Copying(u32),
    /// As short as that of a NIC: AF_XDP.
    Short,
}

/// What came through one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counts {
    pub(super) received: u64,
    /// By the kernel.
    pub(super) lost: u64,
}

/// Bytes of a copying ring: as many as a pool of 100 chunks has.
pub(super) const BYTES: u32 = 50 << 20;
const BLOCK: u32 = 512 << 10;
const RETIRE_MS: u32 = 10;
/// Frames of a short one.
const FRAMES: u32 = 4096;
/// Frames that are taken before they go back.
const BATCH: u32 = 64;
const SNAP_LEN: u32 = 2048;
/// Between two looks at an empty ring.
const LOOK: Duration = Duration::from_micros(200);
/// Nothing comes so late.
const LAST: Duration = Duration::from_millis(200);

/// A ring that is taken from.
trait Ring: Send {
    /// Has `each` look at some packets, before there is room for others in their place. Returns whether there were any.
    fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<bool, Failure>;

    /// Packets that found no room.
    fn lost(&mut self) -> Result<u64, Failure>;
}

/// Opens one at `port`, and begins to take packets from it; ends when it is over and nothing is left.
pub(super) fn start(
    kind: Kind,
    port: &Port,
    over: &Over,
    mut each: impl FnMut(&[u8]) + Send + 'static,
) -> Result<JoinHandle<Result<Counts, Failure>>, Failure> {
    let mut ring = port.netns.run(|| -> Result<Box<dyn Ring>, Failure> {
        Ok(match kind {
            Kind::Copying(bytes) => Box::new(copying(port.index, bytes)?),
            Kind::Short => Box::new(Bare::open(port.index, [0, 1], FRAMES, FrameSize::FourKib)?),
        })
    })?;
    let over = over.clone();
    Ok(thread::spawn(move || {
        let (mut received, mut last) = (0, Instant::now());
        let mut each = |frame: &[u8]| {
            received += 1;
            each(frame);
        };
        loop {
            if ring.take(&mut each)? {
                last = Instant::now();
            } else if over.is_set() && last.elapsed() > LAST {
                break;
            } else {
                thread::sleep(LOOK);
            }
        }
        Ok(Counts { received, lost: ring.lost()? })
    }))
}

fn copying(interface: u32, bytes: u32) -> Result<PacketRing, Failure> {
    let options = RingOptions {
        interface: Some(interface),
        traffic: Traffic::Received,
        snap_len: SNAP_LEN,
        block_bytes: BLOCK,
        blocks: bytes.div_ceil(BLOCK),
        retire_ms: RETIRE_MS,
    };
    PacketRing::open(&options).map_err(Failure::new)
}

impl Ring for PacketRing {
    fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        let was_ready = self.ready().is_some();
        self.walk(|packet| {
            each(packet.data);
            ControlFlow::Continue(())
        });
        Ok(was_ready)
    }

    fn lost(&mut self) -> Result<u64, Failure> {
        Ok(self.statistics().map_err(Failure::new)?.drops)
    }
}

impl Ring for Bare {
    fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        let mut frames = Vec::new();
        // What the kernel has no room for stays free.
        self.umem.take(self.umem.free(), &mut frames);
        self.socket.refill(&mut frames);
        frames.clear();
        if self.socket.receive(&self.umem, BATCH, &mut frames) == 0 {
            self.socket.wake().map_err(Failure::new)?;
        }
        frames.iter().for_each(|frame| each(frame.bytes()));
        Ok(!frames.is_empty())
    }

    fn lost(&mut self) -> Result<u64, Failure> {
        Ok(Self::lost(self)? + self.socket.counts().refused)
    }
}
