//! What the programs of statistics find in a packet (`weir-bpf/bpf/stat/key.h`, `spread.h`), for packets of files.

use weir_packet::{link, link_type};

use super::{Bucket, Key, KeyField};

/// Returns the key of a packet with link type `link` (of capture files): those of these fields that it has.
pub fn key_of(fields: &[KeyField], link: u16, packet: &[u8]) -> Key {
    let mut key = Key::default();
    let asked = |field| fields.contains(&field);
    if asked(KeyField::Vlan) && link == link_type::ETHERNET {
        key.vlan = link::outermost_tag(link, packet).map(|tag| tag.id());
    }
    if fields == [KeyField::Vlan] {
        return key;
    }
    let found = link::outermost_ip(link, packet).and_then(|outer| outer.ip(packet));
    let Some((ip, packet)) = found else { return key };
    let (source, destination) = (asked(KeyField::Source), asked(KeyField::Destination));
    if source || destination {
        let ends = ip.ends(packet);
        key.source = source.then_some(ends[0]);
        key.destination = destination.then_some(ends[1]);
    }
    key.protocol = asked(KeyField::Protocol).then_some(ip.protocol);
    let is_port =
        |field: &KeyField| matches!(field, KeyField::SourcePort | KeyField::DestinationPort | KeyField::Port);
    if fields.iter().any(is_port)
        && let Some([source, destination]) = ip.ports(packet)
    {
        key.source_port = asked(KeyField::SourcePort).then_some(source);
        key.destination_port = asked(KeyField::DestinationPort).then_some(destination);
        key.port = asked(KeyField::Port).then_some(source.min(destination));
    }
    key
}

/// Returns the buckets of sizes, which include the checksum, and of gaps, all empty.
pub fn buckets() -> (Vec<Bucket>, Vec<Bucket>) {
    let weir_bpf::stat::Spread { sizes, gaps, .. } = weir_bpf::stat::Spread::empty();
    let all = |buckets: Vec<weir_bpf::stat::Bucket>| buckets.into_iter().map(Bucket::of).collect();
    (all(sizes), all(gaps))
}
