//! `weir flows --kernel`: a probe beside it that copies every packet is the judge.

use serde_json::Value;
use weir_lab::{Network, Veth, root_test};

use crate::control::ctl_succeeds;
use crate::harness::{Ended, send_each, start, until};

const FIN: u8 = 1;
const SYN: u8 = 2;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// A packet of TCP (flags) or UDP (none).
#[derive(Clone)]
struct Packet {
    /// EtherTypes of tags with their contents, from the outermost.
    tags: Vec<[u8; 4]>,
    is_v6: bool,
    /// The last bytes of the addresses.
    ends: [u8; 2],
    ports: [u16; 2],
    flags: Option<u8>,
    sequence: u32,
    window: u16,
    payload: Vec<u8>,
    ttl: u8,
    tos: u8,
    /// Flags and offset of IPv4's fragments.
    fragment: u16,
    /// Words of options of IPv4.
    options: u8,
}

impl Packet {
    fn new(ends: [u8; 2], ports: [u16; 2]) -> Self {
        Self {
            tags: Vec::new(),
            is_v6: false,
            ends,
            ports,
            flags: None,
            sequence: 0,
            window: 100,
            payload: vec![0; 10],
            ttl: 64,
            tos: 0,
            fragment: 0,
            options: 0,
        }
    }

    fn frame(&self) -> Vec<u8> {
        let [from, to] = self.ports.map(u16::to_be_bytes);
        let mut inside = [from, to].concat();
        if let Some(flags) = self.flags {
            inside.extend(self.sequence.to_be_bytes());
            inside.extend([0, 0, 0, 0, 0x50, flags]);
            inside.extend(self.window.to_be_bytes());
            inside.extend([0; 4]);
        } else {
            let length = u16::try_from(8 + self.payload.len()).expect("short").to_be_bytes();
            inside.extend([length[0], length[1], 0, 0]);
        }
        inside.extend(&self.payload);
        let mut frame = [[2; 6], [4; 6]].concat();
        self.tags.iter().for_each(|tag| frame.extend(tag));
        let protocol = if self.flags.is_some() { 6 } else { 17 };
        let [from, to] = self.ends;
        if self.is_v6 {
            let length = u16::try_from(inside.len()).expect("short").to_be_bytes();
            frame.extend([
                0x86,
                0xdd,
                0x60 | self.tos >> 4,
                self.tos << 4,
                0,
                0,
                length[0],
                length[1],
                protocol,
                self.ttl,
            ]);
            for end in [from, to] {
                frame.extend([0xfd, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
            }
        } else {
            let head = 20 + usize::from(self.options) * 4;
            let length = u16::try_from(head + inside.len()).expect("short").to_be_bytes();
            let fragment = self.fragment.to_be_bytes();
            frame.extend([
                8,
                0,
                0x45 + self.options,
                self.tos,
                length[0],
                length[1],
                7,
                7,
                fragment[0],
                fragment[1],
            ]);
            frame.extend([self.ttl, protocol, 0, 0, 10, 99, 0, from, 10, 99, 0, to]);
            // No operation.
            frame.extend(vec![1; head - 20]);
        }
        frame.extend(inside);
        frame
    }
}

/// So many packets of each way, with all that is told apart: those of the second way after each of the first.
fn talk(first: &Packet, packets: usize) -> Vec<Vec<u8>> {
    let back = |packet: &Packet| {
        let [from, to] = packet.ends;
        let [from_port, to_port] = packet.ports;
        Packet { ends: [to, from], ports: [to_port, from_port], ..packet.clone() }
    };
    let mut frames = Vec::new();
    for number in 0..packets {
        let mut packet = first.clone();
        packet.payload = vec![0; 1 + number * 3];
        packet.ttl = if number == packets - 2 { 9 } else { 64 };
        packet.tos = if number == packets - 1 { 8 } else { 0 };
        if first.flags.is_some() {
            // One is sent again, and one says that there is no room.
            packet.sequence = 1000 * u32::try_from(if number == 13 { 12 } else { number }).expect("few");
            packet.flags = Some(if number % 5 == 4 { PSH | ACK } else { ACK });
            packet.window = if number == 15 { 0 } else { 100 };
            if number == 13 {
                packet.payload.truncate(20);
            }
        }
        frames.push(packet.frame());
        frames.push(back(&packet).frame());
    }
    frames
}

/// A connection from SYN to FIN.
fn connection(packets: usize) -> Vec<Vec<u8>> {
    let first = Packet { flags: Some(ACK), ..Packet::new([1, 2], [4000, 80]) };
    let control = |flags, ends, ports, sequence| {
        Packet { flags: Some(flags), sequence, payload: Vec::new(), ..Packet::new(ends, ports) }.frame()
    };
    let (there, back) = (([1, 2], [4000, 80]), ([2, 1], [80, 4000]));
    let mut frames =
        vec![control(SYN, there.0, there.1, u32::MAX), control(SYN | ACK, back.0, back.1, u32::MAX)];
    frames.extend(talk(&first, packets));
    frames.push(control(FIN | ACK, there.0, there.1, 1_000_000));
    frames.push(control(FIN | ACK, back.0, back.1, 1_000_000));
    frames
}

/// What flows say, but for times.
fn told(ended: &Ended) -> Vec<String> {
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let flows = all.filter(|object| object["type"] == "flow").map(|mut flow| {
        for time in ["first", "last", "seconds", "bits_per_second", "server_seconds", "client_seconds"] {
            flow[time] = Value::Null;
        }
        flow.to_string()
    });
    let mut flows: Vec<_> = flows.collect();
    flows.sort_unstable();
    flows
}

#[root_test]
fn root_the_kernel_counts_flows_as_if_each_packet_were_copied() {
    const PACKETS: usize = 30;
    let network = Network::new(Veth::default()).expect("a network");
    let base = ["flows", "-i", "rx0", "--json", "--idle-timeout", "1h", "--active-timeout", "2h"];
    let counting = start(&network, &[&base[..], &["--kernel"]].concat());
    let copying = start(&network, &[&base[..], &["--source", "tc"]].concat());
    let plain = |end| Packet::new([end, 2], [5000, 6000]);
    let tag = |kind: u16, id: u16| {
        let ([a, b], [c, d]) = (kind.to_be_bytes(), id.to_be_bytes());
        [a, b, c, d]
    };
    // Of each way all but the first eight are counted, and SYN and FIN are copied, too.
    let counted = [
        connection(PACKETS),
        talk(&plain(11), PACKETS),
        talk(&Packet { is_v6: true, ..plain(12) }, PACKETS),
        talk(&Packet { is_v6: true, flags: Some(ACK), ..plain(13) }, PACKETS),
        talk(&Packet { tags: vec![tag(0x8100, 5)], ..plain(11) }, PACKETS),
        talk(&Packet { tags: vec![tag(0x88a8, 6)], is_v6: true, ..plain(12) }, PACKETS),
    ];
    let copied = [
        talk(&Packet { tags: vec![tag(0x88a8, 7), tag(0x8100, 8)], ..plain(11) }, PACKETS),
        talk(&Packet { options: 1, ..plain(14) }, PACKETS),
        talk(&Packet { fragment: 0x2000, ..plain(15) }, PACKETS),
        talk(&Packet { fragment: 3, ..plain(16) }, PACKETS),
        talk(&Packet { ports: [5000, 4789], ..plain(17) }, PACKETS),
        vec![[&[2; 12][..], &[8, 6], &[0; 46]].concat(); PACKETS],
        // IPv4 with a length that is too short, and cut behind its header.
        vec![[&[2; 12][..], &[8, 0, 0x45, 0, 0, 19], &[6; 40]].concat(); PACKETS],
        vec![plain(18).frame()[..36].to_vec(); PACKETS],
    ];
    let (mut sent, mut expected) = (0, 0);
    for (round, frames) in counted.iter().chain(&copied).enumerate() {
        send_each(network.pair(), frames);
        sent += frames.len() as u64;
        expected += if round < counted.len() { 2 * (PACKETS as u64 - 8) } else { 0 };
    }
    // SYN and SYN and ACK are among the first eight.
    expected += 2;
    let status = until("all to be counted", || {
        let told = ctl_succeeds(&network, &["status", "-t", &counting.id().to_string()]);
        let status: Value = serde_json::from_str(&told).expect("JSON");
        if status["flows"]["packets"] == sent { Ok(status) } else { Err(told) }
    });
    assert_eq!(
        (status["counted"].as_u64(), status["captured"].as_u64()),
        (Some(expected), Some(sent - expected))
    );
    let [counting, copying] = [counting, copying].map(|probe| probe.interrupt().succeeded());
    for ended in [&counting, &copying] {
        ended.account().closes();
    }
    assert_eq!(told(&counting), told(&copying));
    let flows = &counting.account().0["flows"];
    assert_eq!((flows["packets"].as_u64(), flows["closed"].as_u64()), (Some(sent), Some(1)), "{flows}");
    let connection = told(&counting).into_iter().find(|flow| flow.contains("4000")).expect("it is there");
    let connection: Value = serde_json::from_str(&connection).expect("JSON");
    for way in ["src_to_dst", "dst_to_src"] {
        let of = |field: &str| connection[way][field].as_u64();
        assert_eq!((of("packets"), of("retransmissions"), of("zero_windows")), (Some(32), Some(1), Some(1)));
        assert_eq!((of("ttl_min"), of("tos")), (Some(9), Some(8)), "{connection}");
    }
}
