//! `weir capture` into several files, compressed files, and files of somebody else.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use weir::reader::Reader;
use weir_lab::{Generator, Network, SequenceCheck, SequenceReport, Traffic, root_test};

use crate::harness::{
    NOBODY, Running, capture, directory, generate, network, path, root_tests, run, send_off, tshark, until,
    weir,
};

/// Sends numbered frames in bursts, each of which has arrived before the next.
pub(crate) fn send(network: &Network, bursts: u64, frames: u64) -> Traffic {
    let traffic = Traffic::new(60).expect("size").between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).expect("generator");
    (0..bursts).for_each(|_| generate(&mut generator, network.pair(), frames));
    traffic
}

/// The files in a directory in the order in which they were begun: by the number behind the name.
pub(crate) fn files(directory: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.path()).expect("a directory");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    paths
}

/// Decompressed by the program whose format it is, where the name says so.
pub(crate) fn plain(file: &Path) -> PathBuf {
    let program = match file.extension().and_then(|extension| extension.to_str()) {
        Some("zst") => "zstd",
        Some("lz4") => "lz4",
        _ => return file.to_owned(),
    };
    let output = Command::new(program).arg("-dc").arg(file).output().expect("it is installed");
    let into = file.with_extension("plain");
    fs::write(&into, output.stdout).expect("room");
    into
}

/// What capinfos tells of each file behind these words.
pub(crate) fn capinfos(files: &[PathBuf], letter: &str, words: &str) -> Vec<String> {
    let output =
        Command::new("capinfos").args(["-M", letter]).args(files).output().expect("capinfos is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = text.lines().filter_map(|line| line.strip_prefix(words)?.strip_prefix(':'));
    let told: Vec<_> = told.map(|value| value.trim().to_owned()).collect();
    assert_eq!(told.len(), files.len(), "{text}");
    told
}

/// How many packets it finds in each file.
fn counts(files: &[PathBuf]) -> Vec<u64> {
    let counts = capinfos(files, "-c", "Number of packets").into_iter();
    counts.map(|count| count.parse().unwrap_or_else(|_| panic!("{count}"))).collect()
}

/// Counts by capinfos, and what became of the frames that were sent.
fn judge(files: &[PathBuf], traffic: &Traffic, sent: u64) -> (Vec<u64>, SequenceReport) {
    let mut check = SequenceCheck::new(traffic, 0..sent);
    let files: Vec<_> = files.iter().map(|file| plain(file)).collect();
    for file in &files {
        let mut reader = Reader::open(file).expect("a capture file");
        while let Some(packet) = reader.next_packet().expect("a whole file") {
            check.frame(packet.data);
        }
    }
    (counts(&files), check.finish())
}

root_tests! { no_packet_is_lost_or_doubled_between_two_files:
    root_no_packet_is_lost_or_doubled_between_two_files_by_size("f", &["-C", "100KB"]);
    root_no_packet_is_lost_or_doubled_between_two_files_by_count("f", &["--rotate-count", "997"]);
    root_no_packet_is_lost_or_doubled_between_two_files_by_time("f", &["-G", "100ms"]);
    root_no_packet_is_lost_or_doubled_between_two_files_by_time_and_size(
        "f", &["-G", "70ms", "-C", "50KB", "--source", "af_packet"]
    );
    root_no_packet_is_lost_or_doubled_between_two_files_pcap(
        "f", &["--rotate-count", "997", "--format", "pcap", "--source", "af_packet"]
    );
    root_no_packet_is_lost_or_doubled_between_two_files_compressed("f.zst", &["-C", "100KB"]);
    root_no_packet_is_lost_or_doubled_between_two_files_compressed_by_time(
        "f", &["--compress", "zstd:-3", "-G", "150ms", "--fsync"]
    );
}

fn no_packet_is_lost_or_doubled_between_two_files(name: &str, args: &[&str]) {
    let (directory, network) = (directory(), network());
    let running = capture(&network, &[args, &["-w", &path(&directory, name), "--json"]].concat());
    let traffic = Traffic::new(60).expect("size").between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).expect("generator");
    // For as long as it takes several files to begin.
    let mut sent = 0;
    until("the fourth file", || {
        generate(&mut generator, network.pair(), 1000);
        sent += 1000;
        let files = files(&directory);
        if sent >= 20_000 && files.len() > 3 {
            Ok(())
        } else {
            Err(format!("{sent} packets sent, {files:?}"))
        }
    });
    let account = running.interrupt().succeeded().account();
    account.closes();
    assert_eq!((account.number("lost"), account.number("written")), (0, sent), "{args:?}");
    let mut files = files(&directory);
    assert_eq!(account.0["files"]["count"].as_u64(), Some(files.len() as u64), "{args:?} {files:?}");
    let on_disk: u64 = files.iter().map(|file| fs::metadata(file).expect("it").len()).sum();
    assert_eq!(account.number("file_bytes"), on_disk, "{args:?}");
    assert!(files.len() >= 3, "{args:?} {files:?}");
    if args.contains(&"zstd:-3") {
        for file in &mut files {
            let suffixed = PathBuf::from(format!("{}.zst", file.display()));
            fs::rename(&*file, &suffixed).expect("a new name");
            *file = suffixed;
        }
    }
    let (counts, report) = judge(&files, &traffic, sent);
    assert!(report.is_perfect(), "{args:?}: {report:?}");
    assert_eq!(counts.iter().sum::<u64>(), sent);
    if args.contains(&"997") {
        let (last, others) = counts.split_last().expect("files");
        assert!(others.iter().all(|&count| count == 997) && *last == sent % 997, "{counts:?}");
    }
}

#[root_test]
fn root_files_change_on_time_without_packets() {
    let (directory, network) = (directory(), network());
    let began = Instant::now();
    let args =
        ["capture", "-i", "rx0", "-G", "200ms", "-W", "4", "-w", &path(&directory, "t%%-%Y"), "--json"];
    let account = run(&network, &args).succeeded().account();
    assert!(began.elapsed() >= Duration::from_millis(800));
    assert_eq!(account.0["stopped_by"], "files");
    let files = files(&directory);
    assert_eq!(files.len(), 4, "{files:?}");
    let first = files[0].file_name().expect("a name").to_string_lossy().into_owned();
    assert!(first.starts_with("t%-20") && first.len() == 7, "{first}");
    assert_eq!(counts(&files), [0; 4]);
}

#[root_test]
fn root_files_begin_with_the_clock() {
    let (directory, network) = (directory(), network());
    let name = path(&directory, "%s");
    run(&network, &["capture", "-i", "rx0", "-G", "2s", "--align", "-W", "3", "-w", &name]).succeeded();
    let seconds = |file: &PathBuf| file.file_name()?.to_str()?.parse::<u64>().ok();
    let files: Vec<u64> = files(&directory).iter().map(|file| seconds(file).expect("seconds")).collect();
    assert!(files[1].is_multiple_of(2) && files[2] == files[1] + 2 && files[0] < files[1], "{files:?}");
}

#[root_test]
fn root_a_ring_of_files() {
    let (directory, network) = (directory(), network());
    let args = ["--rotate-count", "1000", "-W", "12", "-w", &path(&directory, "r"), "--json"];
    let running = capture(&network, &args);
    send(&network, 30, 1000);
    let ended = running.interrupt().succeeded();
    assert!(ended.stderr.contains("the oldest 18 deleted"), "{}", ended.stderr);
    assert_eq!(ended.account().0["files"]["deleted"], 18);
    let names = (0..12).map(|n| directory.path().join(format!("r{n:02}")));
    assert_eq!(files(&directory), names.collect::<Vec<_>>());
    assert_eq!(counts(&files(&directory)), [1000; 12]);
}

#[root_test]
fn root_numbers_go_before_the_extension_and_files_with_old_names_belong_to_the_ring() {
    for (name, first) in [("ring.pcapng", "ring0.pcapng"), ("eth0.pcapng.zst", "eth0_0.pcapng.zst")] {
        let (directory, network) = (directory(), network());
        let round = || {
            let running = capture(
                &network,
                &["--rotate-count", "100", "-W", "3", "-w", &path(&directory, name), "--json"],
            );
            send(&network, 3, 100);
            running.interrupt().succeeded().account()
        };
        round();
        let names: Vec<PathBuf> =
            (0..3).map(|n| directory.path().join(first.replace("0.", &format!("{n}.")))).collect();
        assert_eq!(files(&directory), names);
        // As earlier versions called them: `ring.pcapng1`, `eth0.pcapng1.zst`.
        let (stem, suffix) = name.split_once(".zst").map_or((name, ""), |(stem, _)| (stem, ".zst"));
        fs::rename(&names[1], directory.path().join(format!("{stem}1{suffix}"))).expect("ours");
        assert_eq!(round().0["files"]["adopted"], 3, "{name}");
        assert_eq!(files(&directory), names);
        assert_eq!(counts(&files(&directory)), [100; 3]);
    }
}

#[root_test]
fn root_a_ring_leaves_files_alone_that_only_have_its_names() {
    let (directory, network) = (directory(), network());
    // Captures of weir's and of tcpdump's that belong to no ring.
    for name in ["ring1.pcapng", "ring20241105.pcapng", "ring1.pcap", "ring20241105.pcap"] {
        let running = capture(&network, &["-w", &path(&directory, name), "-c", "7"]);
        send(&network, 1, 7);
        running.wait().succeeded();
    }
    let before = files(&directory);
    let contents = || before.iter().map(|file| fs::read(file).expect("it is there")).collect::<Vec<_>>();
    let kept = contents();
    for (name, limit) in [
        ("ring.pcapng", &["-W", "3"][..]),
        ("ring.pcap", &["-W", "3"]),
        ("ring.pcapng", &["--keep-size", "30KB"]),
        ("ring.pcap", &["--keep-size", "30KB"]),
    ] {
        let name = path(&directory, name);
        let args = [&["--rotate-count", "100", "-w", &name, "--json"], limit].concat();
        for _ in 0..2 {
            let running = capture(&network, &args);
            send(&network, 8, 100);
            let account = running.interrupt().succeeded().account();
            assert!(account.0["files"]["deleted"].as_u64() > Some(0), "{}", account.0["files"]);
            assert_eq!(contents(), kept, "{name} {limit:?}");
        }
    }
}

#[root_test]
fn root_a_ring_of_files_is_one_ring_over_all_runs() {
    let (directory, network) = (directory(), network());
    for (kind, limit) in [("count", &["-W", "3"][..]), ("size", &["--keep-size", "40KB"])] {
        let name = path(&directory, kind);
        let template = format!("{name}-%s.pcapng");
        let args = [&["--rotate-count", "100", "-w", &template, "--json"], limit].concat();
        // A file whose name is not of the kind that this writes.
        fs::write(format!("{name}-mine.pcapng"), [0; 50_000]).expect("room");
        let ours = || -> Vec<PathBuf> {
            let of_the_kind = |file: &PathBuf| {
                let name = file.file_name().expect("a name").to_string_lossy().into_owned();
                name.starts_with(kind) && !name.contains("mine")
            };
            files(&directory).into_iter().filter(of_the_kind).collect()
        };
        for round in 0..4 {
            let before = ours().len() as u64;
            let running = capture(&network, &args);
            send(&network, 5, 100);
            if round == 1 {
                // As after a power cut.
                running.signal(Signal::KILL);
                running.wait();
            } else {
                let account = running.interrupt().succeeded().account();
                account.closes();
                assert_eq!(account.number("written"), 500);
                assert_eq!(account.0["files"]["adopted"], before, "{kind}: {}", account.0);
            }
            let bytes: u64 = ours().iter().map(|file| fs::metadata(file).expect("it").len()).sum();
            match kind {
                "count" => assert_eq!(ours().len(), 3, "{round}: {:?}", ours()),
                _ => assert!((10_000..40_000).contains(&bytes), "{round}: {bytes} in {:?}", ours()),
            }
        }
        assert!(fs::exists(format!("{name}-mine.pcapng")).expect("a directory"));
    }
}

#[root_test]
fn root_a_ring_leaves_alone_what_weir_has_not_written() {
    let (directory, network) = (directory(), network());
    let others = ["trace", "trace0", "trace2024"].map(|name| path(&directory, name));
    others.iter().for_each(|other| fs::write(other, "text").expect("room"));
    let name = path(&directory, "trace");
    let limits = ["--rotate-count", "50", "-W", "2", "-w", &name, "--duration", "100ms", "--json", "-q"];
    for (confine, adopted) in [(&[][..], 0), (&["--no-confine"], 1)] {
        let ended = run(&network, &[&["capture", "-i", "rx0"], &limits[..], confine].concat()).succeeded();
        assert_eq!(ended.account().0["files"]["adopted"], adopted, "{}", ended.stderr);
        for other in &others {
            assert_eq!(fs::read(other).expect("still there"), b"text");
            assert_eq!(
                ended.stderr.matches(&format!("{other}\n")).count()
                    + ended.stderr.matches(&format!("{other},")).count(),
                1,
                "{}",
                ended.stderr
            );
        }
    }
    assert_eq!(files(&directory).len(), others.len() + 2);
    // Who opens files looks into compressed ones as well, confined as it is.
    let name = path(&directory, "trace.zst");
    let args =
        ["capture", "-i", "rx0", "--rotate-count", "50", "-W", "2", "-w", &name, "--duration", "100ms"];
    for adopted in 0..2 {
        let ended = run(&network, &[&args[..], &["--json"]].concat()).succeeded();
        assert_eq!(ended.account().0["files"]["adopted"], adopted, "{}", ended.stderr);
    }
}

#[root_test]
fn root_a_restart_overwrites_no_file() {
    let (directory, network) = (directory(), network());
    let mut before: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for _ in 0..3 {
        let running = capture(&network, &["--rotate-count", "100", "-w", &path(&directory, "f")]);
        send(&network, 2, 150);
        running.interrupt().succeeded();
        for (file, content) in &before {
            assert!(fs::read(file).expect("it is there") == *content, "{}", file.display());
        }
        before =
            files(&directory).into_iter().map(|file| (file.clone(), fs::read(file).expect("it"))).collect();
    }
    let names: Vec<_> =
        files(&directory).iter().map(|file| file.file_name().map(|name| name.len())).collect();
    assert_eq!(names, [Some(1), Some(2), Some(2), Some(2), Some(2), Some(2), Some(2), Some(2), Some(2)]);
}

/// Runs weir where the directory is a disk of 256 KiB that no other process sees.
fn on_a_small_disk(network: &Network, directory: &TempDir, args: &[&str]) -> Running {
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", "mount -t tmpfs -o size=256k none $0 && cd $0 && exec \"$@\""]);
    command
        .arg(directory.path())
        .arg(env!("CARGO_BIN_EXE_weir"))
        .args(["capture", "-i", "rx0", "-B", "8MiB", "--json"])
        .args(args);
    let running = Running::spawn(network, &mut command);
    running.wait_until_open();
    running
}

#[root_test]
fn root_a_full_disk_costs_a_ring_its_oldest_files_and_no_packet() {
    let (directory, network) = (directory(), network());
    for source in ["xdp", "af_packet"] {
        let args = ["--source", source, "-w", "r", "-C", "50KB", "-W", "100"];
        let running = on_a_small_disk(&network, &directory, &args);
        send(&network, 20, 500);
        running.wait_for("the disk is full; deleting the oldest files one by one");
        let ended = running.interrupt().succeeded();
        assert!(ended.stderr.contains(" because the disk was full)"), "{}", ended.stderr);
        let account = ended.account();
        account.closes();
        assert_eq!((account.number("written"), account.number("lost")), (10_000, 0));
        let of = |field: &str| account.0["files"][field].as_u64().expect("a number");
        assert!(of("count") > 15 && of("deleted") == of("deleted_for_room"), "{}", account.0);
        assert!((3..10).contains(&(of("count") - of("deleted"))), "{}", account.0);
    }
    // Nothing may go where each file is to stay.
    for args in [&["-w", "f"][..], &["-w", "f", "-C", "50KB"]] {
        let running = on_a_small_disk(&network, &directory, args);
        send_off(&network, 5000);
        running.wait().failed(&["no space left for f"]);
    }
}

#[root_test]
fn root_what_is_captured_is_for_its_owner_alone_unless_asked_otherwise() {
    let network = network();
    let cases: [(&[&str], u32, u32); 5] = [
        (&[], 0, 0o600),
        (&["-g"], 0, 0o640),
        (&["--rotate-count", "10"], 0, 0o600),
        (&["-Z", "nobody", "-g", "--rotate-count", "10"], NOBODY, 0o640),
        (&["--no-confine"], 0, 0o600),
    ];
    for (args, owner, mode) in cases {
        let directory = directory();
        chown(directory.path(), Some(owner), None).expect("we are root");
        if !args.contains(&"--rotate-count") {
            // One that is overwritten.
            fs::write(path(&directory, "f"), "").expect("room");
            fs::set_permissions(path(&directory, "f"), fs::Permissions::from_mode(0o644)).expect("ours");
        }
        let running = capture(&network, &[&["-w", &path(&directory, "f")], args].concat());
        send(&network, 1, 15);
        running.interrupt().succeeded();
        for file in files(&directory) {
            let data = fs::metadata(&file).expect("it");
            assert_eq!((data.uid(), data.mode() & 0o7777), (owner, mode), "{args:?}");
        }
    }
}

#[root_test]
fn root_what_somebody_else_has_put_there_is_refused() {
    let (everybodys, other, network) = (directory(), directory(), network());
    fs::set_permissions(everybodys.path(), fs::Permissions::from_mode(0o1777)).expect("ours");
    let goal = path(&other, "goal");
    fs::write(&goal, "mine").expect("room");
    let (link, file) = (path(&everybodys, "link"), path(&everybodys, "file"));
    symlink(&goal, &link).expect("a link");
    lchown(&link, Some(NOBODY), None).expect("we are root");
    fs::write(&file, "").expect("room");
    chown(&file, Some(NOBODY), None).expect("we are root");
    // It invites everybody.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("we are root");
    let way = path(&everybodys, "way");
    symlink(other.path(), &way).expect("a link");
    lchown(&way, Some(NOBODY), None).expect("we are root");
    let way = format!("{way}/goal");
    for (path, what) in [(&link, "a symbolic link"), (&way, "a symbolic link"), (&file, "a file")] {
        for args in [&[][..], &["--rotate-count", "10"], &["--no-confine"]] {
            let ended = run(&network, &[&["capture", "-i", "rx0", "-w", path], args].concat());
            ended.failed(&[path, &format!("user {NOBODY} put {what} there"), "choose another place"]);
        }
    }
    assert_eq!(fs::read(&goal).expect("still there"), b"mine");
    assert_eq!(fs::metadata(&file).expect("still there").len(), 0);
}

#[root_test]
fn root_who_may_only_read_a_file_keeps_no_ring_from_starting() {
    let (directory, network) = (directory(), network());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let name = path(&directory, "f");
    let capture = ["capture", "-i", "rx0", "--rotate-count", "50", "-W", "2", "-g", "-w", &name];
    let args = [&capture[..], &["--duration", "100ms", "--json"]].concat();
    run(&network, &args).succeeded();
    chown(path(&directory, "f0"), None, Some(NOBODY)).expect("we are root");
    let mut reader = Command::new("setpriv");
    reader.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "flock", &path(&directory, "f0")]);
    let reader = Running::spawn(&network, reader.args(["sh", "-c", "echo locked >&2; exec sleep 60"]));
    reader.wait_for("locked");
    let ended = run(&network, &args).succeeded();
    assert_eq!(ended.account().0["files"]["adopted"], 1, "{}", ended.stderr);
    assert!(!ended.stderr.contains("lock"), "{}", ended.stderr);
}

#[root_test]
fn root_who_waits_for_the_writer_of_a_fifo_ends_on_a_signal() {
    let (network, directory) = (network(), directory());
    let (pipe, file) = (path(&directory, "pipe"), path(&directory, "out.pcap"));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    for args in [
        &["gen", "-i", "rx0", "--template", &pipe][..],
        &["gen", "-w", &file, "-c", "1", "--template", &pipe],
        &["replay", &pipe, "-i", "rx0"],
        &["replay", &pipe, "-i", "rx0", "--dry-run"],
        &["replay", &pipe, "-i", "rx0", "--preload"],
        &["read", &pipe],
        &["read", &pipe, "-w", &file],
        &["read", "--check", &pipe],
        &["info", &pipe],
    ] {
        let running = Running::spawn(&network, &mut weir(args));
        until("a process that opens the FIFO", || {
            let tasks =
                fs::read_dir(format!("/proc/{}/task", running.id())).map_err(|error| error.to_string())?;
            let wait = |task: fs::DirEntry| fs::read_to_string(task.path().join("wchan")).unwrap_or_default();
            let waits: Vec<String> = tasks.flatten().map(wait).collect();
            let opens = waits.iter().any(|wait| wait == "wait_for_partner" || wait == "fifo_open");
            if opens { Ok(()) } else { Err(format!("{waits:?}")) }
        });
        running.signal(Signal::TERM);
        let ended = running.wait();
        assert!(!ended.status.success(), "{args:?}: {}", ended.stderr);
    }
}

#[root_test]
fn root_a_fifo_is_written_to_once_somebody_reads_it() {
    let (directory, network) = (directory(), network());
    let pipe = path(&directory, "pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    for args in [&[][..], &["--no-confine"]] {
        let args = [&["-w", &pipe], args].concat();
        let ended = run(&network, &[&["capture", "-i", "rx0"], &args[..]].concat());
        ended.failed(&[&format!(
            "cannot write to {pipe}: it is a FIFO without a reader; start the reader first"
        )]);
        let mut reader: File = open(&*pipe, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
            .expect("it waits for nobody")
            .into();
        let running = capture(&network, &args);
        fcntl_setfl(&reader, OFlags::empty()).expect("from now on it waits");
        let reader = thread::spawn(move || {
            let mut read = Vec::new();
            reader.read_to_end(&mut read).map(|_| read)
        });
        send(&network, 1, 2000);
        running.interrupt().succeeded();
        let copy = path(&directory, "copy");
        fs::write(&copy, reader.join().expect("no panic").expect("a FIFO")).expect("room");
        assert_eq!(tshark(copy.as_ref(), &["frame.len"]).len(), 2000);
    }
}

#[root_test]
fn root_what_the_shell_has_opened_is_written_to() {
    let (directory, network) = (directory(), network());
    let file = path(&directory, "f");
    let cases = [
        ("/dev/stdout", format!("> {file}")),
        ("/dev/stdout", format!(">> {file}")),
        ("/dev/fd/3", format!("3> {file}")),
        ("/proc/self/fd/3", format!("3>> {file}")),
        ("/dev/stdout", format!("| cat > {file}")),
        ("/dev/fd/3", format!("3>&1 | cat > {file}")),
    ];
    for (name, redirection) in cases {
        for confine in [&[][..], &["--no-confine"]] {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("\"$@\" {redirection}"), "sh", env!("CARGO_BIN_EXE_weir")]);
            command.args(["capture", "-i", "rx0", "-B", "8MiB", "-c", "10", "-w", name]).args(confine);
            let running = Running::spawn(&network, &mut command);
            running.wait_until_open();
            send(&network, 1, 10);
            running.wait().succeeded();
            assert_eq!(tshark(file.as_ref(), &["frame.len"]).len(), 10, "{name} {redirection}");
            fs::remove_file(&file).expect("it is there");
        }
    }
}

#[root_test]
fn root_two_captures_do_not_share_a_file() {
    let (directory, network) = (directory(), network());
    let file = path(&directory, "one");
    let running = capture(&network, &["-w", &file]);
    send(&network, 1, 100);
    let ended = run(&network, &["capture", "-i", "rx0", "-w", &file]);
    let ended = ended.failed(&["is being written by another program (process ", ", weir)"]);
    assert!(ended.stderr.contains("choose another file"), "{}", ended.stderr);
    running.interrupt().succeeded();
    assert_eq!(tshark(file.as_ref(), &["frame.len"]).len(), 100);
    run(&network, &["capture", "-i", "rx0", "-w", &file, "--no-clobber"]).failed(&["exists", "--no-clobber"]);
    assert_eq!(tshark(file.as_ref(), &["frame.len"]).len(), 100);
}

#[root_test]
fn root_a_program_for_each_finished_file() {
    let (directory, other, network) = (directory(), directory(), network());
    let script = other.path().join("done");
    let write = |text: &str| {
        fs::write(&script, format!("#!/bin/sh\n{text}\n")).expect("room");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("ours");
    };
    let script_name = script.display().to_string();
    write(&format!("sleep 0.2; nice > {0}/nice; echo said; mv \"$1\" {0}/", other.path().display()));
    let file = path(&directory, "f");
    let args = ["--rotate-count", "500", "-w", &file, "-z", &script_name];
    let running = capture(&network, &args);
    send(&network, 5, 500);
    let ended = running.interrupt().succeeded();
    assert!(ended.stderr.contains("said") && ended.stdout.is_empty(), "{}", ended.stderr);
    assert!(files(&directory).is_empty());
    for name in ["f", "f1", "f2", "f3", "f4"] {
        assert_eq!(counts(&[other.path().join(name)]), [500]);
    }
    assert_eq!(fs::read_to_string(other.path().join("nice")).expect("written").trim(), "19");

    write("exit 7");
    let running = capture(&network, &args);
    send(&network, 3, 500);
    let ended = running.interrupt().succeeded();
    assert_eq!(ended.stderr.matches("failed: exit status: 7").count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("failed for 3 files"), "{}", ended.stderr);
    run(&network, &["capture", "-i", "rx0", "-w", &file, "-z", "no-such"]).failed(&["cannot run `no-such`"]);
}

#[root_test]
fn root_files_belong_to_the_user_that_was_asked_for() {
    for args in [&["--source", "xdp"][..], &["--source", "af_packet"], &["--source", "tc"], &["--no-confine"]]
    {
        let (directory, network) = (directory(), network());
        chown(directory.path(), Some(NOBODY), Some(NOBODY)).expect("we are root");
        let file = path(&directory, "f");
        let asked = ["--rotate-count", "1000", "-W", "3", "-w", &file, "-Z", "nobody", "--json"];
        let running = capture(&network, &[args, &asked].concat());
        send(&network, 8, 1000);
        let account = running.interrupt().succeeded().account();
        account.closes();
        assert_eq!((account.number("written"), account.number("lost")), (8000, 0), "{args:?}");
        assert_eq!(files(&directory).len(), 3);
        for file in files(&directory) {
            let data = fs::metadata(&file).expect("it");
            assert_eq!((data.uid(), data.gid()), (NOBODY, NOBODY));
        }
    }
    let ended = run(&network(), &["capture", "-i", "rx0", "-Z", "no-such-user"]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.stderr.contains("no such user"), "{}", ended.stderr);
    // Where only root may write, that user cannot.
    let directory = directory();
    let file = path(&directory, "f");
    run(&network(), &["capture", "-i", "rx0", "-Z", "nobody", "-w", &file]).failed(&["Permission denied"]);
}

/// What is left of a file that nobody has finished: packets, and bytes behind the last whole block.
fn left(file: &Path, check: &mut SequenceCheck) -> (u64, u64) {
    let size = fs::metadata(file).expect("it").len();
    let Ok(mut reader) = Reader::open(file) else { return (0, size) };
    let mut packets = 0;
    while let Ok(Some(packet)) = reader.next_packet() {
        check.frame(packet.data);
        packets += 1;
    }
    (packets, size - reader.position())
}

root_tests! { after_kill_9_files_read_up_to_their_end:
    root_after_kill_9_files_read_up_to_their_end_xdp("xdp", "f", "20MB");
    root_after_kill_9_files_read_up_to_their_end_xdp_compressed("xdp", "f.zst", "5MB");
    root_after_kill_9_files_read_up_to_their_end_af_packet("af_packet", "f", "20MB");
    root_after_kill_9_files_read_up_to_their_end_af_packet_compressed("af_packet", "f.zst", "5MB");
}

/// The order of writes is the order in the file: nothing is missing in front of what arrived.
fn after_kill_9_files_read_up_to_their_end(source: &str, name: &str, size: &str) {
    let network = network();
    let (mut packets, mut unfinished) = (0, 0);
    for round in 0..4u64 {
        let directory = directory();
        let file = path(&directory, name);
        let running = capture(&network, &["-C", size, "--source", source, "-w", &file]);
        let traffic = Traffic::new(1514).expect("size").between(network.pair());
        let mut generator = Generator::new(network.pair(), &traffic).expect("generator");
        // In the middle of all that is to be done, wherever that is.
        let mut sent = 0;
        until("something in the files", || {
            sent += generator.send(500).expect("frames").accepted;
            let sizes: Vec<u64> =
                files(&directory).iter().map(|file| fs::metadata(file).expect("it").len()).collect();
            let enough = sent >= 3500 + 500 * round && sizes.iter().sum::<u64>() > 0;
            if enough { Ok(()) } else { Err(format!("{sent} frames sent, files of {sizes:?} bytes")) }
        });
        running.signal(Signal::KILL);
        assert_eq!(running.wait().status.code(), None, "it was killed");

        let mut check = SequenceCheck::new(&traffic, 0..sent);
        let mut here_unfinished = 0;
        for file in files(&directory) {
            let info = weir(&["info", "--json", &file.display().to_string()]).output().expect("weir runs");
            let info: Value = serde_json::from_slice(&info.stdout).unwrap_or_default();
            here_unfinished += u64::from(info["unfinished"] == true);
            // A fatal signal ends a write between two pages (generic_perform_write, mm/filemap.c). Of a compressed frame that
            // is cut, zstd gives whole blocks of its own, which end anywhere in a packet.
            let (here, behind) = left(&plain(&file), &mut check);
            packets += here;
            assert!(behind < 1600, "round {round}: {behind} bytes of {}", file.display());
        }
        // The last one, unless the next was just to begin; and the one before, if its end was still on its way.
        assert!(here_unfinished <= 2, "round {round}: {here_unfinished}");
        unfinished += here_unfinished;
        let report = check.finish();
        let (total, foreign) = (report.total, report.corrupt);
        assert_eq!(
            (total.duplicated, total.reordered, foreign),
            (0, 0, 0),
            "round {round}: {:?}",
            report.total
        );
    }
    assert!(packets > 2500 && unfinished > 0, "{packets}, {unfinished}");
}

#[test]
fn files_of_which_only_words_are_looked_at() {
    let table: [(&[&str], &[&str]); 12] = [
        (&["-C", "100"], &["--rotate-size", "100MB", "tcpdump"]),
        (&["-G", "60x"], &["--rotate-time", "60x"]),
        (&["-C", "0MB"], &["zero"]),
        (&["-W", "3"], &["-W requires -C, -G"]),
        (&["-C", "1MB", "-W", "0"], &["--rotate-files", "at least 1"]),
        (&["--keep-size", "1GB"], &["--keep-size requires"]),
        (&["-C", "2GB", "--keep-size", "1GB"], &["must not be smaller than -C"]),
        (&["--align"], &["--rotate-time"]),
        (&["--compress", "bzip2"], &["--compress", "zstd:LEVEL"]),
        (&["--compress", "zstd:99"], &["-100 to 22"]),
        (&["--compress", "lz4", "-w", "f.zst"], &["contradict"]),
        (&["-C", "1MB", "-w", "-"], &["cannot be used with standard output"]),
    ];
    for (args, expected) in table {
        let named = if args.contains(&"-w") { &[][..] } else { &["-w", "f"] };
        let args = [&["capture", "-i", "lo"], args, named].concat();
        let output = weir(&args).output().expect("weir runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        expected.iter().for_each(|part| assert!(text.contains(part), "{args:?} should say `{part}`: {text}"));
    }
}
