//! `weir read --follow` beside the capture that writes the files.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::Value;
use weir_lab::{Network, root_test};

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
    let [followed_lines, lines] =
        [&followed, &read].map(|output| output.stdout.iter().filter(|&&byte| byte == b'\n').count());
    assert_eq!(followed_lines, lines, "{}", followed.stderr);
    assert!(followed.stdout == read.stdout, "{}", followed.stderr);
}

root_tests! { a_ring_is_followed_from_file_to_file:
    root_a_ring_is_followed_from_file_to_file_of_weir(&["weir"], "ring.pcapng");
    root_a_ring_is_followed_from_file_to_file_without_times(&["weir", "--timestamps", "none"], "ring.pcapng");
    root_a_ring_is_followed_from_file_to_file_of_tcpdump(&["tcpdump"], "ring.pcap");
}

/// Two writers, each with its own way of naming: the file grows by packets of 60 bytes, about ten thousand a file.
fn a_ring_is_followed_from_file_to_file(writer: &[&str], name: &str) {
    const ROUNDS: u64 = 12;
    const PACKETS: u64 = 5_000;
    let (network, directory) = (network(), directory());
    let ring = path(&directory, name);
    let running = if writer[0] == "weir" {
        capture(&network, &[&["-w", &ring, "-C", "1MB", "-W", "4", "-U"], &writer[1..]].concat())
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
    assert!(!followed.stderr.contains("missing"), "{}", followed.stderr);
    // All come from one interface, and are numbered through.
    let last = text.lines().last().expect("a line");
    assert!(last.contains(&format!("\"number\":{sent},")) && last.contains("\"interface_id\":0,"), "{last}");
    assert!(fs::read_dir(directory.path()).expect("a directory").count() == 4, "the ring went round");
}

#[root_test]
fn root_bytes_that_come_late_are_waited_for() {
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

/// A pcap file of small packets, one in each of these seconds.
fn packets(seconds: std::ops::Range<u32>) -> Vec<u8> {
    // Version 2.4, 65535 bytes, Ethernet.
    let mut words = vec![0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 1];
    for second in seconds {
        words.extend([second, 0, 16, 16, 0, 0, 0, 0]);
    }
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[test]
fn a_file_that_is_deleted_while_it_is_read_is_left() {
    const MANY: u32 = 20_000;
    let directory = directory();
    let file = |number: u32| path(&directory, &format!("ring{number}.pcap"));
    fs::write(file(0), packets(0..MANY)).expect("room");
    let mut reader = weir(&["read", "--follow", &file(0)]);
    let mut reader = reader.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir");
    let mut lines = BufReader::new(reader.stdout.take().expect("a pipe")).lines();
    lines.next().expect("a line").expect("text");
    // The pipe holds less than the rest of the file, so the reader is far from its end.
    fs::remove_file(file(0)).expect("the file");
    fs::write(file(2), packets(MANY..MANY + 1)).expect("room");
    for _ in 0..MANY {
        lines.next().expect("a line").expect("text");
    }
    reader.kill().expect("it runs");
    reader.wait().expect("it ends");
    let mut said = String::new();
    reader.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(said.contains("ring0.pcap was deleted") && said.contains("ring2.pcap may be missing"), "{said}");
}

#[test]
fn following_ends_after_the_last_time_that_is_wanted() {
    let directory = directory();
    let file = path(&directory, "growing.pcap");
    fs::write(&file, packets(0..5)).expect("room");
    let ended = weir(&["read", "--follow", &file, "--to", "+2s"]).output().expect("weir");
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && text.lines().count() == 2, "{text}");
}

/// Returns the seconds of the packets that lines of `-tt` or marks stand for: those of packets, and how many marks there are.
fn seconds(text: &str) -> (Vec<u32>, usize) {
    let is_mark =
        |line: &&str| line.starts_with("[at least ") && line.ends_with(" bytes not read: overwritten]");
    let marks = text.lines().filter(is_mark).count();
    let packets = text.lines().filter(|line| !is_mark(line));
    (packets.map(|line| line.split('.').next().expect("a time").parse().expect("seconds")).collect(), marks)
}

#[test]
fn a_ring_that_is_overwritten_in_place_is_followed_with_a_mark() {
    const MANY: u32 = 20_000;
    let directory = directory();
    let file = |number: u32| path(&directory, &format!("ring.pcap{number}"));
    fs::write(file(0), packets(0..MANY)).expect("room");
    let mut reader = weir(&["read", "--follow", &file(0), "-tt"]);
    let mut reader = reader.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir");
    let mut lines = BufReader::new(reader.stdout.take().expect("a pipe")).lines();
    let mut text = lines.next().expect("a line").expect("text") + "\n";
    // The pipe holds less than the rest of the file, so the reader is far from its end. It is begun anew: first shorter than
    // what was read, later longer.
    fs::write(file(1), packets(MANY..MANY + 10)).expect("room");
    fs::write(file(0), packets(MANY + 10..MANY + 12)).expect("room");
    let mut growing = File::options().append(true).open(file(0)).expect("the file");
    growing.write_all(&packets(MANY + 12..3 * MANY)[24..]).expect("room");
    let last = format!("{}.", 3 * MANY - 1);
    for line in lines {
        let line = line.expect("text");
        text += &format!("{line}\n");
        if line.starts_with(&last) {
            break;
        }
    }
    reader.kill().expect("it runs");
    reader.wait().expect("it ends");
    let (seconds, marks) = seconds(&text);
    assert_eq!(marks, 1, "{marks}");
    let read = seconds.iter().take_while(|second| **second < MANY).count();
    assert!(read < MANY as usize, "{read}");
    // What was read of the old file, then all of the next one and of the new one.
    let expected: Vec<u32> = (0..MANY).take(read).chain(MANY..3 * MANY).collect();
    assert!(seconds == expected, "{:?}", seconds.windows(2).find(|pair| pair[0] + 1 != pair[1]));
    let mark = text.lines().find(|line| line.starts_with("[at least ")).expect("a mark");
    let bytes: String = mark.chars().filter(char::is_ascii_digit).collect();
    assert_eq!(bytes.parse(), Ok((MANY as usize - read) * 32), "{mark}");
    let mut said = String::new();
    reader.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(said.is_empty(), "{said}");
}

#[root_test]
fn root_a_ring_of_tcpdump_that_is_faster_leaves_marks() {
    let (network, directory) = (network(), directory());
    let ring = path(&directory, "ring.pcap");
    let mut tcpdump = Command::new("tcpdump");
    tcpdump.args(["-i", "rx0", "-n", "-U", "-Z", "root", "-B", "16384", "-w", &ring, "-C", "1", "-W", "2"]);
    let running = Running::spawn(&network, &mut tcpdump);
    running.wait_for("listening on");
    send(&network, 1);
    let first = format!("{ring}0");
    until("the first file", || {
        fs::metadata(&first).ok().filter(|file| file.len() > 24).map(|_| ()).ok_or_else(String::new)
    });
    let mut reader = weir(&["read", "--follow", &ring, "--json"]);
    let mut reader = reader.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir");
    let mut lines = BufReader::new(reader.stdout.take().expect("a pipe")).lines();
    let mut line =
        || -> Value { serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON") };
    let time = |line: &Value| line["epoch"].as_str().map(str::to_owned);
    let mut last = time(&line()).expect("a packet");
    // Ten times as much as the ring holds, while nobody reads the lines.
    for _ in 0..10 {
        send(&network, 20_000);
    }
    let mut marks = 0;
    while marks == 0 {
        let line = line();
        match time(&line) {
            Some(time) => assert!(time >= last, "{time} after {last}"),
            None => {
                assert_eq!(line["type"], "not_read", "{line}");
                marks += 1;
            }
        }
        last = time(&line).unwrap_or(last);
    }
    // It has caught up once it shows what comes now.
    send(&network, 1);
    running.interrupt();
    let newest = run(&network, &["read", &newest(&ring), "--json"]).succeeded();
    let newest: Value = serde_json::from_slice(
        newest.stdout.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().expect("a line"),
    )
    .expect("JSON");
    let newest = time(&newest).expect("a packet");
    while last < newest {
        let line = line();
        assert!(time(&line).is_none_or(|time| time >= last), "{line} after {last}");
        last = time(&line).unwrap_or(last);
    }
    assert_eq!(last, newest);
    reader.kill().expect("it runs");
    reader.wait().expect("it ends");
    let mut said = String::new();
    reader.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(said.is_empty(), "{said}");
}

/// The file of a ring of two that was written last.
fn newest(ring: &str) -> String {
    let files = [0, 1].map(|number| format!("{ring}{number}"));
    let written = |file: &String| fs::metadata(file).and_then(|file| file.modified()).expect("a file");
    files.into_iter().max_by_key(written).expect("a file")
}
