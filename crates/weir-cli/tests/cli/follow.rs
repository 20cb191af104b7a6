//! `weir read --follow` beside the capture that writes the files.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::Command;

use weir_lab::{Network, require_root};

use crate::harness::{Running, capture, directory, network, path, root_tests, run, send, until, weir};

/// A reader of `file` that waits for more.
fn follow(network: &Network, args: &[&str]) -> Running {
    Running::spawn(network, &mut weir(&[&["read", "--follow"], args].concat()))
}

root_tests! { a_growing_file_is_followed_to_every_packet:
    root_a_growing_file_is_followed_to_every_packet_pcapng("all.pcapng", &[]);
    root_a_growing_file_is_followed_to_every_packet_pcap("all.pcap", &[]);
    root_a_growing_file_is_followed_to_every_packet_zstd("all.pcapng.zst", &["-U"]);
}

fn a_growing_file_is_followed_to_every_packet(name: &str, args: &[&str]) {
    let (network, directory) = (network(), directory());
    let file = path(&directory, name);
    let running = capture(&network, &[&["-w", &file], args].concat());
    // The first packets make sure that there is a file with a header.
    send(&network, 3);
    until("the file", || fs::metadata(&file).ok().filter(|file| file.len() > 0).ok_or_else(String::new));
    let reader = follow(&network, &[&file, "-t", "--", "udp"]);
    reader.wait_for_lines(3);
    send(&network, 1);
    reader.wait_for_lines(4);
    send(&network, 20_000);
    reader.wait_for_lines(20_004);
    running.interrupt().succeeded();
    send(&network, 1);
    let read = run(&network, &["read", &file, "-t"]).succeeded();
    let followed = reader.interrupt();
    assert_eq!(followed.stdout, read.stdout, "{}", followed.stderr);
}

root_tests! { a_ring_is_followed_from_file_to_file:
    root_a_ring_is_followed_from_file_to_file_of_weir(&["weir"], "ring.pcapng");
    root_a_ring_is_followed_from_file_to_file_of_tcpdump(&["tcpdump"], "ring.pcap");
}

/// Two writers, each with its own way of naming: the file grows by packets of 60 bytes, about ten thousand a file.
fn a_ring_is_followed_from_file_to_file(writer: &[&str], name: &str) {
    const ROUNDS: u64 = 12;
    const PACKETS: u64 = 5_000;
    let (network, directory) = (network(), directory());
    let ring = path(&directory, name);
    let running = if writer == ["weir"] {
        capture(&network, &["-w", &ring, "-C", "1MB", "-W", "4", "-U"])
    } else {
        let mut tcpdump = Command::new("tcpdump");
        tcpdump
            .args(["-i", "rx0", "-n", "-U", "-Z", "root", "-B", "16384", "-w", &ring, "-C", "1", "-W", "4"]);
        let running = Running::spawn(&network, &mut tcpdump);
        running.wait_for("listening on");
        running
    };
    send(&network, 1);
    until("the first file", || {
        let mut files = fs::read_dir(directory.path()).expect("a directory").flatten();
        let has_packets = |file: &fs::DirEntry| file.metadata().is_ok_and(|there| there.len() > 24);
        files.find(has_packets).map(|_| ()).ok_or_else(|| "none".to_owned())
    });
    // The name of the ring, which no file has.
    let reader = follow(&network, &[&ring, "--json"]);
    reader.wait_for_lines(1);
    let mut sent = 1;
    for _ in 0..ROUNDS {
        send(&network, PACKETS);
        sent += PACKETS;
        reader.wait_for_lines(usize::try_from(sent).expect("few"));
    }
    running.interrupt();
    let followed = reader.interrupt();
    let text = String::from_utf8_lossy(&followed.stdout).into_owned();
    assert_eq!(text.lines().count() as u64, sent, "{}", followed.stderr);
    // All come from one interface, and are numbered through.
    let last = text.lines().last().expect("a line");
    assert!(last.contains(&format!("\"number\":{sent},")) && last.contains("\"interface_id\":0,"), "{last}");
    assert!(fs::read_dir(directory.path()).expect("a directory").count() == 4, "the ring went round");
}

#[test]
fn root_bytes_that_come_late_are_waited_for() {
    if !require_root("root_bytes_that_come_late_are_waited_for") {
        return;
    }
    let (network, directory) = (network(), directory());
    let (whole, file) = (path(&directory, "whole.pcapng"), path(&directory, "holes.pcapng"));
    let running = capture(&network, &["-w", &whole, "-c", "300"]);
    send(&network, 300);
    running.wait().succeeded();
    let bytes = fs::read(&whole).expect("the file");
    // The second half is there first, once with a hole of zeros in the middle of a page, once with one of pages.
    for from in [1000, 4096] {
        let (half, end) = (bytes.len() / 2, bytes.len());
        let mut growing = File::create(&file).expect("a file");
        growing.write_all(&bytes[..from]).expect("room");
        std::os::unix::fs::FileExt::write_all_at(&growing, &bytes[half..end], half as u64).expect("room");
        let reader = follow(&network, &[&file]);
        reader.wait_for_lines(1);
        std::os::unix::fs::FileExt::write_all_at(&growing, &bytes[from..half], from as u64).expect("room");
        reader.wait_for_lines(300);
        let ended = reader.interrupt();
        assert!(ended.stderr.is_empty(), "{}", ended.stderr);
    }
    // Zeros that stay are damage.
    let mut damaged = bytes[..1000].to_vec();
    damaged.resize(3000, 0);
    fs::write(&file, damaged).expect("a file");
    let ended = follow(&network, &[&file]).wait();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("holes.pcapng"), "{}", ended.stderr);

    run(&network, &["read", "--follow", &path(&directory, "none.pcapng")]).failed(&["none.pcapng"]);
    let several = run(&network, &["read", "--follow", &whole, &file]);
    assert_eq!(several.status.code(), Some(2), "{}", several.stderr);
}
