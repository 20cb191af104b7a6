//! What the programs of statistics find in a packet (`weir-bpf/src/key.h`, `spread.h`), for packets of files.

use super::{Bucket, Key, KeyField};
use crate::live::flow::{self, ETHERNET, Part};

/// Returns the key of a packet with this link type (`LINKTYPE_*`): those of these fields that it has.
pub fn key_of(fields: &[KeyField], link_type: u16, packet: &[u8]) -> Key {
    let mut key = Key::default();
    let asked = |field| fields.contains(&field);
    if asked(KeyField::Vlan) && link_type == ETHERNET {
        let tag = flow::word(packet, 12).zip(flow::word(packet, 14));
        let tag = tag.filter(|(kind, _)| matches!(kind, 0x8100 | 0x88a8 | 0x9100));
        key.vlan = tag.map(|(_, contents)| contents & 0xfff);
    }
    if fields == [KeyField::Vlan] {
        return key;
    }
    let found = flow::network(link_type, packet);
    let Some((network, headers)) = found.and_then(|(network, rest)| Some((network, network.key(rest)?)))
    else {
        return key;
    };
    key.source = asked(KeyField::Source).then(|| network.address(headers.source));
    key.destination = asked(KeyField::Destination).then(|| network.address(headers.destination));
    key.protocol = asked(KeyField::Protocol).then_some(headers.protocol);
    if let Part::Whole(Some([source, destination])) | Part::First(Some([source, destination]), _) =
        headers.part
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
    let all = |buckets: Vec<weir_bpf::stat::Bucket>| buckets.into_iter().map(Bucket::from).collect();
    (all(sizes), all(gaps))
}
