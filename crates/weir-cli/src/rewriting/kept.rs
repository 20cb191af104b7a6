//! What could not be changed in packets, and what was cut.

use weir_traffic::Left;

use crate::{style, units};

/// Numbers of packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    /// With headers that are cut, malformed or authenticated, so that not everything is right.
    pub(crate) headers: u64,
    /// With ports that stay, as the fragment with the checksum came before.
    pub(crate) ports: u64,
    /// To a single host with the MAC address of a multicast group.
    pub(crate) group_macs: u64,
    /// Neither IP nor ARP, and not anonymised.
    pub(crate) foreign: u64,
    /// Anonymised, but for their payloads.
    pub(crate) payloads: u64,
    /// Of which only the length is left.
    pub(crate) emptied: u64,
    /// Packets that were cut, and the segments that were made of them.
    pub(crate) cut: u64,
    pub(crate) segments: u64,
    /// The packet before this one was cut.
    inside: bool,
}

impl Kept {
    /// Counts a packet or segment. `later`: it is not the first of its packet.
    pub(crate) fn add(&mut self, left: Left, later: bool) {
        if later {
            let first = u64::from(!std::mem::replace(&mut self.inside, true));
            self.cut += first;
            self.segments += 1 + first;
            return;
        }
        self.inside = false;
        self.headers += u64::from(left.headers);
        self.ports += u64::from(left.ports);
        self.group_macs += u64::from(left.group);
        self.foreign += u64::from(left.foreign);
        self.payloads += u64::from(left.payload);
        self.emptied += u64::from(left.emptied);
    }

    /// Returns a line for each kind of packet that there is.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut tell = |packets: u64, what: &str| {
            if packets > 0 {
                lines.push(format!("{} {what}", units::packets(packets)));
            }
        };
        tell(
            self.headers,
            "with headers cut, malformed, authenticated or in several fragments: not everything is right",
        );
        tell(self.ports, "with ports that stay: the fragment with their checksum came first");
        tell(self.group_macs, "to a single host with the MAC address of a group: try --map-mac");
        tell(
            self.payloads,
            "with payloads or tunnels, in which addresses and names stay (DNS, DHCP, HTTP and others): try --zero-payload",
        );
        tell(
            self.foreign,
            "neither IP nor ARP: addresses behind their first header stay; try --zero-payload",
        );
        tell(self.emptied, "overwritten: their link layer is not understood");
        tell(self.cut, &format!("cut into {} segments", units::grouped(self.segments)));
        lines
    }

    /// Says so.
    pub(crate) fn say(&self) {
        let note = style::stderr().cyan("note");
        self.lines().iter().for_each(|line| style::say(format_args!("{note}: {line}")));
    }
}
