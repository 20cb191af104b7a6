//! Hellos, and packets that carry them.

use weir_flows::{Flow, Observation, Settings, Table};

pub(crate) fn short(len: usize) -> [u8; 2] {
    u16::try_from(len).expect("short").to_be_bytes()
}

/// An extension.
pub(crate) fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &short(data.len()), data].concat()
}

/// That of a server's name.
pub(crate) fn server(name: &str) -> Vec<u8> {
    let length = name.len();
    extension(0, &[&short(length + 3)[..], &[0], &short(length), name.as_bytes()].concat())
}

/// A client's hello, without a record around it.
pub(crate) fn hello(ciphers: &[u16], extensions: &[Vec<u8>]) -> Vec<u8> {
    let ciphers: Vec<u8> = ciphers.iter().flat_map(|cipher| cipher.to_be_bytes()).collect();
    let extensions = extensions.concat();
    let lists =
        [&short(ciphers.len()), &ciphers[..], &[1, 0], &short(extensions.len()), &extensions].concat();
    let body = [&[3, 3][..], &[7; 32], &[0], &lists].concat();
    [&[1, 0][..], &short(body.len()), &body].concat()
}

/// Its record.
pub(crate) fn record(message: &[u8]) -> Vec<u8> {
    [&[22, 3, 1][..], &short(message.len()), message].concat()
}

/// The hello of a browser: a key share of a post-quantum group, and the server's name behind it.
pub(crate) fn long_hello() -> Vec<u8> {
    let share = [&[0; 2][..], &[0x11, 0xec], &short(1216), &[5; 1216]].concat();
    hello(&[0x1301, 0x1302], &[extension(51, &share), extension(43, &[2, 3, 4]), server("a.example")])
}

/// An Ethernet frame with IPv4 and this payload. `ports`: from and to.
pub(crate) fn frame(from_client: bool, protocol: u8, behind_ip: &[u8]) -> Vec<u8> {
    let length = short(20 + behind_ip.len());
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0]);
    let [from, to] = if from_client { [1, 2] } else { [2, 1] };
    frame.extend([10, 0, 0, from, 10, 0, 0, to]);
    frame.extend(behind_ip);
    frame
}

fn ports(from_client: bool) -> [u8; 4] {
    if from_client { [0x9c, 0x40, 1, 187] } else { [1, 187, 0x9c, 0x40] }
}

/// A segment of TCP between the ports 40000 and 443.
pub(crate) fn segment(from_client: bool, flags: u8, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let sequence = sequence.to_be_bytes();
    let header = [&ports(from_client)[..], &sequence, &[0; 4], &[0x50, flags, 1, 0, 0, 0, 0, 0]].concat();
    frame(from_client, 6, &[&header, payload].concat())
}

/// A datagram of UDP between the same ports.
pub(crate) fn datagram(from_client: bool, payload: &[u8]) -> Vec<u8> {
    let header = [&ports(from_client)[..], &short(8 + payload.len()), &[0; 2]].concat();
    frame(from_client, 17, &[&header, payload].concat())
}

/// The flows of these frames, each with the number of its interface.
pub(crate) fn flows(frames: &[(u16, &[u8])]) -> Vec<Flow> {
    let mut table = Table::new(&Settings { flows: 16, ..Settings::default() }).expect("enough memory");
    let mut flows = Vec::new();
    for (time, (interface, frame)) in (1_000_000..).zip(frames) {
        let length = u32::try_from(frame.len()).expect("short");
        let packet = Observation { time, interface: *interface, link_type: 1, frame, length };
        table.add(&packet, &mut |flow| flows.push(flow));
    }
    table.end_all(&mut |flow| flows.push(flow));
    assert!(table.counts().adds_up());
    flows
}

/// Application and name of the one flow of these frames.
pub(crate) fn told(frames: &[Vec<u8>]) -> Option<(&'static str, Option<String>)> {
    let frames: Vec<_> = frames.iter().map(|frame| (0, &frame[..])).collect();
    let mut flows = flows(&frames);
    assert_eq!(flows.len(), 1, "{flows:?}");
    flows.remove(0).names.map(|names| (names.protocol, names.name))
}
