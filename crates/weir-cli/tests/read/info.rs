//! `weir info`, judged by capinfos.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use weir::reader::{ByteOrder, InterfaceStatistics, Item, Reader};
use weir::writer::{Format, Writer, WriterOptions};
use weir::{CaptureStats, FileInterface};

use crate::files::Bytes;
use crate::support::{
    EPOCH, Guarded, Place, frames, judge, packet, pcap, stderr, stdout, succeeds, weir, write,
};

fn object(file: &Path) -> Value {
    serde_json::from_str(&succeeds(&["info", "--json"], &[file])).expect("JSON")
}

#[test]
fn numbers_are_those_of_capinfos() {
    let place = Place::new();
    let [plain, pcapng] = ["a.pcap", "b.pcapng"].map(|name| place.path(name));
    pcap(&plain);
    judge("editcap", &["-F", "pcapng"], &[&plain, &pcapng]);
    for (file, format) in [(&plain, "pcap"), (&pcapng, "pcapng")] {
        let info = object(file);
        // Machine-readable table: type, packets, file size, data size, duration, ..., in the order of the letters.
        let table = judge(
            "capinfos",
            &["-M", "-T", "-r", "-c", "-s", "-d", "-u", "-z", "-S", "-a", "-e", "-o"],
            &[file],
        );
        let fields: Vec<&str> = table.trim().split('\t').collect();
        assert_eq!(info["format"], format);
        assert_eq!(info["packets"].to_string(), fields[1], "{table}");
        assert_eq!(info["size"].to_string(), fields[2], "{table}");
        assert_eq!(info["bytes"].to_string(), fields[3], "{table}");
        let near = |value: &Value, field: &str, within: f64| {
            let theirs: f64 = field.parse().unwrap_or_else(|_| panic!("{table}"));
            let ours = value.as_f64().expect("a number");
            assert!((ours - theirs).abs() <= within, "{ours} {theirs}: {table}");
        };
        near(&info["duration_seconds"], fields[4], 1e-6);
        near(&info["average_size"], fields[7], 0.01);
        assert_eq!(info["ordered"], fields[8] == "True", "{table}");
        assert_eq!(info["first"], "2023-11-14T22:13:20.000000000Z");
        assert_eq!(info["loss"], "unknown");
        assert_eq!(info["interfaces"].as_array().map(Vec::len), Some(1));
    }
    let text = succeeds(&["info"], &[&plain]);
    assert!(text.contains("pcap files do not record it"), "{text}");
}

#[test]
fn losses_are_shown_where_they_were() {
    let place = Place::new();
    let file = place.path("lossy.pcapng");
    let frame = frames().swap_remove(20);
    let packets: Vec<_> = (0..600_u64)
        .map(|n| (0, EPOCH + n * 1_000_000, frame.as_slice(), if n == 300 { 5 } else { 0 }))
        .chain([(1, EPOCH + 600_000_000, frame.as_slice(), 70)])
        .collect();
    write(&file, Format::Pcapng, &[("eth0", 1), ("eth1", 1)], &packets);
    let info = object(&file);
    assert_eq!((&info["loss"], &info["lost"]), (&Value::from("some"), &Value::from(75)));
    assert_eq!(info["interfaces"][1]["lost_by_records"], 70);
    let text = succeeds(&["info"], &[&file]);
    let row = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{name} |")));
        line.unwrap_or_else(|| panic!("no {name}: {text}")).split('|').nth(1).expect("a picture").to_owned()
    };
    let seen = |name: &str| row(name).chars().position(|c| c != ' ');
    // At the border of two columns.
    assert!(matches!(seen("eth0"), Some(29 | 30)), "{text}");
    assert_eq!((seen("eth1"), seen("traffic")), (Some(59), Some(0)), "{text}");
    assert!(text.contains("75 packets"), "{text}");
}

/// What was lost of all packets is no share of those that a filter has left.
#[test]
fn a_part_of_a_capture_has_no_share_of_loss() {
    let place = Place::new();
    let [whole, part, sorted] = ["a.pcapng", "b.pcapng", "c.pcapng"].map(|name| place.path(name));
    let frame = frames().swap_remove(20);
    for counts in [[None, Some(90)], [Some(100), None]] {
        let interface = weir::with!(FileInterface::new(1), snap_len = 262_144);
        let mut writer = Writer::create(&whole, &[interface], &WriterOptions::default()).expect("a file");
        for n in 0..90 {
            writer.packet(&packet(EPOCH + (n ^ 1) * 1_000_000, &frame)).expect("a packet");
        }
        let [accepted, delivered] = counts;
        let statistics = InterfaceStatistics {
            received: Some(500),
            dropped: Some(10),
            accepted,
            delivered,
            timestamp: EPOCH,
            ..Default::default()
        };
        writer.interface_statistics(&statistics).expect("statistics");
        writer.finish(&CaptureStats::default()).1.expect("whole");
        succeeds(&["read", "--sort", "1s", "-f", "len >= 1", "-w"], &[&sorted, &whole]);
        for file in [&whole, &sorted] {
            assert_eq!((&object(file)["partial"], &object(file)["lost"]), (&false.into(), &10.into()));
            let text = succeeds(&["info"], &[file]);
            assert!(text.contains("10 packets (10.000 %)"), "{text}");
        }
        succeeds(&["read", "-f", "len < 1", "-w"], &[&part, &whole]);
        assert_eq!((&object(&part)["partial"], &object(&part)["lost"]), (&true.into(), &10.into()));
        let text = succeeds(&["info"], &[&part]);
        assert!(text.contains("10 packets; no percentage"), "{text}");
        // No packet tells when these were lost.
        succeeds(&["read", "--from", "+1ms", "-w"], &[&part, &whole]);
        assert_eq!((&object(&part)["loss"], &object(&part)["lost"]), (&"unknown".into(), &Value::Null));
        let text = succeeds(&["info"], &[&part]);
        assert!(text.contains("the capture lost 10 packets at unknown times"), "{text}");
    }
}

/// Of a second in which two packets came and five were lost, a copy says so; a filter leaves the losses of the capture.
#[test]
fn a_cut_says_what_belongs_to_its_packets() {
    let place = Place::new();
    let [whole, part] = ["a.pcapng", "b.pcapng"].map(|name| place.path(name));
    let interface = weir::with!(
        FileInterface::new(1),
        name = Some("eth0".to_owned()),
        snap_len = 262_144,
        os = Some("Linux".to_owned())
    );
    let all = frames();
    let frame = |number: usize| &all[number % all.len()];
    // A filter of the capture rejected 100 more; losses that no packet tells of, at the end.
    for (rejected, behind) in [(0, 0), (100, 0), (0, 1)] {
        let options = weir::with!(WriterOptions::default(), user_application = "weir 1".to_owned());
        let mut writer = Writer::create(&whole, std::slice::from_ref(&interface), &options).expect("a file");
        for (number, second, lost_before) in [(0, 0, 3), (1, 1, 5), (1, 1, 0), (2, 2, 7)] {
            let packet = packet(EPOCH + second * 1_000_000_000, frame(number));
            writer.packet(&weir::with!(packet, lost_before)).expect("a packet");
        }
        let dropped = 15 + behind;
        let statistics = InterfaceStatistics {
            received: Some(4 + dropped + rejected),
            dropped: Some(dropped),
            accepted: Some(4 + dropped),
            delivered: Some(4),
            timestamp: EPOCH + 3_000_000_000,
            ..Default::default()
        };
        writer.interface_statistics(&statistics).expect("statistics");
        writer.finish(&CaptureStats::default()).1.expect("whole");
        let of = |object: &Value, fields: &[&str]| -> Vec<Option<u64>> {
            fields.iter().map(|field| object["interfaces"][0][field].as_u64()).collect()
        };
        let fields = ["received", "dropped", "delivered", "lost_by_records"];

        succeeds(&["read", "--from", "+1s", "--to", "+2s", "-w"], &[&part, &whole]);
        let info = object(&part);
        assert_eq!(info["unfinished"], false);
        if behind == 0 {
            let received = Some(7).filter(|_| rejected == 0);
            assert_eq!(of(&info, &fields), [received, Some(5), Some(2), Some(5)], "{rejected}");
            assert_eq!((&info["lost"], &info["partial"]), (&5.into(), &false.into()));
            let text = judge("capinfos", &["-M"], &[&part]);
            assert!(text.contains("Number of stat entries = 1"), "{text}");
        } else {
            assert_eq!(of(&info, &fields), [None, None, None, Some(5)]);
            let text = succeeds(&["info"], &[&part]);
            assert!(text.contains("at least 5 packets"), "{text}");
            assert!(text.contains("the capture lost 1 packet at an unknown time"), "{text}");
        }
        // What the filter rejects hands its losses on, from before the time, too.
        succeeds(&["read", "--from", "+1s", "-f", "len > 1", "-w"], &[&part, &whole]);
        assert_eq!(of(&object(&part), &["received", "dropped"]), [None, None]);

        let len = frame(1).len();
        succeeds(&["read", "-f", &format!("len == {len}"), "-w"], &[&part, &whole]);
        let [packets, accepted] = {
            let mut reader = Reader::open(&part).expect("opens");
            let mut counts = [0, 0];
            while let Some(item) = reader.next().expect("whole") {
                match item {
                    Item::Packet(_) => counts[0] += 1,
                    Item::Statistics(statistics) => counts[1] = statistics.accepted.expect("a number"),
                    _ => {}
                }
            }
            counts
        };
        assert!((2..4).contains(&packets) && packets == accepted, "{packets} {accepted}");
        let info = object(&part);
        assert_eq!(of(&info, &fields[..3]), [Some(4 + dropped + rejected), Some(dropped), Some(4)]);
        assert_eq!((&info["lost"], &info["partial"]), (&dropped.into(), &true.into()));
    }
    // A capture that has not ended does not end in a part of it.
    told(&whole, 1, None);
    succeeds(&["read", "--from", "+1ms", "-w"], &[&part, &whole]);
    assert_eq!((&object(&part)["loss"], &object(&part)["unfinished"]), (&"unknown".into(), &true.into()));
}

/// An interface of a capture: `dropped` at its end, if it came to its end.
fn told(path: &Path, seconds: u64, dropped: Option<u64>) {
    let interface = weir::with!(
        FileInterface::new(1),
        name = Some("eth0".to_owned()),
        snap_len = 262_144,
        os = Some("Linux".to_owned())
    );
    let options = weir::with!(WriterOptions::default(), user_application = "weir 1".to_owned());
    let mut writer = Writer::create(path, &[interface], &options).expect("a file");
    // Unordered, so that the file is sorted.
    for n in [1, 0, 2] {
        writer.packet(&packet(EPOCH + (seconds * 10 + n) * 1_000_000, &frames()[20])).expect("a packet");
    }
    if dropped.is_some() {
        let timestamp = EPOCH + seconds;
        let statistics = InterfaceStatistics { received: Some(9), dropped, timestamp, ..Default::default() };
        writer.interface_statistics(&statistics).expect("statistics");
    }
    writer.finish(&CaptureStats::default()).1.expect("whole");
}

/// Losses add up if every part of a capture knows its own; otherwise nobody knows them.
#[test]
fn unknown_losses_stay_unknown() {
    let place = Place::new();
    let [killed, whole, lossy, plain] =
        ["a.pcapng", "b.pcapng", "c.pcapng", "d.pcap"].map(|name| place.path(name));
    told(&killed, 1, None);
    told(&whole, 2, Some(0));
    told(&lossy, 3, Some(4));
    pcap(&plain);
    let verdict = |file: &Path| {
        let info = object(file);
        (info["loss"].as_str().expect("a word").to_owned(), info["lost"].as_u64(), info["unfinished"] == true)
    };
    let unknown = |unfinished| ("unknown".to_owned(), None, unfinished);
    let (none, some) = (("none".to_owned(), Some(0), false), |lost| ("some".to_owned(), Some(lost), false));
    assert_eq!(verdict(&killed), unknown(true));
    for (parts, options, expected) in [
        (&[&killed, &whole][..], &[][..], unknown(true)),
        (&[&whole, &killed], &[], unknown(true)),
        (&[&killed], &[], unknown(true)),
        (&[&killed], &["--sort", "1s"], unknown(true)),
        (&[&killed], &["-f", "len > 1"], unknown(true)),
        (&[&whole, &plain], &[], unknown(false)),
        (&[&whole], &["--sort", "1s"], none),
        (&[&whole, &lossy], &[], some(4)),
        (&[&lossy, &lossy, &whole], &["-f", "len > 1"], some(8)),
    ] {
        let merged = place.path("merged.pcapng");
        let _none_yet = fs::remove_file(&merged);
        let words = [&["read"], options, &["--format", "pcapng", "-w"]].concat();
        let files: Vec<&Path> =
            std::iter::once(&merged).chain(parts.iter().copied()).map(PathBuf::as_path).collect();
        succeeds(&words, &files);
        assert_eq!(verdict(&merged), expected, "{parts:?} {options:?}");
    }
    let merged = place.path("merged.pcapng");
    succeeds(&["read", "--format", "pcapng", "-w"], &[&merged, &whole, &plain]);
    let text = succeeds(&["info"], &[&merged]);
    assert!(text.contains("unknown: the file has no statistics of interface 1\n"), "{text}");
    let table = succeeds(&["info"], &[&killed, &whole, &plain]);
    for why in ["killed or is still running", "pcap files do not record it"] {
        let note =
            table.lines().find(|line| line.starts_with("?: unknown in 1 file: ") && line.contains(why));
        assert!(note.is_some(), "{table}");
    }
    // The sum of what is known would be no sum.
    for (files, lost, loss) in [
        (&[&killed, &lossy][..], None, "some"),
        (&[&whole, &lossy, &lossy], Some(8), "some"),
        (&[&whole, &plain], None, "unknown"),
    ] {
        let paths: Vec<&Path> = files.iter().map(|path| path.as_path()).collect();
        let objects: Vec<Value> = succeeds(&["info", "--json"], &paths)
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let (total, each) = objects.split_last().expect("objects");
        assert_eq!(
            (each.len(), &total["files"], &total["type"]),
            (files.len(), &files.len().into(), &"total".into())
        );
        for field in ["packets", "bytes", "captured_bytes", "size"] {
            let sum: u64 = each.iter().map(|file| file[field].as_u64().expect("a number")).sum();
            assert_eq!(total[field], sum, "{field}");
        }
        let (first, last) = (
            each.iter().map(|file| file["first"].as_str()).min(),
            each.iter().map(|file| file["last"].as_str()).max(),
        );
        assert_eq!((Some(total["first"].as_str()), Some(total["last"].as_str())), (first, last));
        assert_eq!((total["lost"].as_u64(), &total["loss"]), (lost, &loss.into()));
        let table = succeeds(&["info"], &paths);
        let line = table.lines().nth(files.len() + 1).expect("a line for all");
        let end = format!(" {}", lost.map_or_else(|| "?".to_owned(), |lost| lost.to_string()));
        assert!(line.starts_with(&format!("{} files ", files.len())) && line.ends_with(&end), "{table}");
        let text = succeeds(&["info", "--long"], &paths);
        let end = lost.map_or_else(|| "loss unknown".to_owned(), |lost| format!("{lost} lost"));
        assert!(text.lines().last().is_some_and(|line| line.ends_with(&format!("; {end}"))), "{text}");
    }
}

/// What a capture leaves in its file is what it has said itself.
#[weir_lab::root_test]
fn root_a_capture_without_loss_says_so() {
    let network = weir_lab::Network::new(weir_lab::Veth::default()).expect("a private network");
    let place = Place::new();
    let file = place.path("own.pcapng");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args([
        "capture",
        "-B",
        "8MiB",
        "--source",
        "af_packet",
        "-c",
        "200",
        "-i",
        &network.pair().rx.name,
    ]);
    let mut capture =
        network.rx().spawn(command.arg("-w").arg(&file).stderr(Stdio::piped())).map(Guarded).expect("weir");
    // It says that it captures.
    let mut said = BufReader::new(capture.0.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("; source ") {
        line.clear();
        assert!(said.read_line(&mut line).expect("text") > 0, "it has ended");
    }
    let traffic = weir_lab::Traffic::new(60).expect("a size").between(network.pair());
    let mut generator = weir_lab::Generator::new(network.pair(), &traffic).expect("a generator");
    generator.send(200).expect("frames");
    line.clear();
    said.read_to_string(&mut line).expect("text");
    assert!(capture.0.wait().expect("a child").success(), "{line}");
    let info = object(&file);
    assert_eq!((&info["packets"], &info["loss"]), (&Value::from(200), &Value::from("none")), "{info}");
    assert_eq!(info["interfaces"][0]["name"], network.pair().rx.name.as_str());
    assert!(succeeds(&["info"], &[&file]).contains("none recorded"));
}

#[test]
fn several_files_are_a_table_and_damage_is_told() {
    let place = Place::new();
    let [whole, cut] = ["a.pcap", "b.pcap"].map(|name| place.path(name));
    let count = pcap(&whole);
    fs::write(&cut, &fs::read(&whole).expect("a file")[..5000]).expect("a file");
    let output = weir(&["info"], &[&whole, &cut, &place.path("missing.pcap")]);
    assert_eq!(output.status.code(), Some(1));
    let table = stdout(&output);
    assert_eq!(table.lines().count(), 5, "{table}");
    assert!(table.lines().nth(3).is_some_and(|line| line.starts_with("2 files ")), "{table}");
    assert!(table.contains(&format!(" {count} ")) && table.contains("damaged"), "{table}");
    let said = stderr(&output);
    assert!(said.contains("b.pcap: at byte ") && said.contains("missing.pcap"), "{said}");
}

/// 1970 is a time; that of a Simple Packet Block is none.
#[test]
fn packets_at_time_0_count() {
    let place = Place::new();
    let [file, simple] = ["a.pcap", "b.pcapng"].map(|name| place.path(name));
    let frame = frames().swap_remove(20);
    let packets = [0, 1, 2].map(|second| (0, second * 1_000_000_000, frame.as_slice(), 0));
    write(&file, Format::Pcap { nanoseconds: false }, &[("", 1)], &packets);
    let info = object(&file);
    let theirs = judge("capinfos", &["-M", "-T", "-r", "-u"], &[&file]);
    assert!(theirs.trim().ends_with("\t2.000000"), "{theirs}");
    assert_eq!((&info["duration_seconds"], &info["packets_per_second"]), (&2.0.into(), &1.5.into()));
    assert_eq!(info["first"], "1970-01-01T00:00:00.000000000Z");

    let length = u32::try_from(frame.len()).expect("short");
    let bytes = Bytes::new(ByteOrder::Little).section().interface(None);
    let bytes = bytes.block(3, |body| body.u32(length).padded(&frame)).packet(0, 7_000_000, &frame).bytes;
    fs::write(&simple, bytes).expect("a file");
    let info = object(&simple);
    assert_eq!((&info["packets"], &info["duration_seconds"]), (&2.into(), &0.0.into()), "{info}");
    assert_eq!(info["packets_per_second"], Value::Null);
}

/// Another filter, in the words that a capture leaves in its file for each interface; files are told as they are named.
#[test]
fn changes_of_the_filter_are_events() {
    let place = Place::new();
    let [file, earlier] = ["b.pcapng", "a.pcap"].map(|name| place.path(name));
    let frame = frames().swap_remove(20);
    let told = |bytes: Bytes, interface, ticks, text: &str| {
        bytes.block(5, |body| body.u32(interface).time(ticks).option(1, text.as_bytes()).end())
    };
    let mut bytes = Bytes::new(ByteOrder::Big).section().interface(None).interface(None);
    for (ticks, text) in [(1_000_000, "filter changed to: tcp"), (2_000_000, "filter removed\u{7}")] {
        bytes = told(bytes, 0, ticks, text).packet(0, ticks, &frame);
        bytes = told(bytes, 1, ticks, text);
    }
    bytes = told(bytes, 1, 500_000, "carrier lost");
    fs::write(&file, bytes.bytes).expect("a file");
    write(&earlier, Format::Pcap { nanoseconds: false }, &[("", 1)], &[(0, 0, &frame, 0)]);
    let info = object(&file);
    let events = info["events"].as_array().expect("a list");
    let told: Vec<_> = events.iter().map(|event| (event["text"].as_str(), &event["interfaces"])).collect();
    let both = serde_json::json!([0, 1]);
    let expected = [
        (Some("carrier lost"), &serde_json::json!([1])),
        (Some("filter changed to: tcp"), &both),
        (Some("filter removed\u{7}"), &both),
    ];
    assert_eq!(told, expected);
    assert_eq!(events[1]["time"], "1970-01-01T00:00:01.000000000Z");
    let text = succeeds(&["info", "-l"], &[&file, &earlier]);
    assert!(text.contains("event       1970-01-01 05:30:01.000000000  filter changed to: tcp\n"), "{text}");
    assert!(text.contains("filter removed") && !text.contains('\u{7}'), "{text}");
    assert!(text.contains("carrier lost (on interface 1)"), "{text}");
    let place_of = |name: &str| text.find(name).unwrap_or_else(|| panic!("{name}: {text}"));
    assert!(place_of("b.pcapng") < place_of("a.pcap\n"), "{text}");
}

#[test]
fn packets_of_any_are_told_by_the_interfaces_that_they_passed() {
    let place = Place::new();
    let file = place.path("any.pcapng");
    let any = weir::with!(
        FileInterface::new(276),
        name = Some("any".to_owned()),
        description = Some("1 lo, 12 eth0".to_owned()),
        snap_len = 262_144
    );
    let mut writer = Writer::create(&file, &[any], &WriterOptions::default()).expect("a file");
    let frame = frames().swap_remove(20);
    let cooked = |index: u8| [&[8, 0, 0, 0, 0, 0, 0, index, 0, 1, 0, 6][..], &[2; 8], &frame[14..]].concat();
    for (number, index) in (0..).zip([12, 1, 12, 13]) {
        writer.packet(&packet(EPOCH + number, &cooked(index))).expect("a packet");
    }
    writer.finish(&CaptureStats::default()).1.expect("whole");

    let beneath = object(&file)["interfaces"][0]["beneath"].clone();
    let told: Vec<_> = beneath
        .as_array()
        .expect("a list")
        .iter()
        .map(|passed| (passed["ifindex"].clone(), passed["name"].clone(), passed["packets"].clone()))
        .collect();
    let expected = [(1, Some("lo"), 1), (12, Some("eth0"), 2), (13, None, 1)];
    assert_eq!(told, expected.map(|(index, name, packets)| (index.into(), name.into(), packets.into())));
    let text = succeeds(&["info"], &[&file]);
    for line in ["  lo: 1 packet, ", "  eth0: 2 packets, ", "  if13: 1 packet, "] {
        assert!(text.contains(line), "{text}");
    }
    let objects = succeeds(&["read", "--json"], &[&file]);
    let objects: Vec<Value> = objects.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told: Vec<_> =
        objects.iter().map(|object| (object["interface"].clone(), object["ifindex"].clone())).collect();
    let expected = [("eth0", 12), ("lo", 1), ("eth0", 12), ("any", 13)];
    assert_eq!(told, expected.map(|(name, index)| (name.into(), index.into())));
    succeeds(&["read", "--split-by", "interface", "-w"], &[&place.path("i.pcapng"), &file]);
    assert_eq!(place.names(), ["any.pcapng", "i-any-13.pcapng", "i-eth0.pcapng", "i-lo.pcapng"]);
    assert_eq!(object(&place.path("i-eth0.pcapng"))["packets"], 2);
}
