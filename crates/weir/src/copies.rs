//! Copies of packets that outlive their chunks.

use std::sync::Arc;

use crate::chunk::{Chunk, Lane, Packet, Packets};

/// Packets copied out of chunks. The chunks can go back to the pool while something slow, such as a terminal, works on
/// the copies. The memory is kept for more when it is [cleared](Copies::clear).
///
/// ```no_run
/// # fn main() -> Result<(), weir::Error> {
/// # let mut capture = weir::Capture::builder().interface("eth0").open()?;
/// let mut copies = weir::Copies::default();
/// while let weir::Next::Taken(chunk) = capture.try_next()? {
///     copies.add(&chunk);
/// }
/// for packet in copies.packets() {
///     println!("{} bytes", packet.data.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Copies {
    records: Vec<u8>,
    /// Where the records of a queue end, for each run of records of one queue.
    runs: Vec<(usize, Arc<Lane>)>,
    packets: u64,
}

impl Copies {
    /// Adds the packets of a chunk.
    pub fn add(&mut self, chunk: &Chunk) {
        self.records.extend_from_slice(chunk.bytes());
        self.packets += chunk.len() as u64;
        let end = self.records.len();
        match self.runs.last_mut() {
            Some((last, lane)) if Arc::ptr_eq(lane, chunk.lane()) => *last = end,
            _ => self.runs.push((end, Arc::clone(chunk.lane()))),
        }
    }

    /// Returns the number of packets.
    pub fn len(&self) -> u64 {
        self.packets
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Returns the size of the copies in bytes.
    pub fn bytes(&self) -> usize {
        self.records.len()
    }

    /// Iterates over the packets, in the order in which they were added.
    pub fn packets(&self) -> impl Iterator<Item = Packet<'_>> {
        let mut begin = 0;
        self.runs.iter().flat_map(move |(end, lane)| {
            let records = &self.records[begin..*end];
            begin = *end;
            Packets::of(records, lane)
        })
    }

    /// Removes the packets.
    pub fn clear(&mut self) {
        self.records.clear();
        self.runs.clear();
        self.packets = 0;
    }
}

#[cfg(test)]
mod tests {
    use weir_savefile::record::{self, RecordHeader};

    use super::*;

    fn add(copies: &mut Copies, lane: &Arc<Lane>, payloads: &[&[u8]]) {
        for payload in payloads {
            let mut buffer = [0; 256];
            let original_len = u32::try_from(payload.len()).expect("short");
            let header = RecordHeader { original_len, ..RecordHeader::default() };
            let bytes = record::encode(&mut buffer, &header, &[payload]).expect("room");
            copies.records.extend_from_slice(&buffer[..bytes]);
            copies.packets += 1;
        }
        copies.runs.push((copies.records.len(), Arc::clone(lane)));
    }

    #[test]
    fn packets_keep_their_order_and_their_queue() {
        let lanes = [3, 7].map(|queue| Arc::new(Lane::new(0, queue, 1, None)));
        let mut copies = Copies::default();
        for _ in 0..2 {
            add(&mut copies, &lanes[0], &[b"a", b"bb"]);
            add(&mut copies, &lanes[1], &[b"ccc"]);
            let found: Vec<_> = copies.packets().map(|packet| (packet.queue, packet.data.len())).collect();
            assert_eq!(found, [(3, 1), (3, 2), (7, 3)]);
            assert_eq!((copies.len(), copies.is_empty()), (3, false));
            copies.clear();
            assert_eq!((copies.len(), copies.bytes(), copies.packets().count()), (0, 0, 0));
        }
    }
}
