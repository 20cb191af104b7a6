//! Packets with their times.

/// Packets to be sent together, with their times.
#[derive(Clone, Debug, Default)]
pub struct SendQueue {
    bytes: Vec<u8>,
    /// The time of each packet, and where it ends in `bytes`.
    packets: Vec<(Option<u64>, usize)>,
}

impl SendQueue {
    /// Returns an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a packet with its time in nanoseconds, from any origin.
    pub fn push(&mut self, time: u64, packet: &[u8]) {
        self.add(Some(time), packet);
    }

    /// Adds a packet without a time.
    pub fn push_timeless(&mut self, packet: &[u8]) {
        self.add(None, packet);
    }

    fn add(&mut self, time: Option<u64>, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
        self.packets.push((time, self.bytes.len()));
    }

    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Returns whether there are no packets.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns the bytes of all packets.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the packets, each with its time.
    pub fn iter(&self) -> impl Iterator<Item = (Option<u64>, &[u8])> {
        let mut begin = 0;
        self.packets
            .iter()
            .map(move |&(time, end)| (time, &self.bytes[std::mem::replace(&mut begin, end)..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out() {
        let mut queue = SendQueue::new();
        assert!(queue.is_empty());
        queue.push(7, b"one");
        queue.push_timeless(b"");
        queue.push(0, b"three");
        let all: Vec<_> = queue.iter().collect();
        assert_eq!(all, [(Some(7), &b"one"[..]), (None, b""), (Some(0), b"three")]);
        assert_eq!((queue.len(), queue.bytes()), (3, 8));
    }
}
