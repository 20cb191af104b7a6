//! `weir read --anonymise --zero-payload`: no address stays, wherever it was, and tshark finds the checksums right.

use std::fs;
use std::path::Path;

use weir::reader::ByteOrder;
use weir::writer::Format;

use crate::changed::fields;
use crate::files::Bytes;
use crate::notes::told;
use crate::support::{EPOCH, Place, judge, stderr, succeeds, weir, write};

const CHECKSUMS: [&str; 6] = [
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
    "icmp.checksum.status",
    "icmpv6.checksum.status",
    "igmp.checksum.status",
];

/// What must not be in a copy: the addresses and the name of `addresses.txt`, and the beginnings of addresses.
const SECRETS: [&[u8]; 7] = [
    &[203, 0, 113],
    &[198, 51, 100],
    &[0x20, 1, 0xd, 0xb8, 0, 0x77],
    &[0x20, 1, 0xd, 0xb8, 0, 0x88],
    &[0, 0x11, 0x22, 0x33, 0x44, 0x55],
    &[0, 0x66, 0x77, 0x88, 0x99, 0xaa],
    b"secret",
];

fn frames() -> Vec<Vec<u8>> {
    let lines = include_str!("addresses.txt").lines().filter(|line| !line.starts_with('#'));
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex");
    lines.map(|line| line.as_bytes().chunks(2).map(byte).collect()).collect()
}

fn has(bytes: &[u8], secret: &[u8]) -> bool {
    bytes.windows(secret.len()).any(|part| part == secret)
}

fn key(place: &Place) -> String {
    let key = place.path("key");
    fs::write(&key, (7..39).collect::<Vec<u8>>()).expect("a file");
    format!("--anonymise=@{}", key.display())
}

/// Packets of which tshark says that a checksum is wrong.
fn wrong(file: &Path) -> usize {
    fields(file, &CHECKSUMS).iter().filter(|line| line.contains('0')).count()
}

#[test]
fn no_address_stays_wherever_it_was() {
    let place = Place::new();
    let [file, copy, open] = ["a.pcap", "b.pcap", "c.pcap"].map(|name| place.path(name));
    let (frames, key) = (frames(), key(&place));
    let packets: Vec<_> = frames.iter().map(|frame| (0, EPOCH, &frame[..], 0)).collect();
    write(&file, Format::Pcap { nanoseconds: false }, &[("", 1)], &packets);
    let bytes = fs::read(&file).expect("a file");
    assert!(SECRETS.iter().all(|secret| has(&bytes, secret)));
    let output = weir(&["read", &key, "--zero-payload", "-w"], &[&copy, &file]);
    assert!(output.status.success(), "{}", stderr(&output));
    let bytes = fs::read(&copy).expect("a file");
    for secret in SECRETS {
        assert!(!has(&bytes, secret), "{secret:x?}");
    }
    assert_eq!(fields(&copy, &["frame.len"]), fields(&file, &["frame.len"]));
    assert_eq!((wrong(&file), wrong(&copy)), (0, 0));
    assert!(!stderr(&output).contains("payloads"), "{}", stderr(&output));

    // Payloads stay, and that is said.
    let output = weir(&["read", &key, "-w"], &[&open, &file]);
    let said = stderr(&output);
    assert!(said.contains("33 packets with payloads, in which addresses and names stay (DNS"), "{said}");
    assert!(said.contains("3 packets with another packet inside (GRE, IP in IP, VXLAN), in which"), "{said}");
    assert!(said.contains("2 packets neither IP nor ARP"), "{said}");
    assert_eq!(wrong(&open), 0);
    let addresses = ["ip.src", "ipv6.src", "eth.src", "eth.dst"];
    let outer = |file| -> Vec<String> {
        let first = |field: &str| field.split(',').next().unwrap_or_default().to_owned();
        let of = |line: &String| line.split('\t').map(first).collect::<Vec<_>>().join(" ");
        // Behind these come frames that are not understood.
        fields(file, &addresses).iter().take(25).map(of).collect()
    };
    assert_eq!(outer(&open), outer(&copy));
    let text = outer(&open).join("\n");
    assert!(
        !text.contains("203.0.113") && !text.contains("2001:db8") && !text.contains("00:11:22"),
        "{text}"
    );
}

#[test]
fn a_key_gives_the_same_addresses_in_all_files() {
    let place = Place::new();
    let [file, short, one, two] = ["a.pcap", "b.pcap", "c.pcap", "d.pcap"].map(|name| place.path(name));
    let frames = frames();
    let packets: Vec<_> = frames.iter().map(|frame| (0, EPOCH, &frame[..], 0)).collect();
    write(&file, Format::Pcap { nanoseconds: false }, &[("", 1)], &packets);
    write(&short, Format::Pcap { nanoseconds: false }, &[("", 1)], &packets[..1]);
    let first = |key: &str, copy: &Path, file: &Path| {
        succeeds(&["read", key, "-w"], &[copy, file]);
        fields(copy, &["ip.addr", "eth.addr"]).swap_remove(0)
    };
    let known = first("--anonymise=correct horse", &one, &file);
    assert_eq!(first("--anonymize=correct horse", &two, &short), known);
    assert_ne!(first("--anonymise=battery staple", &two, &short), known);
    assert_ne!(first(&key(&place), &two, &short), known);
    let output = weir(&["read", "--anonymise=@/does/not/exist"], &[&file]);
    assert!(stderr(&output).contains("cannot read the key"), "{}", stderr(&output));
}

#[test]
fn nothing_else_in_the_file_tells() {
    let place = Place::new();
    let [file, copy, other] = ["a.pcapng", "b.pcapng", "c.pcap"].map(|name| place.path(name));
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let text = |body: Bytes, codes: &[u16]| {
            codes.iter().fold(body, |body, code| body.option(*code, b"secret.example"))
        };
        let section = Bytes::new(order).block(0x0a0d_0d0a, |body| {
            text(body.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX), &[1, 2, 3, 4, 77]).end()
        });
        let described = section.block(1, |body| {
            // Name, description, IPv4, MAC, filter, operating system, hardware.
            let body = text(body.u16(1).u16(0).u32(65_535), &[1, 2, 3, 12, 15]);
            body.option(4, &[203, 0, 113, 77, 255, 0, 0, 0])
                .option(6, &[0, 0x11, 0x22, 0x33, 0x44, 0x55])
                .end()
        });
        // A name for an address, secrets, a custom block.
        let named = described.block(4, |body| {
            body.u16(1).u16(19).padded(&[&[203, 0, 113, 77][..], b"secret.example\0"].concat()).u32(0)
        });
        let secrets = named.block(10, |body| body.u32(0x544c_534b).u32(14).padded(b"secret.example"));
        let custom = secrets.block(0xbad, |body| body.u32(1).padded(b"secret.example"));
        let empty = Bytes::new(order).section().interface(None).bytes;
        let records = told(order);
        let packets = custom.raw(&records[empty.len()..]);
        let length = u32::try_from(frames()[0].len()).expect("short");
        let commented = packets.block(6, |body| {
            let body = body.u32(0).time(1).u32(length).u32(length).padded(&frames()[0]);
            text(body, &[1, 77]).option(2, &Bytes::new(order).u32(0x0000_0009).bytes).end()
        });
        let counted = commented.block(5, |body| text(body.u32(0).u32(0).u32(0), &[1]).end());
        fs::write(&file, counted.bytes).expect("a file");
        let output = weir(&["read", &key(&place), "--zero-payload", "--sort", "none", "-w"], &[&copy, &file]);
        let said = stderr(&output);
        assert!(output.status.success(), "{said}");
        for what in
            ["descriptions of interfaces and sections", "comments", "names, secrets and custom blocks"]
        {
            assert!(said.contains(what), "{what}: {said}");
        }
        let bytes = fs::read(&copy).expect("a file");
        for secret in SECRETS {
            assert!(!has(&bytes, secret), "{order:?}: {secret:x?}");
        }
        assert!(!has(&bytes, b"Linux"), "the system of this machine");
        let names =
            ["frame.packet_flags_direction", "frame.drop_count", "frame.interface_queue", "frame.comment"];
        assert_eq!(
            fields(&copy, &names),
            ["0x00000001\t17\t3\t", "0x00000000\t\t\t", "\t\t\t", "0x00000001\t\t\t"],
            "{order:?}"
        );
    }
    // Link layers that are not understood: 802.11, and that of `any`.
    let cooked =
        [&[0, 0, 0, 1, 0, 6, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 9, 9, 8, 0][..], &frames()[0][14..]].concat();
    for (link_type, frame, told) in [(105, &frames()[0], "1 packet overwritten"), (113, &cooked, "")] {
        write(&other, Format::Pcap { nanoseconds: false }, &[("", link_type)], &[(0, EPOCH, frame, 0)]);
        let output = weir(&["read", &key(&place), "-w"], &[&copy, &other]);
        let bytes = fs::read(&copy).expect("a file");
        assert!(SECRETS[..6].iter().all(|secret| !has(&bytes, secret)) && stderr(&output).contains(told));
    }
    assert!(judge("capinfos", &["-c"], &[&copy]).contains('1'));
}
