//! QUIC: packets of clients, encrypted here by RFC 9001 as an example of the RFC confirms, and read there.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::AeadInOut;
use hkdf::Hkdf;
use sha2::Sha256;
use weir_flows::{Flow, Observation, Settings, Table};

use crate::made::{datagram, extension, flows, hello, long_hello, server, short, told};

#[derive(Clone, Copy)]
struct Version {
    number: u32,
    salt: &'static str,
    prefix: &'static str,
    /// The first byte of an Initial, but for the length of its number.
    initial: u8,
    handshake: u8,
}

const ONE: Version = Version {
    number: 1,
    salt: "38762cf7f55934b34d179ae6a4c80cadccbb7f0a",
    prefix: "quic",
    initial: 0xc0,
    handshake: 0xe0,
};
const TWO: Version = Version {
    number: 0x6b33_43cf,
    salt: "0dede3def700a6db819381be6e269dcbf9bd2ed9",
    prefix: "quicv2",
    initial: 0xd0,
    handshake: 0xf0,
};

const ID: &[u8] = &[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

fn bytes(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits")).collect()
}

/// The length of a key, with its label in front (RFC 8446, section 7.1).
fn key<const N: usize>(secret: &[u8], label: &str) -> [u8; N] {
    let label = format!("tls13 {label}");
    let length = u8::try_from(label.len()).expect("short");
    let info = [&short(N)[..], &[length], label.as_bytes(), &[0]].concat();
    let mut key = [0; N];
    let secret = Hkdf::<Sha256>::from_prk(secret).expect("long enough");
    secret.expand(&info, &mut key).expect("short");
    key
}

/// Encrypts a packet. `key_of`: the ID that the keys are made of; `id`: who gets it; `number`: its number, and how many bytes that has.
fn initial(
    version: Version,
    (key_of, id): (&[u8], &[u8]),
    token: &[u8],
    number: (u32, usize),
    frames: &[u8],
) -> Vec<u8> {
    let Version { salt, prefix, .. } = version;
    let (secret, _) = Hkdf::<Sha256>::extract(Some(&bytes(salt)), key_of);
    let secret: [u8; 32] = key(&secret, "client in");
    let iv: [u8; 12] = key(&secret, &format!("{prefix} iv"));
    let (number, digits) = number;
    let first = version.initial | u8::try_from(digits - 1).expect("short");
    let length = short(0x4000 + digits + frames.len() + 16);
    let (ids, tokens) = ([id.len(), token.len()].map(|len| u8::try_from(len).expect("short"))).into();
    let mut packet = [&[first][..], &version.number.to_be_bytes(), &[ids], id, &[0, tokens], token].concat();
    packet.extend(length);
    let at = packet.len();
    packet.extend(&number.to_be_bytes()[4 - digits..]);
    let mut nonce = iv;
    nonce.iter_mut().rev().zip(number.to_le_bytes()).for_each(|(byte, number)| *byte ^= number);
    let mut data = frames.to_vec();
    let cipher = Aes128Gcm::new(&Array::from(key::<16>(&secret, &format!("{prefix} key"))));
    let tag = cipher.encrypt_inout_detached(&Array::from(nonce), &packet, data.as_mut_slice().into());
    packet.extend(data);
    packet.extend(tag.expect("it is short"));
    let mut mask = Array::from(<[u8; 16]>::try_from(&packet[at + 4..at + 20]).expect("16 bytes"));
    Aes128::new(&Array::from(key::<16>(&secret, &format!("{prefix} hp")))).encrypt_block(&mut mask);
    packet[0] ^= mask[0] & 0x0f;
    (0..digits).for_each(|index| packet[at + index] ^= mask[1 + index]);
    packet
}

/// A frame with a part of the hello.
fn crypto(offset: usize, part: &[u8]) -> Vec<u8> {
    [&[6][..], &short(0x4000 + offset), &short(0x4000 + part.len()), part].concat()
}

/// Fills a packet so that the datagram is long enough.
fn filled(frames: &[u8]) -> Vec<u8> {
    let mut frames = frames.to_vec();
    frames.resize(frames.len().max(1200), 0);
    frames
}

fn named(name: &str) -> Option<(&'static str, Option<String>)> {
    Some(("quic", Some(name.to_owned())))
}

/// A first packet with these frames.
fn first(number: u32, frames: &[u8]) -> Vec<u8> {
    datagram(true, &initial(ONE, (ID, ID), &[], (number, 1), &filled(frames)))
}

#[test]
fn the_examples_of_the_rfcs_name_the_server() {
    // RFC 9001, appendix A.2: the frame, which padding follows.
    let frame = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c00000413011302010000c0\
                 00000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d0017001800100007000504616c706e0005000501\
                 00000000003300260024001d00209370b2c9caa47fbabaf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304\
                 000d0010000e0403050306030203080408050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff07\
                 048000ffff0801100104800075300901100f088394c8f03e51570806048000ffff";
    let mut frame = bytes(frame);
    frame.resize(1162, 0);
    // How the packet begins and ends (RFC 9369, appendix A.2, for the second).
    for (version, begin, end) in [
        (
            ONE,
            "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11",
            "e221af44860018ab0856972e194cd934",
        ),
        (TWO, "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485", ""),
    ] {
        let packet = initial(version, (ID, ID), &[], (2, 4), &frame);
        assert_eq!(packet.len(), 1200);
        assert!(packet.starts_with(&bytes(begin)) && packet.ends_with(&bytes(end)));
        let flows = flows(&[(0, &datagram(true, &packet))]);
        let names = flows[0].names.as_ref().expect("it is read");
        assert_eq!((names.protocol, names.name.as_deref()), ("quic", Some("example.com")));
        assert_eq!(names.ja4.as_deref().map(|ja4| &ja4[..11]), Some("q13d0211an_"));
    }
}

#[test]
fn a_hello_in_pieces_of_several_packets_names_the_server() {
    let hello = long_hello();
    let parts: Vec<_> =
        [0, 100, 101, 700, 1200].windows(2).map(|ends| crypto(ends[0], &hello[ends[0]..ends[1]])).collect();
    let last = crypto(1200, &hello[1200..]);
    let ack = [2, 0, 0, 0, 0];
    let orders: [&[&[&[u8]]]; 4] = [
        &[&[&parts[0], &parts[1], &parts[2], &parts[3]], &[&last]],
        &[&[&last, &[0, 0, 1], &parts[1]], &[&parts[3]], &[&ack, &parts[0], &parts[2]]],
        &[&[&parts[3]], &[&parts[3], &parts[0]], &[&parts[2], &last, &parts[1]]],
        &[&[&[1]], &[&parts[0], &parts[1]], &[&parts[2]], &[&parts[3]], &[&last]],
    ];
    for order in orders {
        let mut frames: Vec<_> =
            (0..).zip(order).map(|(number, frames)| first(number, &frames.concat())).collect();
        // What the server says does not matter.
        frames.insert(1, datagram(false, &initial(ONE, (ID, &[7; 8]), &[], (0, 1), &filled(&ack))));
        assert_eq!(told(&frames), named("a.example"));
        let whole = frames.pop().expect("some");
        assert_eq!(told(&frames), Some(("quic", None)));
        // The client now uses the ID that the server wants, with the same keys.
        let renamed = initial(ONE, (ID, &[9; 20]), &[], (300, 2), &filled(&order[order.len() - 1].concat()));
        frames.push(datagram(true, &renamed));
        assert_eq!(told(&frames), named("a.example"));
        frames.push(whole);
        assert_eq!(told(&frames), named("a.example"));
    }
}

#[test]
fn a_server_that_wants_to_see_a_token_changes_the_keys() {
    let message = hello(&[0x1301], &[server("b.example")]);
    let begun = first(0, &crypto(0, &message[..9]));
    let retry = datagram(false, &[&[0xf0, 0, 0, 0, 1, 0, 4, 1, 2, 3, 4][..], &[5; 40]].concat());
    let again = initial(ONE, (&[1, 2, 3, 4], &[1, 2, 3, 4]), b"token", (1, 1), &filled(&crypto(0, &message)));
    assert_eq!(told(&[begun, retry, datagram(true, &again)]), named("b.example"));
}

#[test]
fn several_packets_of_one_datagram_are_read() {
    let message = hello(&[0x1301], &[server("c.example")]);
    let pieces = [crypto(9, &message[9..]), crypto(0, &message[..9])];
    for version in [ONE, TWO] {
        let [one, other] = [0, 1].map(|number| {
            initial(version, (ID, ID), &[], (number, 1), &[&pieces[number as usize][..], &[0; 600]].concat())
        });
        let number = version.number.to_be_bytes();
        let between = [&[version.handshake][..], &number, &[1, 9, 0, 20], &[8; 20]].concat();
        assert_eq!(told(&[datagram(true, &[one, between, other].concat())]), named("c.example"));
    }
}

#[test]
fn what_is_cut_or_wrong_is_not_read() {
    let message = hello(&[0x1301], &[server("d.example"), extension(57, &[0; 40])]);
    let packet = initial(ONE, (ID, ID), &[3; 5], (0, 1), &filled(&crypto(0, &message)));
    let of = |payload: &[u8]| told(&[datagram(true, payload)]);
    assert_eq!(of(&packet), named("d.example"));
    // Captured in part.
    let whole = datagram(true, &packet);
    for end in 42..whole.len() {
        assert_eq!(told(&[whole[..end].to_vec()]), None, "{end}");
    }
    // Each byte counts.
    for place in 0..packet.len() {
        let mut wrong = packet.clone();
        wrong[place] ^= 0x10;
        assert_eq!(of(&wrong), None, "{place}");
    }
    // Lengths that lie, wherever they are.
    for place in 5..40 {
        for value in [0, 0x3f, 0x7f, 0xbf, 0xff] {
            let mut wrong = packet.clone();
            wrong[place] = value;
            assert!(wrong == packet || of(&wrong).is_none(), "{place}");
        }
    }
    // A hello of another kind, one that is too long, and frames that say nothing.
    for frames in [crypto(0, &[2, 0, 0, 0]), crypto(0, &[1, 0xff, 0xff, 0xff]), vec![0x1c, 0], vec![6, 0xff]]
    {
        let other = crypto(0, &message);
        assert_eq!(told(&[first(0, &frames), first(1, &other)]), Some(("quic", None)));
    }
    // One without a server's name.
    assert_eq!(told(&[first(0, &crypto(0, &hello(&[1], &[])))]), Some(("quic", None)));
}

#[test]
fn a_flow_in_the_room_of_another_is_read_from_its_beginning() {
    let named = |name: &str| first(0, &crypto(0, &hello(&[0x1301], &[server(name)])));
    let (one, mut other) = (named("e.example"), named("f.example"));
    // From another port.
    other[35] += 1;
    let mut table = Table::new(&Settings { flows: 1, ..Settings::default() }).expect("enough memory");
    let mut names = Vec::new();
    let mut ended = |flow: Flow| names.push(flow.names.and_then(|names| names.name));
    for (time, frame) in [(1, &one), (2, &other)] {
        let length = u32::try_from(frame.len()).expect("short");
        table.add(&Observation { time, interface: 0, link_type: 1, frame, length }, &mut ended);
    }
    table.end_all(&mut ended);
    assert_eq!(names, [Some("e.example".to_owned()), Some("f.example".to_owned())]);
}
