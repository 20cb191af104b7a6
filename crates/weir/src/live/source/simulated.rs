//! Queues that a test fills itself.

use std::sync::Arc;

use weir_ring::{Consumer, Gauge, Part, Pool, Producer, Shape};
use weir_savefile::record::{self, RecordHeader};

use super::Queue;
use super::outlet::Outlet;
use crate::Error;
use crate::chunk::Lane;
use crate::live::wait::Ready;

/// A queue filled by a [`Producer`] of the test.
#[derive(Debug)]
struct Simulated(Consumer);

impl Queue for Simulated {
    fn ready(&mut self) -> Result<Ready, Error> {
        let (bytes, closed) = self.0.ready();
        Ok(Ready { bytes, closed })
    }

    fn take(&mut self) -> Result<Option<Part>, Error> {
        self.0.take().map_err(|source| Error::Corrupt { name: "simulated".into(), source })
    }

    fn wake_after(&mut self, bytes: u32) {
        self.0.wake_after(bytes);
    }

    fn wake_never(&mut self) {
        self.0.wake_never();
    }

    fn gauge(&self) -> Gauge {
        self.0.gauge()
    }
}

/// Makes queues of `chunks` chunks of 4 KiB each, with their writers.
pub(crate) fn queues(queues: u32, chunks: u32) -> (Vec<Producer>, Vec<Outlet>) {
    let shape = Shape::new(queues, chunks, 4096, 1514).expect("a pool can have these measures");
    let (producers, consumers) = Pool::private(shape).expect("there is memory");
    let outlet = |(queue, consumer)| {
        Outlet::new(Box::new(Simulated(consumer)), Arc::new(Lane::new(0, queue, 1, None)))
    };
    (producers, (0..).zip(consumers).map(outlet).collect())
}

/// Writes a packet and returns true, if there is room.
pub(crate) fn write(producer: &mut Producer, timestamp: u64, packet: &[u8]) -> bool {
    let Some(room) = producer.room() else { return false };
    let original_len = u32::try_from(packet.len()).expect("a short packet");
    let header = RecordHeader { original_len, timestamp, ..RecordHeader::default() };
    let bytes = record::encode(room, &header, &[packet]).expect("there is room for the largest");
    producer.commit(u32::try_from(bytes).expect("a small record"));
    true
}
