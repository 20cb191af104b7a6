//! Reports what a pcap file cannot store.

use weir::Packet;

use super::note;

/// What the input contained and a pcap file cannot store.
#[derive(Debug, Default)]
pub(super) struct Unheld {
    pub(super) names: bool,
    pub(super) directions: bool,
    pub(super) losses: bool,
    pub(super) comments: bool,
    pub(super) notes: bool,
    pub(super) statistics: bool,
    pub(super) blocks: bool,
    pub(super) sockets: bool,
}

impl Unheld {
    pub(super) fn note(&mut self, packet: &Packet<'_>) {
        self.directions |= packet.direction.is_some();
        self.losses |= packet.lost_before > 0;
        self.comments |= packet.comment.is_some();
        self.notes |= !packet.notes.is_empty() && packet.comment.is_none();
    }

    pub(super) fn say(&self) {
        let table = [
            (self.names, "interface names"),
            (self.directions, "directions"),
            (self.losses, "losses"),
            (self.comments, "comments"),
            (self.notes, "other packet options"),
            (self.statistics, "statistics"),
            (self.blocks, "names and secrets"),
            (self.sockets, "owners"),
        ];
        let missing: Vec<&str> = table.iter().filter(|(there, _)| *there).map(|(_, what)| *what).collect();
        if !missing.is_empty() {
            note(format_args!("pcap cannot store {}; pcapng can", missing.join(", ")));
        }
    }
}
