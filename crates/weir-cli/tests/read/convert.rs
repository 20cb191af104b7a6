//! Files from files: formats, merging, what is kept and what cannot be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use weir::reader::InterfaceStatistics;
use weir::writer::{Format, Writer, WriterOptions};
use weir::{CaptureStats, FileInterface};

use crate::support::{
    EPOCH, Guarded, Place, frames, judge, packet, packets, pcap, stderr, succeeds, weir, write,
};

const NANOSECONDS: Format = Format::Pcap { nanoseconds: true };

#[test]
fn a_round_trip_gives_the_same_bytes() {
    let place = Place::new();
    let [original, between, back] = ["a.pcap", "b.pcapng", "c.pcap"].map(|name| place.path(name));
    pcap(&original);
    let said = |args: &[&str], files: &[&Path]| stderr(&weir(args, files));
    assert!(said(&["read", "-w"], &[&between, &original]).ends_with("b.pcapng\n"));
    assert_eq!(packets(&between), packets(&original));
    assert_eq!(said(&["read", "-q", "--micro", "-w"], &[&back, &between]), "");
    assert!(fs::read(&original).expect("a file") == fs::read(&back).expect("a file"));
}

#[test]
fn conversions_are_those_of_editcap_and_tcpdump() {
    let place = Place::new();
    let [original, pcapng, theirs, ours, dumped] =
        ["a.pcap", "b.pcapng", "c.pcap", "d.pcap", "e.pcap"].map(|name| place.path(name));
    pcap(&original);
    judge("editcap", &["-F", "pcapng"], &[&original, &pcapng]);
    judge("editcap", &["-F", "pcap"], &[&pcapng, &theirs]);
    judge("tcpdump", &["-r"], &[&pcapng, "-w".as_ref(), &dumped]);
    succeeds(&["read", "-w"], &[&ours, &pcapng]);
    let ours = fs::read(&ours).expect("a file");
    assert!(ours == fs::read(&theirs).expect("a file"), "not the bytes of editcap");
    assert!(ours == fs::read(&dumped).expect("a file"), "not the bytes of tcpdump");
}

#[test]
fn compressed_input_and_standard_output() {
    let place = Place::new();
    let [plain, packed] = ["a.pcap", "b.pcap.gz"].map(|name| place.path(name));
    pcap(&plain);
    let output = std::process::Command::new("gzip").arg("-c").arg(&plain).output().expect("gzip");
    fs::write(&packed, output.stdout).expect("a file");
    let output = weir(&["read", "-w", "-"], &[&packed]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stdout == fs::read(&plain).expect("a file"), "not the same bytes");
}

/// A program between two pipes passes packets on as they come: a head at once, a packet before the next one is there.
#[test]
fn packets_of_a_pipe_are_passed_on_before_it_ends() {
    use std::io::{Read as _, Write as _};
    let place = Place::new();
    let [old, new] = ["a.pcap", "a.pcapng"].map(|name| place.path(name));
    pcap(&old);
    succeeds(&["read", "-w"], &[&new, &old]);
    let ways: [(&Path, &[&str]); 5] = [
        (&old, &[]),
        (&old, &["--format", "pcapng"]),
        (&new, &["--", "ip or ip6 or arp"]),
        (&new, &["--format", "pcap"]),
        (&old, &["--compress", "zstd", "-U"]),
    ];
    for (input, options) in ways {
        let bytes = fs::read(input).expect("a file");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["read", "-", "-w", "-", "-q"]).args(options);
        let relay = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut relay = Guarded(relay.expect("weir starts"));
        let (mut ahead, mut behind) =
            (relay.0.stdin.take().expect("a pipe"), relay.0.stdout.take().expect("a pipe"));
        let mut passed = vec![0; 65536];
        // Each part ends inside a packet, so each brings one packet at least.
        for part in bytes.chunks(bytes.len().div_ceil(12)) {
            ahead.write_all(part).expect("room");
            assert!(behind.read(&mut passed).expect("it goes on") > 0, "{options:?}");
        }
        drop(ahead);
        let _rest = behind.read_to_end(&mut passed).expect("it ends");
        assert!(relay.0.wait().expect("it ends").success(), "{options:?}");
    }
}

#[test]
fn compressed_output_is_what_other_programs_unpack() {
    let place = Place::new();
    let plain = place.path("a.pcap");
    pcap(&plain);
    for (name, program) in [("b.pcap.gz", "gzip"), ("b.pcap.zst", "zstd"), ("b.pcap.lz4", "lz4")] {
        let packed = place.path(name);
        succeeds(&["read", "-w"], &[&packed, &plain]);
        let output = std::process::Command::new(program).args(["-q", "-dc"]).arg(&packed).output();
        let output =
            output.unwrap_or_else(|error| panic!("{program}: {error}; `scripts/setup test` installs it"));
        assert!(output.stdout == fs::read(&plain).expect("a file"), "{program}");
        assert_eq!(succeeds(&["read"], &[&packed]), succeeds(&["read"], &[&plain]), "{name}");
    }
}

#[test]
fn merging_is_that_of_mergecap() {
    let place = Place::new();
    let [a, b, c, theirs, ours] =
        ["a.pcap", "b.pcapng", "c.pcap", "theirs.pcapng", "ours.pcapng"].map(|name| place.path(name));
    let frames = frames();
    let every = |step: u64, first: u64| -> Vec<(u32, u64, &[u8], u64)> {
        (0..).zip(&frames).map(|(n, data)| (0, EPOCH + first + n * step, data.as_slice(), 0)).collect()
    };
    write(&a, NANOSECONDS, &[("", 1)], &every(1_000_000, 0));
    write(&b, Format::Pcapng, &[("eth7", 1)], &every(700_000, 3));
    write(&c, NANOSECONDS, &[("", 1)], &every(5_000_000, 500_000_001));
    judge("mergecap", &["-w"], &[&theirs, &a, &b, &c]);
    succeeds(&["read", "--format", "pcapng", "-w"], &[&ours, &a, &b, &c]);
    assert_eq!(packets(&ours), packets(&theirs));
    assert_eq!(
        succeeds(&["read", "-tt", "--nano", "--count"], &[&a, &b, &c]).trim(),
        (frames.len() * 3).to_string()
    );
}

/// A note about the order is for whoever wants one.
#[test]
fn counting_needs_no_order() {
    let place = Place::new();
    let [a, b] = ["a.pcap", "b.pcap"].map(|name| place.path(name));
    let frame = frames().swap_remove(20);
    let back = [2, 0, 1].map(|n| (0, EPOCH + n * 1_000_000_000, frame.as_slice(), 0));
    for file in [&a, &b] {
        write(file, NANOSECONDS, &[("", 1)], &back);
    }
    for (options, noted) in [(&[][..], true), (&["--count"], false), (&["--sort", "none"], false)] {
        let output = weir(&[&["read"], options].concat(), &[&a, &b]);
        let said = stderr(&output);
        assert_eq!(
            said.contains("4 packets out of order; use a longer --sort"),
            noted,
            "{options:?}: {said}"
        );
        assert_eq!(said.is_empty(), !noted, "{options:?}: {said}");
    }
}

/// A capture from several queues is in order queue by queue.
#[test]
fn packets_are_put_in_order() {
    let place = Place::new();
    let [mixed, theirs, ours] = ["m.pcapng", "t.pcapng", "o.pcapng"].map(|name| place.path(name));
    let frames = frames();
    let queue = |number: u64| (0..40).map(move |n| (n * 2 + number) * 1_000_000);
    let times: Vec<u64> = queue(0).chain(queue(1)).collect();
    let packets_of: Vec<_> = times
        .iter()
        .zip(frames.iter().cycle())
        .map(|(time, data)| (0, EPOCH + time, data.as_slice(), 0))
        .collect();
    write(&mixed, Format::Pcapng, &[("eth0", 1)], &packets_of);
    judge("reordercap", &[], &[&mixed, &theirs]);
    succeeds(&["read", "--sort", "1s", "-w"], &[&ours, &mixed]);
    assert_eq!(packets(&ours), packets(&theirs));

    // A file stays as it is. Lines of a file of weir are in order without being asked.
    succeeds(&["read", "-w"], &[&ours, &mixed]);
    assert_eq!(packets(&ours), packets(&mixed));
    let lines = |words: &[&str], file: &Path| succeeds(words, &[file]);
    assert_eq!(lines(&["read", "-tt"], &ours), lines(&["read", "-tt"], &theirs));
    assert_eq!(lines(&["read", "-tt", "--sort", "none"], &ours), lines(&["read", "-tt"], &mixed));
    assert_ne!(lines(&["read", "-tt"], &mixed), lines(&["read", "-tt"], &theirs));
}

#[test]
fn snap_length_and_count() {
    let place = Place::new();
    let [original, ours, theirs] = ["a.pcap", "b.pcap", "c.pcap"].map(|name| place.path(name));
    pcap(&original);
    succeeds(&["read", "-s", "40", "-c", "50", "-w"], &[&ours, &original]);
    judge("editcap", &["-F", "pcap", "-s", "40", "-r"], &[&original, &theirs, "1-50".as_ref()]);
    assert_eq!(packets(&ours), packets(&theirs));
}

#[test]
fn what_a_file_says_of_its_packets_is_kept() {
    let place = Place::new();
    let [original, copy, pcap] = ["a.pcapng", "b.pcapng", "c.pcap"].map(|name| place.path(name));
    let frame = frames().swap_remove(20);
    let packets = [(0, EPOCH, frame.as_slice(), 0), (1, EPOCH + 5, &frame, 99), (1, EPOCH + 6, &frame, 0)];
    write(&original, Format::Pcapng, &[("eth0", 1), ("eth1", 1), ("silent", 101)], &packets);
    succeeds(&["read", "-w"], &[&copy, &original]);
    assert_eq!(succeeds(&["read"], &[&original]), succeeds(&["read"], &[&copy]));
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.interface_name",
        "-e",
        "frame.packet_flags_direction",
        "-e",
        "frame.drop_count",
        "-r",
    ];
    assert_eq!(judge("tshark", &fields, &[&copy]), judge("tshark", &fields, &[&original]));
    assert!(judge("capinfos", &[], &[&copy]).contains("Number of interfaces in file: 3"));

    let output = weir(&["read", "-w"], &[&pcap, &original]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("pcap cannot store interface names, directions, losses"), "{said}");
}

#[test]
fn statistics_and_secrets_are_kept() {
    let place = Place::new();
    let [plain, original, copy, keys] =
        ["a.pcap", "b.pcapng", "c.pcapng", "keys.txt"].map(|name| place.path(name));
    pcap(&plain);
    let key = format!("CLIENT_RANDOM {} {}\n", "ab".repeat(32), "cd".repeat(48));
    fs::write(&keys, &key).expect("a file");
    let secrets = format!("tls,{}", keys.display());
    judge("editcap", &["-F", "pcapng", "--inject-secrets", &secrets], &[&plain, &original]);
    succeeds(&["read", "-w"], &[&copy, &original]);
    let bytes = fs::read(&copy).expect("a file");
    assert!(bytes.windows(key.len()).any(|window| window == key.as_bytes()), "the secrets are gone");
    assert_eq!(packets(&copy), packets(&plain));
}

#[test]
fn a_pcap_file_has_one_link_type() {
    let place = Place::new();
    let [original, pcap] = ["a.pcapng", "b.pcap"].map(|name| place.path(name));
    let frame = frames().swap_remove(20);
    let packets = [(0, EPOCH, frame.as_slice(), 0), (1, EPOCH + 5, &frame[14..], 0)];
    write(&original, Format::Pcapng, &[("eth0", 1), ("tun0", 101)], &packets);
    let output = weir(&["read", "-w"], &[&pcap, &original]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("a single link type") && said.contains("--split-by interface"), "{said}");
}

#[test]
fn no_file_is_written_onto_itself() {
    let place = Place::new();
    let file = place.path("a.pcap");
    pcap(&file);
    let before = fs::read(&file).expect("a file");
    let output = weir(&["read", "-w"], &[&file, &file]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("the same file"), "{}", stderr(&output));
    assert!(before == fs::read(&file).expect("a file"));
}

/// In 2106 the seconds of pcap end: what is later keeps its order, and is told.
#[test]
fn times_that_pcap_cannot_hold() {
    let place = Place::new();
    let original = place.path("a.pcapng");
    let frame = frames().swap_remove(20);
    let end = 4_294_967_296_000_000_000;
    let times = [end - 2_000, end - 1, end, end + 8_000_000_001];
    let packets = times.map(|time| (0, time, frame.as_slice(), 0));
    write(&original, Format::Pcapng, &[("", 1)], &packets);
    for (unit, expected) in [("--nano", ["999998000", "999999999"]), ("--micro", ["999998", "999999"])] {
        let pcap = place.path("b.pcap");
        let output = weir(&["read", unit, "-w"], &[&pcap, &original]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stderr(&output).matches("2 packets after 2106-02-07 06:28:15 UTC").count(), 1, "{unit}");
        let lines = succeeds(&["read", "--json"], &[&pcap]);
        let of = |fraction| format!("4294967295.{fraction:0<9}");
        let [first, last] = expected;
        assert_eq!(lines.lines().count(), 4);
        for (line, fraction) in lines.lines().zip([first, last, last, last]) {
            assert!(line.contains(&of(fraction)), "{unit}: {line}");
        }
    }
    // A file of pcapng has later times.
    let output = weir(&["read", "-w"], &[&place.path("c.pcapng"), &original]);
    assert!(!stderr(&output).contains("2106"), "{}", stderr(&output));
}

/// What `weir capture` writes of several queues, further apart than printing would sort.
#[test]
fn a_capture_of_several_queues_comes_out_in_order() {
    let place = Place::new();
    let [theirs, ours, other, out] =
        ["a.pcapng", "b.pcapng", "c.pcapng", "d.pcapng"].map(|name| place.path(name));
    let frame = frames().swap_remove(20);
    let interfaces = ["eth0", "eth1"]
        .map(|name| weir::with!(FileInterface::new(1), name = Some(name.to_owned()), snap_len = 262_144));
    for (path, application) in [(&ours, "weir 0.1.0"), (&theirs, "someone else")] {
        let options = weir::with!(WriterOptions::default(), user_application = application.to_owned());
        let mut writer = Writer::create(path, &interfaces, &options).expect("a file");
        // Six lanes, each of ten seconds, one behind the other; one of them goes back within itself.
        for lane in 0..6 {
            for n in 0..100 {
                let time = EPOCH + (n ^ u64::from(lane == 4)) * 100_000_000 + u64::from(lane);
                let packet = weir::with!(
                    packet(time, &frame),
                    interface = lane % 2,
                    queue = lane / 2,
                    lost_before = n % 3
                );
                writer.packet(&packet).expect("a packet");
            }
            let statistics =
                InterfaceStatistics { interface: lane % 2, received: Some(7), ..Default::default() };
            writer.interface_statistics(&statistics).expect("statistics");
        }
        writer.finish(&CaptureStats::default()).1.expect("whole");
    }
    let fields =
        ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.interface_name", "-e", "frame.packet_flags"];
    let lines = |path: &Path| {
        let lines = judge("tshark", &[&fields[..], &["-n", "-r"]].concat(), &[path]);
        lines.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut sorted = lines(&ours);
    assert!(!sorted.is_sorted());
    sorted.sort();
    let said = stderr(&weir(&["read", "-w"], &[&out, &ours]));
    assert!(!said.contains("out of order"), "{said}");
    assert_eq!(lines(&out), sorted);
    let told = |path: &Path| {
        let info: serde_json::Value =
            serde_json::from_str(&succeeds(&["info", "--json"], &[path])).expect("JSON");
        (info["ordered"].clone(), info["lost"].clone(), info["interfaces"][1]["received"].clone())
    };
    assert_eq!(told(&ours), (false.into(), 594.into(), 7.into()));
    assert_eq!(told(&out), (true.into(), 594.into(), 7.into()));
    let filtered = weir(&["read", "-w", "-", "-f", "len >= 1"], &[&ours]);
    fs::write(&out, &filtered.stdout).expect("room");
    assert_eq!(lines(&out), sorted, "{}", stderr(&filtered));

    // In a file of somebody else's, and where that is asked for, packets stay where they are.
    for (letters, file) in [(&["read", "-w"][..], &theirs), (&["read", "--sort", "none", "-w"], &ours)] {
        succeeds(letters, &[&other, file]);
        assert_eq!(lines(&other), lines(&ours));
    }

    // Damage is told once, and what is whole is in order.
    let bytes = fs::read(&ours).expect("a file");
    fs::write(&ours, &bytes[..bytes.len() - 5]).expect("a file");
    let damaged = weir(&["read", "-w"], &[&out, &ours]);
    assert_eq!(
        (damaged.status.code(), stderr(&damaged).matches("at byte").count()),
        (Some(1), 1),
        "{}",
        stderr(&damaged)
    );
    assert_eq!(lines(&out), sorted);
}

/// A full disk, another link type, damaged input: each time the files have what is told.
#[test]
fn what_a_failed_conversion_has_written_is_told() {
    let place = Place::new();
    let [many, mixed, cut] = ["many.pcapng", "mixed.pcapng", "cut.pcapng"].map(|name| place.path(name));
    let frame = frames().swap_remove(20);
    let packets: Vec<_> = (0..5_000).map(|n| (0, EPOCH + n, &frame[..], 0)).collect();
    write(&many, Format::Pcapng, &[("eth0", 1)], &packets);
    let other = [(0, EPOCH, &frame[..], 0), (0, EPOCH + 1, &frame, 0), (1, EPOCH + 2, &frame[14..], 0)];
    write(&mixed, Format::Pcapng, &[("eth0", 1), ("tun0", 101)], &other);
    fs::write(&cut, &fs::read(&many).expect("a file")[..100_000]).expect("a file");
    let weir = env!("CARGO_BIN_EXE_weir");
    // Who writes past the limit gets a signal, unless it is ignored.
    let limited = ["--ignore-signal=XFSZ", "prlimit", "--fsize=50000", weir, "read", "-q", "-w"];
    let free = [weir, "read", "-q", "-w"];
    for (letters, file, name) in [
        (&limited[..], &many, "a.pcap"),
        (&limited, &many, "b.pcapng"),
        (&free, &mixed, "c.pcap"),
        (&free, &cut, "d.pcap"),
        (&free, &cut, "e.pcapng"),
    ] {
        let out = place.path(name);
        let output =
            std::process::Command::new("env").args(letters).args([&out, file]).output().expect("env");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let table = judge("capinfos", &["-M", "-T", "-r", "-c"], &[&out]);
        let held: usize =
            table.trim().rsplit('\t').next().and_then(|field| field.parse().ok()).expect("a number");
        assert!(held > 1, "{held}");
        let told = said.lines().find(|line| line.contains(" -> ")).unwrap_or_else(|| panic!("{said}"));
        assert!(told.replace(',', "").starts_with(&format!("{held} packets")), "{held}: {said}");
    }
}

/// Whatever the limit of descriptors: merged, plain and compressed.
#[test]
fn more_files_than_may_be_open() {
    let place = Place::new();
    let frame = frames().swap_remove(20);
    let mut paths = Vec::new();
    for file in 0..300_u64 {
        let path = place.path(&format!("{file:03}.pcap"));
        // Each file has the first and the last of all times, nearly.
        let packets = [(0, EPOCH + file * 1000, &frame[..], 0), (0, EPOCH + (1000 - file) * 1000, &frame, 0)];
        write(&path, Format::Pcap { nanoseconds: false }, &[("", 1)], &packets);
        paths.push(path);
    }
    let packed: Vec<_> = paths.drain(..20).collect();
    for program in ["gzip", "zstd"] {
        let half: Vec<&Path> =
            packed.iter().map(PathBuf::as_path).skip(usize::from(program == "zstd") * 10).take(10).collect();
        judge(program, &["-q"], &half);
    }
    paths.extend(packed[..10].iter().map(|path| path.with_extension("pcap.gz")));
    paths.extend(packed[10..].iter().map(|path| path.with_extension("pcap.zst")));
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let read = ["--nofile=24", env!("CARGO_BIN_EXE_weir"), "read", "-tt"];
    let lines = judge("prlimit", &read, &paths);
    let times: Vec<&str> = lines.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(times.len(), 600);
    assert!(times.is_sorted(), "{times:?}");
}
