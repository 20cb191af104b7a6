//! Copies with changes: `weir read --map-ip ... -w`, judged by tcprewrite and tshark.

use std::fs;
use std::path::Path;

use weir::reader::ByteOrder;
use weir::writer::Format;

use crate::notes::{hashes, seen, told};
use crate::support::{EPOCH, Place, judge, packets, stderr, succeeds, weir, write};

/// Test traffic in a file.
fn generated(path: &Path, options: &str) {
    let words: Vec<_> = ["gen", "-q"].into_iter().chain(options.split(' ')).chain(["-w"]).collect();
    succeeds(&words, &[path]);
}

/// What tshark finds of each packet, with checksums verified.
pub(crate) fn fields(file: &Path, names: &[&str]) -> Vec<String> {
    let mut args = vec!["-n", "-T", "fields"];
    for option in ["ip.check_checksum:TRUE", "udp.check_checksum:TRUE", "tcp.check_checksum:TRUE"] {
        args.extend(["-o", option]);
    }
    names.iter().for_each(|name| args.extend(["-e", *name]));
    args.push("-r");
    judge("tshark", &args, &[file]).lines().map(str::to_owned).collect()
}

#[test]
fn copies_are_those_of_tcprewrite() {
    let place = Place::new();
    let [file, ours, theirs] = ["a.pcap", "ours.pcap", "theirs.pcap"].map(|name| place.path(name));
    for protocol in ["udp", "tcp:syn,ack", "icmp"] {
        generated(&file, &format!("--proto {protocol} --flows 50 -c 200 --size 80-300 --src 198.18.0.0/16"));
        let maps = ["--pnat=198.18.0.0/16:10.1.0.0/16,198.19.0.0/16:10.2.0.0/16", "--portmap=9:4000"];
        let (input, output) =
            (format!("--infile={}", file.display()), format!("--outfile={}", theirs.display()));
        let macs = ["--enet-dmac=02:77:00:00:00:09", "--enet-smac=02:77:00:00:00:08"];
        judge("tcprewrite", &[&maps[..], &macs, &[&input, &output]].concat(), &[]);
        let maps =
            ["--map-ip=198.18.0.0/16=10.1.0.0/16", "--map-ip=198.19.0.0/16=10.2.0.0/16", "--map-port=9=4000"];
        let macs = ["--map-mac=02:00:00:00:00:02=02:77:00:00:00:09", "--src-mac=02:77:00:00:00:08"];
        let args = [&["read"], &maps[..], &macs].concat();
        succeeds(&[&args[..], &["-w"]].concat(), &[&ours, &file]);
        // tcprewrite writes microseconds.
        assert!(
            packets(&ours).last() == packets(&theirs).last(),
            "{protocol}: tcprewrite makes other packets"
        );
        // What is printed is what is written.
        let printed = succeeds(&[&args[..], &["-e"]].concat(), &[&file]);
        assert_eq!(printed, succeeds(&["read", "-e"], &[&ours]), "{protocol}");
    }
}

#[test]
fn all_else_of_a_record_stays() {
    let place = Place::new();
    let [file, copy] = ["a.pcapng", "b.pcapng"].map(|name| place.path(name));
    for order in [ByteOrder::Little, ByteOrder::Big] {
        fs::write(&file, told(order)).expect("a file");
        succeeds(&["read", "--vlan", "7", "-w"], &[&copy, &file]);
        let longer = |line: &str| {
            let mut parts: Vec<String> = line.split('\t').map(str::to_owned).collect();
            for length in &mut parts[1..3] {
                *length = (length.parse::<u32>().expect("a number") + 4).to_string();
            }
            parts.join("\t") + "\n"
        };
        assert_eq!(seen(&copy), seen(&file).lines().map(longer).collect::<String>(), "{order:?}");
        assert_eq!((hashes(&file).trim(), hashes(&copy).trim()), ("2\tdeadbeef", ""), "hashes no longer fit");
        assert_eq!(fields(&copy, &["vlan.id"]), ["7"; 3]);
        // Cut once it is changed.
        succeeds(&["read", "--vlan", "7", "-s", "20", "-w"], &[&copy, &file]);
        let lengths = fields(&copy, &["frame.cap_len", "vlan.id", "frame.len"]);
        let original = &fields(&file, &["frame.len"])[0].parse::<u32>().expect("a number");
        assert_eq!(lengths[0], format!("20\t7\t{}", original + 4));
    }
}

#[test]
fn filters_see_packets_before_the_change() {
    let place = Place::new();
    let [file, copy] = ["a.pcap", "b.pcap"].map(|name| place.path(name));
    generated(&file, "--proto udp --flows 2 -c 20 --src 198.18.0.0/16");
    let args = ["read", "--map-ip=198.18.0.1=10.0.0.1", "-f", "host 198.18.0.1", "-c", "7", "-w"];
    succeeds(&args, &[&copy, &file]);
    assert_eq!(fields(&copy, &["ip.src"]), ["10.0.0.1"; 7]);
    assert_eq!(succeeds(&["read", "--map-ip=198.18.0.1=10.0.0.1", "--count"], &[&file]), "20\n");
}

#[test]
fn cooked_packets_get_headers_and_long_ones_are_cut() {
    let place = Place::new();
    let [file, copy, long] = ["a.pcapng", "b.pcapng", "c.pcap"].map(|name| place.path(name));
    generated(&long, "--proto tcp:ack -c 1 --size 3000");
    let bytes = fs::read(&long).expect("a file");
    let packet = &bytes[24 + 16 + 14..];
    let cooked = [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 8, 0][..], packet].concat();
    // CAN, which Ethernet cannot carry.
    let can = [&[0, 0, 1, 24, 0, 0][..], &[0; 8], &[0, 0xc], &[0; 16]].concat();
    let all = [(0, EPOCH, &cooked[..], 3), (0, EPOCH + 1000, &can, 0)];
    write(&file, Format::Pcapng, &[("any", 113)], &all);
    let output = weir(&["read", "--dst-mac", "02:00:00:00:00:0a", "--segment", "-w"], &[&copy, &file]);
    assert!(output.status.success());
    let told = stderr(&output);
    assert!(told.contains("1 packet cut into 3 segments"), "{told}");
    let names =
        ["frame.encap_type", "eth.src", "ip.len", "tcp.checksum.status", "frame.drop_count", "frame.len"];
    let mac = "1\t02:00:00:00:00:09";
    assert_eq!(
        fields(&copy, &names),
        [
            format!("{mac}\t1500\t1\t3\t1514"),
            format!("{mac}\t1500\t1\t\t1514"),
            format!("{mac}\t66\t1\t\t80"),
            "25\t\t\t\t\t32".to_owned()
        ]
    );
    let output = weir(&["read", "--vlan", "7", "--repair", "-w"], &[&copy, &file]);
    assert!(stderr(&output).contains("cannot rewrite packets with --repair"), "{}", stderr(&output));
}

#[test]
fn packets_change_whatever_link_layer_is_in_front_of_them() {
    let place = Place::new();
    let [file, copy, one] = ["a.pcapng", "b.pcapng", "c.pcap"].map(|name| place.path(name));
    generated(&one, "--proto tcp:ack -c 1 --size 100 --src 198.18.0.0/16");
    let bytes = fs::read(&one).expect("a file");
    let (ethernet, packet) = bytes[24 + 16..].split_at(14);
    let wlan = [&[8][..], &[0; 23], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat();
    let length = u8::try_from(packet.len() + 4).expect("it is short");
    let headers: [(u16, &[u8]); 9] = [
        (1, ethernet),
        (9, &[0x21]),
        (50, &[0xff, 3, 0, 0x21]),
        (104, &[0x0f, 0, 8, 0]),
        (105, &wlan),
        (107, &[0x18, 0x41, 3, 0xcc]),
        (127, &[&[0, 0, 8, 0, 0, 0, 0, 0], &wlan[..]].concat()),
        (192, &[&[0, 0, 8, 0, 105, 0, 0, 0], &wlan[..]].concat()),
        (239, &[2, 0, 0, 5, length, 0, 9, 0]),
    ];
    let frames = headers.map(|(_, header)| [header, packet].concat());
    let names: Vec<(&str, u16)> = headers.iter().map(|(link_type, _)| ("", *link_type)).collect();
    let all: Vec<_> =
        (0..).zip(&frames).map(|(interface, frame)| (interface, EPOCH, &frame[..], 0)).collect();
    write(&file, Format::Pcapng, &names, &all);
    let output = weir(&["read", "--map-ip=198.18.0.0/16=10.1.0.0/16", "-w"], &[&copy, &file]);
    assert!(output.status.success() && !stderr(&output).contains("stay"), "{}", stderr(&output));
    let told = fields(&copy, &["ip.src", "ip.checksum.status", "tcp.checksum.status"]);
    assert_eq!(told, vec![&told[0][..]; headers.len()]);
    assert!(told[0].starts_with("10.1.") && told[0].ends_with("\t1\t1"), "{told:?}");
    // And all are of one flow.
    let part = place.path("part.pcapng");
    succeeds(&["read", "--split-by", "flow", "-w"], &[&part, &copy]);
    let parts = place.names().into_iter().filter(|name| name.starts_with("part-")).count();
    assert_eq!(parts, 1);
    // With Ethernet in front of each.
    succeeds(&["read", "--dst-mac", "02:00:00:00:00:0a", "-w"], &[&copy, &file]);
    let told = fields(&copy, &["eth.dst", "ip.src", "tcp.checksum.status", "ip.len"]);
    assert_eq!(told, vec![&told[0][..]; headers.len()]);
    assert!(told[0].starts_with("02:00:00:00:00:0a\t198.18."), "{told:?}");
}

#[test]
fn what_weir_does_not_look_into_is_told() {
    let place = Place::new();
    let [file, copy] = ["a.pcap", "b.pcap"].map(|name| place.path(name));
    let udp = |port: u16, payload: &[u8]| {
        let length = u16::try_from(8 + payload.len()).expect("short").to_be_bytes();
        [&[0x90, 0][..], &port.to_be_bytes(), &length, &[0, 0], payload].concat()
    };
    let ip = |protocol: u8, payload: &[u8]| {
        let length = u16::try_from(20 + payload.len()).expect("short").to_be_bytes();
        let ends = [10, 0, 0, 1, 10, 0, 0, 2];
        [&[0x45, 0][..], &length, &[0, 0, 0, 0, 64, protocol, 0, 0], &ends, payload].concat()
    };
    let ethernet = |kind: [u8; 2], packet: &[u8]| [&[2; 12][..], &kind, packet].concat();
    let inside = ip(17, &udp(9, b"plain"));
    let frames = [
        ethernet([8, 0], &inside),
        ethernet([8, 0], &ip(47, &[&[0, 0, 8, 0][..], &inside].concat())),
        ethernet([8, 0], &ip(4, &inside)),
        ethernet([8, 0], &ip(17, &udp(4789, &[8; 60]))),
        ethernet([0x88, 0x47], &[&[0, 1, 1, 64][..], &inside].concat()),
        ethernet([8, 0], &ip(17, &udp(53, &[1; 20]))),
    ];
    let packets: Vec<_> = frames.iter().map(|frame| (0, EPOCH, &frame[..], 0)).collect();
    write(&file, Format::Pcap { nanoseconds: false }, &[("", 1)], &packets);
    let said = |args: &[&str]| stderr(&weir(&[&["read"], args, &["-w"]].concat(), &[&copy, &file]));
    let map = "--map-ip=10.0.0.0/8=172.16.0.0/12";
    let told = said(&[map]);
    assert!(told.contains("3 packets with another packet inside (GRE, IP in IP, VXLAN), in which"), "{told}");
    assert!(told.contains("1 packet of protocols that tell addresses (DNS): "), "{told}");
    let addresses = fields(&copy, &["ip.src"]);
    assert_eq!(
        (addresses[1].as_str(), addresses[4].as_str()),
        ("172.16.0.1,10.0.0.1", "172.16.0.1"),
        "behind MPLS"
    );
    for none in [&[map, "--zero-payload"][..], &["--map-port=1=2"]] {
        let told = said(none);
        assert!(!told.contains("inside") && !told.contains("protocols that tell"), "{told}");
    }
    let told = said(&["--anonymise=correct horse"]);
    assert!(told.contains("3 packets with another packet inside (GRE, IP in IP, VXLAN), in which"), "{told}");
    assert!(told.contains("3 packets with payloads, in which"), "{told}");
}
