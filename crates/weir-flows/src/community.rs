//! Community ID, version 1: a name for a flow that other programs (Suricata, Zeek, Wireshark) have for it, too
//! (<https://github.com/corelight/community-id-spec>).

use std::net::IpAddr;

use sha1::{Digest, Sha1};
use weir_packet::protocol::{ICMP, ICMPV6, SCTP, TCP, UDP};

use crate::flow::{Flow, Icmp};

impl Flow {
    /// Returns its Community ID with the seed 0, as in `1:LQU9qZlK+B5F3KDmev6m5PMibrg=`. It depends on addresses, ports and protocol
    /// alone, so the same connection can have several flows with one ID. `None`: it is ICMP, and no type is known.
    ///
    /// It is computed anew each time.
    pub fn community_id(&self) -> Option<String> {
        let [from, to] = self.sides.map(|side| side.end);
        let (ports, has_answers) = match self.protocol {
            TCP | UDP | SCTP => (Some([from.port, to.port]), true),
            ICMP | ICMPV6 => {
                let icmp = self.icmp?;
                let answer = answer(self.protocol, icmp);
                (Some([icmp.kind.into(), answer.unwrap_or(icmp.code).into()]), answer.is_some())
            }
            _ => (None, true),
        };
        let mut ends = [from.address, to.address].map(octets);
        let mut ports = ports;
        if has_answers && (&ends[1], ports.map(|[_, to]| to)) < (&ends[0], ports.map(|[from, _]| from)) {
            ends.swap(0, 1);
            ports.iter_mut().for_each(|ports| ports.swap(0, 1));
        }
        let mut hash = Sha1::new();
        hash.update([0; 2]);
        ends.iter().for_each(|end| hash.update(end));
        hash.update([self.protocol, 0]);
        ports.iter().flatten().for_each(|port| hash.update(port.to_be_bytes()));
        Some(format!("1:{}", base64(&hash.finalize())))
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Returns the type that answers this one, or that it answers.
fn answer(protocol: u8, icmp: Icmp) -> Option<u8> {
    /// Requests and replies.
    const V4: [[u8; 2]; 5] = [[8, 0], [10, 9], [13, 14], [15, 16], [17, 18]];
    const V6: [[u8; 2]; 6] = [[128, 129], [130, 131], [133, 134], [135, 136], [139, 140], [144, 145]];
    let pairs = if protocol == ICMP { &V4[..] } else { &V6 };
    pairs.iter().find_map(|[one, other]| match icmp.kind {
        kind if kind == *one => Some(*other),
        kind if kind == *other => Some(*one),
        _ => None,
    })
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(if digit > group.len() { '=' } else { DIGITS[value as usize].into() });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{EndReason, Side};
    use weir_packet::Endpoint;

    fn flow(protocol: u8, ends: [&str; 2], ports: [u16; 2], icmp: Option<Icmp>) -> Flow {
        let side = |index: usize| Side {
            end: Endpoint { address: ends[index].parse().expect("an address"), port: ports[index] },
            mac: None,
            packets: 1,
            bytes: 28,
            lengths: [28; 2],
            ttls: [64; 2],
            tos: 0,
        };
        Flow {
            interface: 0,
            sides: [side(0), side(1)],
            protocol,
            vlan: None,
            tunnel: None,
            first: 0,
            last: 0,
            lost: 0,
            reason: EndReason::Idle,
            icmp,
            tcp: None,
            names: None,
        }
    }

    /// Those of the specification (`baseline_deflt.json`).
    #[test]
    fn both_directions_have_the_published_id() {
        let [one, other] = ["3ffe:507:0:1:200:86ff:fe05:80da", "3ffe:501:0:1001::2"];
        for (protocol, ends, ports, id) in [
            (6, ["128.232.110.120", "66.35.250.204"], [34855, 80], "1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
            (17, ["192.168.1.52", "8.8.8.8"], [54585, 53], "1:d/FP5EW3wiY1vCndhwleRRKHowQ="),
            (132, ["192.168.170.8", "192.168.170.56"], [7, 7], "1:MP2EtRCAUIZvTw6MxJHLV7N7JDs="),
            (46, ["10.1.12.1", "10.1.12.2"], [0, 0], "1:KHlLkgoJW7ifUTyTSgyVfkFHzKw="),
            (
                6,
                ["2001:470:e5bf:dead:4957:2174:e82c:4887", "2607:f8b0:400c:c03::1a"],
                [63943, 25],
                "1:/qFaeAR+gFe1KYjMzVDsMv+wgU4=",
            ),
        ] {
            let back = flow(protocol, [ends[1], ends[0]], [ports[1], ports[0]], None);
            for flow in [flow(protocol, ends, ports, None), back] {
                assert_eq!(flow.community_id().as_deref(), Some(id));
            }
        }
        // The answer has the ID of what it answers; what has no answer has one direction.
        for (protocol, ends, kind, code, id) in [
            (1, ["192.168.0.89", "192.168.0.1"], 8, 0, "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
            (1, ["192.168.0.1", "192.168.0.89"], 0, 0, "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
            (1, ["10.0.0.1", "10.0.0.2"], 11, 0, "1:YHxtAirCG//0OzkcVAukqKQN9xM="),
            (58, [one, other], 128, 0, "1:+TW+HtLHvV1xnGhV1lv7XoJrqQg="),
            (58, [other, one], 129, 0, "1:+TW+HtLHvV1xnGhV1lv7XoJrqQg="),
            (58, ["3ffe:501:1800:2345::2", one], 3, 0, "1:2ObVBgIn28oZvibYZhZMBgh7WdQ="),
            (58, ["3ffe:501:410:0:2c0:dfff:fe47:33e", one], 1, 4, "1:hLZd0XGWojozrvxqE0dWB1iM6R0="),
            (58, ["fe80::200:86ff:fe05:80da", "ff02::2"], 133, 0, "1:hO+sN4H+MG5MY/8hIrXPqc4ZQz0="),
            (58, ["fe80::260:97ff:fe07:69ea", "ff02::1"], 134, 0, "1:pkvHqCL88/tg1k4cPigmZXUtL00="),
        ] {
            let flow = flow(protocol, ends, [0; 2], Some(Icmp { kind, code }));
            assert_eq!(flow.community_id().as_deref(), Some(id), "{flow:?}");
        }
        assert_eq!(flow(1, ["10.0.0.1", "10.0.0.2"], [0; 2], None).community_id(), None);
    }

    /// Those of RFC 4648, section 10.
    #[test]
    fn groups_that_are_not_full_are_filled() {
        for (length, text) in ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="].into_iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..length]), text);
        }
    }
}
