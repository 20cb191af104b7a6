//! Classic BPF out of graphs, judged by what the graphs mean.
//!
//! The graphs are what libpcap compiles, lifted: so lifting is judged, too.

#[path = "common/packets.rs"]
mod packets;

use packets::{Random, answer};
use weir_filter::cbpf::{LiftError, Program, Rules};
use weir_filter::emit::cbpf::{Target, emit};
use weir_filter::interpret::{Interpreter, Packet};
use weir_judge::{Libpcap, Setup};

const EXPRESSIONS: &[&str] = &[
    "ip",
    "arp",
    "ip6",
    "tcp",
    "udp port 53",
    "host 10.0.0.1",
    "src host 10.0.0.1",
    "net 10.0.0.0/8",
    "tcp port 80",
    "port 80",
    "port 80 or port 443",
    "tcp port 443 and net 10.0.0.0/8",
    "host 10.0.0.1 or host 10.0.0.2",
    "host 10.0.0.1 or host 10.0.0.2 or host 10.0.0.3 or host 10.0.0.4",
    "not host 10.0.0.1",
    "not port 22",
    "host 1.2.3.4 and not port 22",
    "ip host 1.2.3.4 and not 10.0.0.1",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and not src and dst net 192.168.0.0/16",
    "tcp port 80 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)",
    "ether[0] & 1 = 0 and ip[16] >= 224",
    "icmp[icmptype] != icmp-echo and icmp[icmptype] != icmp-echoreply",
    "ether host 00:11:22:33:44:55",
    "ether src 00:11:22:33:44:55 or ether dst 66:77:88:99:aa:bb",
    "vlan",
    "vlan 100",
    "vlan 100 and tcp port 80",
    "vlan 100 and vlan 200 and ip",
    "mpls 1000 and ip",
    "pppoes and ip",
    "portrange 6000-6008",
    "tcp portrange 1024-65535",
    "src port 1024",
    "dst port 80 and src port 1024",
    "less 64",
    "greater 1000",
    "len > 5 and len < 100",
    "ip proto 17",
    "ip6 proto 58",
    "icmp6",
    "sctp",
    "ip multicast",
    "ip6 multicast",
    "ether multicast",
    "ether broadcast",
    "broadcast",
    "multicast",
    "ip6 host ::1",
    "host ::1",
    "net 2001:db8::/32",
    "ip6 net fe80::/10",
    "src net 10.1.0.0/16 and dst net 10.2.0.0/16",
    "tcp and (port 80 or port 443 or port 8080 or port 8443)",
    "udp and (port 53 or port 5353)",
    "ip[8] < 5",
    "ip[6:2] & 0x1fff != 0",
    "ip[0] & 0xf != 5",
    "tcp[13] = 2",
    "tcp[tcpflags] == tcp-syn",
    "tcp[tcpflags] & tcp-ack != 0",
    "udp[4:2] > 100",
    "icmp[0] = 8",
    "ip[ip[0]&0xf] = 3",
    "ip[2:2] > 576",
    "ether proto 0x88cc",
    "ether[12:2] = 0x88cc",
    "ether[20:2] = 0x2000",
    "arp and arp[6:2] = 1",
    "rarp",
    "ah",
    "esp",
    "pim",
    "igmp",
    "vrrp",
    "carp",
    "llc",
    "stp",
    "ipx",
    "netbeui",
    "atalk",
    "aarp",
    "decnet",
    "iso",
    "clnp",
    "esis",
    "isis",
    "tcp src port 80",
    "udp dst port 53",
    "host 1.1.1.1 or host 2.2.2.2 and port 53",
    "(tcp or udp) and port 53",
    "not (tcp or udp)",
    "not arp and not ip6",
    "ip and not tcp",
    "ip or ip6 or arp",
    "tcp[0:2] = 80 or tcp[2:2] = 80",
    "tcp[((tcp[12:1] & 0xf0) >> 2):4] = 0x47455420",
    "ip host 1.2.3.4",
    "arp host 1.2.3.4",
    "src host 1.2.3.4 and dst host 5.6.7.8",
    "src or dst net 10",
    "dst net 192.168.1",
    "port ftp or ftp-data",
    "geneve",
    "geneve 0xb",
    "llc u",
    "llc i",
    "net 10.0.0.0/8 or net 172.16.0.0/12 or net 192.168.0.0/16",
    "src net 10.0.0.0/8 or src net 172.16.0.0/12",
    "ip6 and tcp port 443",
    "ip and udp port 4789",
    "tcp port 25 or tcp port 110 or tcp port 143",
    "host 10.0.0.1 and (port 80 or port 443)",
    "host 10.0.0.1 and host 10.0.0.2",
    "not broadcast and not multicast",
    "ether[6:4] = 0x00112233 and ether[10:2] = 0x4455",
    "ip[1] & 0xfc = 0x20",
    "ip[9] = 6 and ip[20:2] = 80",
    "tcp and not port 22 and not port 80",
    "ip and ip[2:2] = len - 14",
    "len != 60",
    "ip[12:4] = ip[16:4]",
    "ip[1000] = 3",
    "ether[0xffffffff] = 3",
    "ip[len - 20] = 5",
    "1+ip[0] >> ip[1] = 3",
];

/// What libpcap compiles, without its optimiser.
fn libpcap(text: &str) -> Program {
    let setup = Setup { optimise: false, ..Setup::new(1) };
    let program = Libpcap::open().unwrap().compile(text, &setup);
    program.unwrap_or_else(|error| panic!("{text}: {error}")).classic()
}

/// Random bytes, some of which are what `program` compares them with.
fn packet(program: &Program, random: &mut Random) -> Vec<u8> {
    let length = if random.below(3) == 0 { random.below(80) } else { 60 + random.below(60) };
    let mut data = random.bytes(length);
    if length > 14 && random.below(2) == 0 {
        data[14] = 0x45;
    }
    answer(program, &mut data, random);
    data
}

#[test]
fn verdicts_stay_through_lift_and_emission() {
    for text in EXPRESSIONS {
        let plain = libpcap(text);
        let graph = match plain.lift(Rules::Library) {
            Ok(graph) => graph,
            // Of short packets, libpcap computes an offset before the first byte.
            Err(LiftError::Wraps { .. }) if text.contains("[len - 20]") => continue,
            Err(error) => panic!("{text}: {error}"),
        };
        graph.check(&[]).unwrap_or_else(|error| panic!("{text}: {error}\n{graph}"));
        let interpreter = Interpreter::new(&graph, &[]);
        let mut random = Random(1);
        for target in [Target::Kernel, Target::Library] {
            let program = emit(&graph, &[], target).unwrap_or_else(|error| panic!("{text}: {error}"));
            let listing = program.listing();
            program.check(Rules::Kernel).unwrap_or_else(|flaw| panic!("{text}: {flaw}\n{listing}"));
            for _ in 0..200 {
                let data = packet(&plain, &mut random);
                let length = data.len().try_into().expect("a small packet");
                let packet = Packet { data: &data, length, ..Packet::default() };
                let verdict = interpreter.run(&packet);
                assert_eq!(
                    plain.run(&packet),
                    verdict,
                    "lifted {text} {data:x?}\n{}\n{graph}",
                    plain.listing()
                );
                assert_eq!(program.run(&packet), verdict, "{target:?} {text} {data:x?}\n{graph}\n{listing}");
            }
        }
    }
}
