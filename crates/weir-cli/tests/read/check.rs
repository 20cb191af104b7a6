//! `weir read --check`, judged by tshark where it can be.

use serde_json::Value;
use weir::Packet;
use weir::writer::{Format, WriterOptions};
use weir_lab::Traffic;
use weir_traffic::Signature;

use crate::signed::signed;
use crate::support::{
    EPOCH, Place, frames, judge, packet, stdout, succeeds, weir, write_packets, write_with,
};

const SENT: u64 = 500;

/// When a frame arrives.
fn arrives(sequence: u64) -> u64 {
    EPOCH + sequence * 1_000 + 300 + sequence % 7
}

/// Frames of stream 3, sent a microsecond apart. Of each 100 one has a wrong byte.
fn made() -> Vec<Vec<u8>> {
    let traffic = Traffic::new(65).expect("a size");
    let made = |sequence| {
        let time = EPOCH + sequence * 1_000;
        let mut frame = signed(&traffic, 0, Signature { stream: 3, sequence, time });
        frame[63] ^= if sequence % 100 == 50 { 0x40 } else { 0 };
        frame
    };
    (0..SENT).map(made).collect()
}

#[test]
fn a_file_is_checked_as_tshark_and_the_signatures_tell() {
    let place = Place::new();
    let (made, others) = (made(), frames());
    let mut packets: Vec<Packet<'_>> =
        (0..).zip(&made).map(|(sequence, frame)| packet(arrives(sequence), frame)).collect();
    packets.extend((0..).zip(&others).map(|(number, frame)| packet(arrives(SENT) + number, frame)));
    for (name, format) in [("a.pcapng", Format::Pcapng), ("a.pcap", Format::Pcap { nanoseconds: true })] {
        let file = place.path(name);
        write_packets(&file, format, &[("eth0", 1)], &packets);
        let output = weir(&["read", "--check", "--json"], &[&file]);
        let text = stdout(&output);
        assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
        let check: Value = serde_json::from_str(&text).expect("JSON");
        let bad = judge(
            "tshark",
            &["-o", "udp.check_checksum:TRUE", "-Y", "udp.checksum.status==0 && udp.length==31", "-r"],
            &[&file],
        );
        assert_eq!(check["corrupt"], bad.lines().count(), "{bad}");
        assert_eq!((&check["corrupt"], &check["intact"]), (&5.into(), &(SENT - 5).into()));
        assert_eq!((&check["other"], &check["missing"]), (&others.len().into(), &0.into()));
        let latency = &check["latency"];
        assert_eq!((&latency["min_ns"], &latency["max_ns"]), (&300.into(), &306.into()), "{latency}");
    }
    // Without what a filter leaves out, and for people.
    let file = place.path("a.pcap");
    let text = succeeds(&["read", "--check", "--expect", "50", "-c", "50"], &[&file]);
    for part in ["50 packets = 50 intact + 0 dup", "Nothing missing of 50 expected; the file does not say"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let output = weir(&["read", "--check", "-f", "not udp"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!stdout(&output).contains("stream"), "{}", stdout(&output));
}

#[test]
fn frames_of_several_queues_and_files_are_in_the_order_of_time() {
    let place = Place::new();
    let made = made();
    let (one, other) = (place.path("one.pcapng"), place.path("other.pcapng"));
    let sound = || (0..50).zip(&made).map(|(sequence, frame)| packet(arrives(sequence), frame));
    // First those of one queue, then those of the other, as a capture of two queues may write them.
    let queue = |queue| {
        let some = sound().filter(move |packet| packet.timestamp / 1_000 % 2 == u64::from(queue));
        some.map(move |packet| weir::with!(packet, queue))
    };
    let options = weir::with!(WriterOptions::default(), user_application = "weir 0.1.0".to_owned());
    write_with(&one, &options, &[("eth0", 1)], &queue(0).chain(queue(1)).collect::<Vec<_>>());
    let reordered = |args: &[&str], files: &[&std::path::Path]| {
        let text = succeeds(&[&["read", "--check", "--json"], args].concat(), files);
        let check: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(check["intact"], 50, "{check}");
        check["reordered"].as_u64().expect("a number")
    };
    assert_eq!(reordered(&[], &[&one]), 0);
    assert_eq!(reordered(&["--sort", "none"], &[&one]), 24);
    write_packets(&one, Format::Pcapng, &[("eth0", 1)], &queue(0).collect::<Vec<_>>());
    write_packets(&other, Format::Pcapng, &[("eth1", 1)], &queue(1).collect::<Vec<_>>());
    assert_eq!(reordered(&[], &[&other, &one]), 0);
}
