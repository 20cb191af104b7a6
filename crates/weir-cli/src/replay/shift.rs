//! Other addresses in each round.

use weir_traffic::Rewriter;

/// Gives packets other IP addresses in each round.
#[derive(Debug)]
pub(super) struct Shift {
    rewriter: Rewriter,
    link_type: u16,
    distance: u32,
    shifted: Vec<u8>,
}

impl Shift {
    pub(super) fn new(link_type: u16) -> Self {
        Self { rewriter: Rewriter::default(), link_type, distance: 0, shifted: Vec::new() }
    }

    /// Sets how far addresses are from those in the file.
    pub(super) fn to(&mut self, distance: u32) {
        self.distance = distance;
        self.rewriter.shift(distance);
    }

    /// Returns the packet of this round.
    pub(super) fn of<'p>(&'p mut self, packet: &'p [u8]) -> &'p [u8] {
        if self.distance == 0 {
            return packet;
        }
        self.shifted.clear();
        self.shifted.extend_from_slice(packet);
        let _told = self.rewriter.apply(self.link_type, &mut self.shifted);
        &self.shifted
    }
}
