//! What is changed in packets before they are sent (`weir replay`) or copied (`weir read`).

mod anonymise;
mod kept;

use std::path::Path;

use clap::Args;
use weir::send::Destination;
use weir_packet::link_type::ETHERNET;
use weir_traffic::{Framing, Left, NetworkMap, PortMap, Rewrite, Rewriter, Tag, cut};

use self::anonymise::{CryptoPan, KeyArg};
pub(crate) use self::kept::Kept;
use crate::failure::Failure;
use crate::sending::mac;
use crate::style;

#[derive(Debug, Args)]
#[command(next_help_heading = "Rewriting")]
pub(crate) struct RewritingArgs {
    /// Set the MAC address that packets go to.
    ///
    /// Packets without an Ethernet header, from captures on `any`, tunnels, loopback interfaces, 802.11 or PPP, get one. Packets to
    /// multicast groups or to everybody keep, or get, the address of the group.
    #[arg(hide_short_help = true, long, value_name = "MAC", value_parser = mac)]
    dst_mac: Option<[u8; 6]>,

    /// Set the MAC address that packets come from.
    ///
    /// Without it, a packet that gets an Ethernet header is from the address that its capture has, or else
    /// from that of the interface (weir replay), or from 00:00:00:00:00:00 (weir read).
    #[arg(hide_short_help = true, long, value_name = "MAC", value_parser = mac)]
    src_mac: Option<[u8; 6]>,

    /// Replace MAC address A by B; may be given several times.
    #[arg(hide_short_help = true, long, value_name = "A=B", value_parser = macs)]
    map_mac: Vec<([u8; 6], [u8; 6])>,

    /// Move a network: 10.1.0.0/16=192.168.0.0/16.
    ///
    /// An address of the first network gets one of the second: it keeps the bits that the new prefix leaves open. If the
    /// second is smaller, several hosts can become one, which weir says. Of several options, the first whose network has
    /// the address counts. Addresses are replaced in IP headers (also behind VLAN tags, MPLS labels and PPPoE), the routes
    /// and times in their options, ARP, redirects, router and neighbour discovery, IGMP and MLD, and the packets that ICMP
    /// quotes. They stay in tunnels (GRE, VXLAN and others) and payloads (DNS, DHCP and others), and a note says in how
    /// many packets, as far as ports and protocols tell. Checksums change accordingly: wrong ones stay wrong, and those
    /// that the sender left to its network card are filled in. The MAC address of a multicast group follows its group, unless --map-mac says otherwise. What cannot be
    /// replaced is counted.
    #[arg(long, value_name = "NET=NET")]
    map_ip: Vec<NetworkMap>,

    /// Replace port A of TCP and UDP by B: 80=8080; may be given several times.
    ///
    /// A may be a range: all of its ports become one (8000-8100=80), or each keeps its place in another
    /// range (8000-8100=9000-9100) or is moved (1-1023=+10000, 8080-8090=-8000). Of several options, the
    /// first that has the port counts.
    #[arg(hide_short_help = true, long, value_name = "A=B")]
    map_port: Vec<PortMap>,

    /// Set the VLAN ID, or two, or remove all tags: 7; 7,8; none.
    ///
    /// The outer tag gets the ID and keeps its priority; a packet without a tag gets one. Two IDs take the
    /// place of all tags, the outer one first.
    #[arg(hide_short_help = true, long, value_name = "ID")]
    vlan: Option<Tag>,

    /// Cut TCP super-frames that are longer than the MTU into segments.
    ///
    /// Captures have super-frames where network cards cut or join segments (TSO, GRO). Segments are IP packets of at most
    /// MTU bytes; by default, as many as the interface sends (weir replay), or 1500 (weir read). Lengths and checksums that
    /// the sender left to its network card are filled in, here and with all options for rewriting.
    #[arg(hide_short_help = true, long, value_name = "MTU", num_args = 0..=1, require_equals = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(68..))]
    #[expect(clippy::option_option, reason = "the option may have no value")]
    segment: Option<Option<u16>>,

    /// Replace all addresses; KEY: passphrase or @FILE.
    ///
    /// The new addresses depend on KEY. It is a passphrase, which other users of this machine can see (`ps`), or @FILE
    /// with 32 bytes or 64 hexadecimal digits. The same key gives the same addresses in all files. Addresses that begin
    /// with the same bits do so afterwards, too (Crypto-PAn). What programs know stays: multicast, broadcast, loopback
    /// and unspecified addresses, the prefixes of link-local ones, and the first bits of addresses that begin as these
    /// do (of IPv4 at least three, so that 10.0.0.1 becomes one of 8.0.0.0/5). MAC addresses keep the bits for groups
    /// and local ones. --map-ip and --map-mac come first. Addresses are replaced where --map-ip replaces them; other
    /// options of IP and TCP are overwritten, and so are headers that are cut or not understood. A copy has no
    /// interface names, comments, resolved names, or secrets. Payloads, tunnels (GRE, VXLAN and others) and packets
    /// that are neither IP nor ARP stay, with the addresses and names that they have, unless there is --zero-payload; notes
    /// say how many there are.
    #[arg(long, alias = "anonymize", value_name = "KEY", value_parser = KeyArg::parse)]
    anonymise: Option<KeyArg>,

    /// Overwrite payloads with zeros.
    ///
    /// Lengths stay, and checksums fit; those of datagrams in several fragments cannot, which is counted. Packets of other
    /// protocols, also tunnels and routing protocols, have zeros behind the IP header, and what is neither IP nor ARP behind
    /// the header of the link layer.
    #[arg(long)]
    zero_payload: bool,
}

/// Parses `--map-mac`.
fn macs(text: &str) -> Result<([u8; 6], [u8; 6]), String> {
    const ALLOWED: &str = "allowed: two MAC addresses, such as 02:00:00:00:00:01=02:00:00:00:00:02";
    let (from, to) = text.split_once('=').ok_or_else(|| format!("no `=`; {ALLOWED}"))?;
    let mac = |text: &str| mac(text).map_err(|_| format!("`{text}` is no MAC address; {ALLOWED}"));
    Ok((mac(from)?, mac(to)?))
}

impl RewritingArgs {
    /// Whether packets without an Ethernet header get one.
    pub(crate) fn reframes(&self) -> bool {
        self.dst_mac.is_some()
    }

    /// Returns what changes packets on their way to an interface.
    pub(crate) fn editor(&self, destination: &Destination) -> Result<Editor, Failure> {
        let ethernet = [
            ("--dst-mac", self.dst_mac.is_some()),
            ("--src-mac", self.src_mac.is_some()),
            ("--map-mac", !self.map_mac.is_empty()),
            ("--vlan", self.vlan.is_some()),
        ];
        if destination.link_type != 1
            && let Some((option, _)) = ethernet.iter().find(|(_, given)| *given)
        {
            let name = style::visible(&destination.name);
            let why = format!("cannot use {option}: packets on `{name}` have no Ethernet header");
            return Err(Failure::usage(why).hint(format!("leave out {option}")));
        }
        Ok(self.editor_from(destination.address.unwrap_or_default(), destination.mtu as usize))
    }

    /// Returns what changes packets for a copy; `None`: they stay as they are.
    pub(crate) fn copier(&self) -> Option<Editor> {
        const USUAL_MTU: usize = 1500;
        self.is_on().then(|| self.editor_from([0; 6], USUAL_MTU))
    }

    /// Says what the rules do that their author may not have meant.
    pub(crate) fn say_odd(&self) {
        if self.map_ip.iter().any(NetworkMap::merges) {
            let note = style::stderr().cyan("note");
            style::say(format_args!(
                "{note}: --map-ip moves a network into a smaller one: several hosts can get the same address"
            ));
        }
    }

    /// Returns the file that the key of `--anonymise` was read from.
    pub(crate) fn key_file(&self) -> Option<&Path> {
        self.anonymise.as_ref()?.file()
    }

    /// Whether anything is changed.
    pub(crate) fn is_on(&self) -> bool {
        self.is_framed()
            || self.segment.is_some()
            || self.anonymise.is_some()
            || self.zero_payload
            || self.rules() != Rewrite::default()
    }

    fn is_framed(&self) -> bool {
        self.dst_mac.is_some() || self.src_mac.is_some()
    }

    fn rules(&self) -> Rewrite {
        Rewrite {
            macs: self.map_mac.clone(),
            networks: self.map_ip.clone(),
            ports: self.map_port.clone(),
            tag: self.vlan,
            shift: 0,
        }
    }

    fn rewriter(&self) -> Rewriter {
        let rewriter = Rewriter::new(self.rules()).zero_payload(self.zero_payload);
        match &self.anonymise {
            Some(key) => rewriter.pseudonyms(Box::new(CryptoPan::new(key.key()))),
            None => rewriter,
        }
    }

    /// `sender`: who sends packets that do not say; `mtu`: that of `--segment` by default.
    fn editor_from(&self, sender: [u8; 6], mtu: usize) -> Editor {
        let framing = Framing { destination: self.dst_mac, source: self.src_mac, sender };
        Editor {
            framing: self.is_framed().then_some(framing),
            // Also without rules: what the sender left to its network card is filled in.
            rewriter: self.is_on().then(|| self.rewriter()),
            anonymous: self.anonymise.is_some(),
            longest: self.segment.map(|given| given.map_or(mtu, usize::from)),
            edited: Vec::new(),
        }
    }
}

/// Changes packets.
#[derive(Debug)]
pub(crate) struct Editor {
    /// `None`: Ethernet headers, or the lack of them, stay.
    framing: Option<Framing>,
    /// `None`: packets stay as they are.
    rewriter: Option<Rewriter>,
    /// The longest IP packet; longer ones are cut if possible.
    longest: Option<usize>,
    edited: Vec<u8>,
    /// No address is to stay.
    anonymous: bool,
}

impl Editor {
    /// Whether nothing is to tell who has sent packets.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.anonymous
    }

    /// Returns the link type of packets once they are changed, if they can have an Ethernet header and are to get one.
    pub(crate) fn link_type(&self, link_type: u16) -> u16 {
        let frames = self.framing.is_some_and(|framing| framing.destination.is_some());
        if frames && Framing::can_be(link_type) { 1 } else { link_type }
    }

    /// Whether a packet without an Ethernet header can have one.
    pub(crate) fn frames(&self, link_type: u16, packet: &[u8]) -> bool {
        self.framing.is_some_and(|framing| framing.apply(link_type, &mut packet.to_vec()) != link_type)
    }

    /// Returns the most bytes that a packet grows by: an Ethernet header and two VLAN tags.
    pub(crate) fn growth(&self) -> u32 {
        14 * u32::from(self.framing.is_some()) + 8 * u32::from(self.rewriter.is_some())
    }

    /// Begins with the first packet again.
    pub(crate) fn restart(&mut self) {
        self.rewriter.iter_mut().for_each(Rewriter::restart);
    }

    /// Changes a packet, and gives it, or the segments that it is cut into, to `take`, with its link type and what of it had
    /// to stay.
    pub(crate) fn edit<E>(
        &mut self,
        link_type: u16,
        packet: &[u8],
        mut take: impl FnMut(u16, &[u8], Left) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { framing, rewriter, longest, edited, .. } = self;
        let (mut link_type, mut packet, mut left) = (link_type, packet, Left::default());
        if framing.is_some() || rewriter.is_some() {
            edited.clear();
            edited.extend_from_slice(packet);
            if let Some(framing) = framing {
                link_type = framing.apply(link_type, edited);
            }
            if let Some(rewriter) = rewriter {
                left = rewriter.apply(link_type, edited);
            }
            left.link |= framing.is_some() && link_type != ETHERNET;
            packet = edited;
        }
        let mut take = |packet: &[u8]| take(link_type, packet, left);
        if let Some(longest) = *longest
            && cut(link_type, packet, longest, &mut take)?.is_some()
        {
            return Ok(());
        }
        take(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_as_text() {
        assert_eq!(macs("02:00:00:00:00:01=ff-ff-ff-ff-ff-ff"), Ok(([2, 0, 0, 0, 0, 1], [0xff; 6])));
        for (text, why) in [("02:00:00:00:00:01", "no `=`"), ("a=02:00:00:00:00:01", "`a` is no MAC address")]
        {
            let error = macs(text).expect_err(text);
            assert!(error.contains(why) && error.contains("allowed: "), "{error}");
        }
    }
}
