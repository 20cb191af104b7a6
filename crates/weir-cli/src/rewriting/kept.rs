//! What could not be changed in packets, and what was cut.

use std::collections::BTreeMap;

use weir_traffic::{Carried, Left};

use crate::{style, units};

/// Numbers of packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    /// With headers that are cut, malformed or authenticated, so that not everything is right.
    pub(crate) headers: u64,
    /// With ports that stay, as the fragment with the checksum came before.
    pub(crate) ports: u64,
    /// To a single host with the MAC address of a multicast group.
    pub(crate) group_macs: u64,
    /// With addresses or tags of the link layer that stay, as it is not Ethernet.
    pub(crate) links: u64,
    /// Neither IP nor ARP, so that addresses stay.
    pub(crate) foreign: u64,
    /// With another packet inside, by the name of the tunnel.
    pub(crate) tunnels: Named,
    /// With a message that has addresses, by the name of the protocol.
    pub(crate) messages: Named,
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

/// Numbers of packets by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named(BTreeMap<&'static str, u64>);

impl Named {
    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    fn names(&self) -> String {
        self.0.keys().copied().collect::<Vec<_>>().join(", ")
    }
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
        self.links += u64::from(left.link);
        self.foreign += u64::from(left.foreign);
        match left.carried {
            Some(Carried::Packet(name)) => *self.tunnels.0.entry(name).or_default() += 1,
            Some(Carried::Message(name)) => *self.messages.0.entry(name).or_default() += 1,
            None => {}
        }
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
            self.links,
            "without an Ethernet header: --map-mac, --src-mac and --vlan change none of it; --dst-mac gives one to packets of IP",
        );
        tell(
            self.tunnels.total(),
            &format!(
                "with another packet inside ({}), in which addresses stay: --zero-payload overwrites it",
                self.tunnels.names()
            ),
        );
        tell(
            self.messages.total(),
            &format!(
                "of protocols that tell addresses ({}): those in payloads stay; --zero-payload overwrites them",
                self.messages.names()
            ),
        );
        tell(
            self.payloads,
            "with payloads, in which addresses and names stay (DNS, DHCP, HTTP and others): try --zero-payload",
        );
        tell(
            self.foreign,
            "neither IP nor ARP, as far as weir can see: addresses in them stay; try --zero-payload",
        );
        tell(
            self.emptied,
            "overwritten: their link layer is not understood, or has addresses that are not replaced",
        );
        tell(self.cut, &format!("cut into {} segments", units::grouped(self.segments)));
        lines
    }

    /// Says so.
    pub(crate) fn say(&self) {
        let note = style::stderr().cyan("note");
        self.lines().iter().for_each(|line| style::say(format_args!("{note}: {line}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_named() {
        let mut kept = Kept::default();
        for carried in [
            Carried::Packet("VXLAN"),
            Carried::Packet("GRE"),
            Carried::Packet("VXLAN"),
            Carried::Message("DNS"),
        ] {
            kept.add(Left { carried: Some(carried), ..Left::default() }, false);
        }
        let lines = kept.lines();
        assert!(lines[0].starts_with("3 packets with another packet inside (GRE, VXLAN), "), "{lines:?}");
        assert!(lines[1].starts_with("1 packet of protocols that tell addresses (DNS): "), "{lines:?}");
        assert_eq!(lines.len(), 2);
    }
}
