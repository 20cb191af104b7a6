//! `weir capture` on real interfaces.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use serde_json::json;
use weir_lab::{FrameSender, Generator, Traffic, Veth, root_test};

use crate::harness::{
    Mounts, Running, capture, directory, generate, network, output, path, root_tests, run, send, send_each,
    send_off, start, start_piped, start_quietly, tshark, until, weir,
};

// Each source, in each mode that it has.
const XDP: &[&str] = &["--source", "xdp"];
const EXCLUSIVE: &[&str] = &["--source", "xdp", "--mode", "exclusive"];
const TC: &[&str] = &["--source", "tc"];
const AF_PACKET: &[&str] = &["--source", "af_packet"];
const AF_XDP: &[&str] = &["--source", "af_xdp", "--mode", "exclusive"];

root_tests! { every_packet_is_in_the_file_and_the_account_closes:
    root_every_packet_is_in_the_file_and_the_account_closes_xdp(XDP);
    root_every_packet_is_in_the_file_and_the_account_closes_exclusive(EXCLUSIVE);
    root_every_packet_is_in_the_file_and_the_account_closes_tc(TC);
    root_every_packet_is_in_the_file_and_the_account_closes_af_packet(AF_PACKET);
    root_every_packet_is_in_the_file_and_the_account_closes_af_xdp(AF_XDP);
}

fn every_packet_is_in_the_file_and_the_account_closes(source: &[&str]) {
    let directory = directory();
    let (network, file) = (network(), path(&directory, "all.pcapng"));
    let running = capture(&network, &[source, &["-w", &file, "--json"]].concat());
    // No more than AF_XDP has frames: nothing is lost on a busy machine.
    send(&network, 16_000);
    let ended = running.interrupt().succeeded();

    let account = ended.account();
    account.closes();
    for field in ["seen", "captured", "delivered", "written"] {
        assert_eq!(account.number(field), 16_000, "{source:?} {field}: {}", account.0);
    }
    assert_eq!((account.number("lost"), account.number("not_written")), (0, 0));
    assert_eq!(account.number("bytes"), 16_000 * 60);
    assert_eq!(account.0["source"], source[1]);
    assert_eq!(account.0["mode"], source.get(3).copied().unwrap_or("pass"));
    assert_eq!(account.0["file"], file);
    assert_eq!(account.0["stopped_by"], "signal");
    assert!(account.0["error"].is_null());
    assert_eq!(fs::metadata(&file).expect("the file").len(), account.number("file_bytes"));
    assert_eq!(tshark(file.as_ref(), &["frame.len"]), vec!["60"; 16_000]);
    ended.says("16000 packets captured");
    ended.says("16000 packets received by filter");
    ended.says("0 packets dropped by kernel");
    ended.says("0 packets dropped by interface");
}

root_tests! { a_count_is_exact:
    root_a_count_is_exact_xdp(XDP);
    root_a_count_is_exact_exclusive(EXCLUSIVE);
    root_a_count_is_exact_tc(TC);
    root_a_count_is_exact_af_packet(AF_PACKET);
    root_a_count_is_exact_af_xdp(AF_XDP);
}

fn a_count_is_exact(source: &[&str]) {
    let directory = directory();
    for count in [1, 1000] {
        let (network, file) = (network(), path(&directory, "some.pcapng"));
        let number = count.to_string();
        let running = capture(&network, &[source, &["-w", &file, "-c", &number, "--json"]].concat());
        send_off(&network, 5_000);
        let ended = running.wait().succeeded();
        let account = ended.account();
        account.closes();
        assert_eq!(account.number("written"), count, "{source:?}: {}", account.0);
        assert_eq!(account.number("delivered"), count, "{source:?}: {}", account.0);
        assert_eq!(account.0["stopped_by"], "count");
        assert_eq!(tshark(file.as_ref(), &["frame.len"]).len() as u64, count);
        ended.says(if count == 1 { "1 packet captured" } else { "1000 packets captured" });
    }
}

#[root_test]
fn root_a_file_of_all_interfaces_names_them() {
    let (directory, network) = (directory(), network());
    let file = path(&directory, "any.pcapng");
    let running = start(&network, &["capture", "-i", "any", "-B", "8MiB", "-w", &file, "-c", "5"]);
    send_off(&network, 5);
    running.wait().succeeded();
    let lines = String::from_utf8(weir(&["read", &file]).output().expect("weir runs").stdout).expect("text");
    assert_eq!(lines.lines().filter(|line| line.contains(" rx0   In ")).count(), 5, "{lines}");
    let objects = weir(&["read", "--json", &file]).output().expect("weir runs").stdout;
    assert_eq!(String::from_utf8(objects).expect("text").matches("rx0   In ").count(), 5);
}

/// To weir it looks as if the second processor had come later.
#[root_test]
fn root_packets_on_a_processor_that_came_later_are_told() {
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    if fs::read_to_string(ONLINE).expect("it is there").trim() == "0" {
        return weir_skip::this_test("there is one processor");
    }
    let (directory, network) = (directory(), network());
    let first = path(&directory, "first");
    fs::write(&first, "0\n").expect("room");
    let mounts = Mounts::with(&format!("mount --bind {first} {ONLINE}"));
    let (pair, file) = (network.pair(), path(&directory, "some.pcapng"));
    let traffic = Traffic::new(60).expect("size").between(pair);
    for json in [&["--json"][..], &[]] {
        let args = ["capture", "-B", "8MiB", "-i", "rx0", "--source", "tc", "-w", &file];
        let running = Running::spawn(&network, &mut mounts.weir(&[&args[..], json].concat()));
        running.wait_until_open();
        for (processor, frames) in [(0, 300), (1, 200)] {
            let mut generator = Generator::new(pair, &traffic).expect("a generator").cpu(processor);
            generate(&mut generator, pair, frames);
        }
        let ended = running.interrupt().succeeded();
        if json.is_empty() {
            let why = "errors: 200 packets on CPUs that came online after the capture started; restart it to capture them";
            assert!(ended.stderr.contains(why), "{}", ended.stderr);
            continue;
        }
        let account = ended.account();
        account.closes();
        let numbers = ["seen", "captured", "written", "errors", "lost"].map(|field| account.number(field));
        assert_eq!(numbers, [500, 300, 300, 200, 0], "{}", account.0);
        let strays = &account.0["interfaces"][0]["strays"];
        assert_eq!(*strays, json!({"no_queue": 0, "other_interface": 0, "late_cpu": 200}), "{}", account.0);
    }
}

#[root_test]
fn root_without_a_file_packets_are_counted() {
    let network = network();
    let running = capture(&network, &["-c", "300", "--json"]);
    send_off(&network, 1000);
    let ended = running.wait().succeeded();
    let account = ended.account();
    account.closes();
    assert_eq!((account.number("delivered"), account.number("written")), (300, 0));
    assert!(account.0["file"].is_null());
    ended.captured_all(300);
}

#[root_test]
fn root_signals_finish_the_file() {
    let directory = directory();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let (network, file) = (network(), path(&directory, "signal.pcapng"));
        let running = capture(&network, &["-w", &file, "--json"]);
        // Less than a batch: it is still in the pool.
        send(&network, 100);
        running.signal(signal);
        let ended = running.wait().succeeded();
        assert_eq!(ended.account().number("written"), 100, "{signal:?}");
        assert_eq!(tshark(file.as_ref(), &["frame.len"]).len(), 100);
    }
}

#[root_test]
fn root_sigusr1_prints_the_account_so_far() {
    let (directory, network) = (directory(), network());
    let file = path(&directory, "usr1.pcapng");
    let running = capture(&network, &["-w", &file]);
    send(&network, 4321);
    running.signal(Signal::USR1);
    running.wait_for("4,321");
    running.wait_for("Nothing lost");
    send(&network, 1);
    running.interrupt().succeeded().says("4322 packets captured");
}

#[root_test]
fn root_sigusr2_brings_what_was_captured_to_the_file() {
    let directory = directory();
    let batches = ["--min-bytes", "1MiB", "--read-timeout", "1h"];
    for (name, order) in [("a.pcapng", "none"), ("b.pcapng.zst", "none"), ("c.pcap", "time")] {
        let (network, file) = (network(), path(&directory, name));
        let format = if name.ends_with("pcap") { "pcap" } else { "pcapng" };
        let what = ["-w", &file, "--format", format, "--order", order, "--window", "1ms"];
        let what = if order == "time" { &what[..] } else { &what[..6] };
        let running = capture(&network, &[what, &batches].concat());
        send(&network, 100);
        running.signal(Signal::USR2);
        until("100 packets in the file", || {
            let count = weir(&["read", "--count", &file]).output().expect("weir runs").stdout;
            if count == b"100\n" { Ok(()) } else { Err(String::from_utf8_lossy(&count).into_owned()) }
        });
        send(&network, 1);
        running.interrupt().succeeded().says("101 packets captured");
    }
}

root_tests! { a_size_ends_a_capture:
    root_a_size_ends_a_capture_of_chunks(&["--format", "pcapng"]);
    root_a_size_ends_a_capture_of_packets(&["--format", "pcap", "--order", "time"]);
    root_a_size_ends_a_capture_into_several_files(&["--format", "pcap", "-C", "2KB"]);
    root_a_size_ends_a_capture_into_compressed_files(&["--format", "pcapng", "--compress", "gzip"]);
}

fn a_size_ends_a_capture(options: &[&str]) {
    let (directory, network) = (directory(), network());
    let file = path(&directory, "sized");
    let running = capture(&network, &[&["-w", &file, "--size", "10KB", "--json"], options].concat());
    send_off(&network, 5_000);
    let ended = running.wait().succeeded();
    let account = ended.account();
    account.closes();
    assert_eq!(account.0["stopped_by"], "size");
    assert_eq!(account.number("not_written"), 0);
    let files = fs::read_dir(directory.path()).expect("it is there").map(|file| file.expect("a file").path());
    let files: Vec<_> = files.collect();
    let written = account.number("written");
    let read = files.iter().map(|file| tshark(file, &["frame.len"]).len() as u64).sum::<u64>();
    assert_eq!(read, written);
    if options.contains(&"pcap") {
        // 24 bytes a file, 16 a packet besides its 60.
        let expected = if options.contains(&"-C") { (131..=132, 6) } else { (132..=132, 1) };
        assert!(expected.0.contains(&written) && files.len() == expected.1, "{written} in {files:?}");
    } else {
        // The packet that reaches it is the last, and the statistics come on top.
        assert!((90..=100).contains(&written), "{written} packets of 92 to 104 bytes");
    }
}

#[root_test]
fn root_a_later_sigint_ends_at_once() {
    let network = network();
    let (mut running, unread) = start_piped(&network, &["capture", "-i", "rx0", "-w", "-", "-U"]);
    // More than a pipe holds: it comes to stand in a write.
    send(&network, 50_000);
    // Full is a pipe whose pages are all in use, however much is in each; its other end tells.
    let end = format!("/proc/self/fd/{}", unread.as_raw_fd());
    let end = File::options().write(true).open(end).expect("a pipe");
    until("a pipe that is full", || {
        let mut room = [PollFd::new(&end, PollFlags::OUT)];
        match poll(&mut room, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("a pipe") {
            0 => Ok(()),
            _ => Err("there is room".to_owned()),
        }
    });
    drop(end);
    let sleeps = || {
        let status = fs::read_to_string(format!("/proc/{}/status", running.id())).expect("it runs");
        let of =
            |name| status.lines().find_map(|line| line.strip_prefix(name)).expect("a line").trim().to_owned();
        (of("ShdPnd:"), of("voluntary_ctxt_switches:").parse::<u64>().expect("a number"))
    };
    let (_, before) = sleeps();
    running.signal(Signal::INT);
    until("the first signal to be taken, and sleep behind it", || match sleeps() {
        (pending, now) if pending == "0000000000000000" && now > before => Ok(()),
        state => Err(format!("{state:?}, {before} before")),
    });
    assert!(running.is_running(), "it still has packets to write");
    // Until then they are one.
    thread::sleep(Duration::from_millis(1100));
    running.signal(Signal::INT);
    assert_eq!(running.wait().status.code(), Some(1));
}

#[root_test]
fn root_standard_output_goes_into_tshark() {
    let network = network();
    let args = ["capture", "-i", "rx0", "-w", "-", "-U", "-c", "2000", "--json"];
    let (running, stdout) = start_piped(&network, &args);
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", "-", "-n", "-T", "fields", "-e", "frame.len"]).stderr(Stdio::null());
    let tshark = tshark.stdin(stdout).stdout(Stdio::piped()).spawn().expect("tshark is installed");
    send_off(&network, 3000);
    let packets = tshark.wait_with_output().expect("tshark ends").stdout;
    assert_eq!(String::from_utf8_lossy(&packets).lines().count(), 2000);
    let ended = running.wait().succeeded();
    let json = ended.stderr.lines().find(|line| line.starts_with('{')).expect("JSON on standard error");
    assert!(json.contains(r#""written":2000"#), "{json}");
}

#[root_test]
fn root_a_closed_pipe_is_an_error_that_says_so() {
    let network = network();
    let (running, stdout) = start_piped(&network, &["capture", "-i", "rx0", "-w", "-", "-U"]);
    drop(stdout);
    send_off(&network, 1000);
    let ended =
        running.wait().failed(&["weir: the reader of standard output has closed it", "not in the file"]);
    ended.says("0 packets captured");

    // Nobody reads the summary, which goes to standard error with -w -.
    let (_, stderr) = rustix::pipe::pipe().expect("a pipe");
    let mut command =
        weir(&["capture", "-B", "2MiB", "-i", "rx0", "-w", "-", "--json", "--duration", "100ms"]);
    command.stdout(Stdio::null()).stderr(stderr);
    let ended = network.rx().run(|| command.status().expect("it starts"));
    assert_eq!(ended.code(), Some(1));
}

#[root_test]
fn root_a_duration_ends_the_capture() {
    let network = network();
    let begun = Instant::now();
    let account =
        run(&network, &["capture", "-i", "rx0", "--duration", "700ms", "--json"]).succeeded().account();
    assert!(begun.elapsed() >= Duration::from_millis(700));
    let seconds = account.0["elapsed_seconds"].as_f64().expect("a number");
    assert!(seconds >= 0.7, "{seconds}");
    assert_eq!(account.0["stopped_by"], "duration");
}

root_tests! { the_snap_length_cuts_and_says_so:
    root_the_snap_length_cuts_and_says_so_xdp(XDP);
    root_the_snap_length_cuts_and_says_so_exclusive(EXCLUSIVE);
    root_the_snap_length_cuts_and_says_so_tc(TC);
    root_the_snap_length_cuts_and_says_so_af_packet(AF_PACKET);
    root_the_snap_length_cuts_and_says_so_af_xdp(AF_XDP);
}

fn the_snap_length_cuts_and_says_so(source: &[&str]) {
    let directory = directory();
    let (network, file) = (network(), path(&directory, "cut.pcapng"));
    let running = capture(&network, &[source, &["-w", &file, "-s", "96"]].concat());
    let frames = [60, 96, 97, 1514].map(|size| Traffic::new(size).expect("size").frame(0));
    send_each(network.pair(), &frames);
    running.interrupt().succeeded();
    let lengths = tshark(file.as_ref(), &["frame.len", "frame.cap_len"]);
    assert_eq!(lengths, ["60\t60", "96\t96", "97\t96", "1514\t96"], "{source:?}");
}

#[root_test]
fn root_classic_pcap_is_read_by_tcpdump() {
    let directory = directory();
    let magic = |bytes: &[u8]| u32::from_ne_bytes(*bytes.first_chunk().expect("a header"));
    for (precision, expected) in
        [(&["--micro"][..], 0xa1b2_c3d4), (&["--nano"], 0xa1b2_3c4d), (&[], 0xa1b2_c3d4)]
    {
        let (network, file) = (network(), path(&directory, "classic.pcap"));
        let running = capture(&network, &[&["--format", "pcap", "-w", &file], precision].concat());
        send(&network, 500);
        running.interrupt().succeeded().says("500 packets captured");
        assert_eq!(magic(&fs::read(&file).expect("the file")), expected);
        let output =
            Command::new("tcpdump").args(["-nn", "-r", &file]).output().expect("tcpdump is installed");
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 500);
    }
}

#[root_test]
fn root_several_interfaces_in_one_file() {
    let (directory, mut network) = (directory(), network());
    network.connect(Veth::default().queues(2)).expect("a second pair");
    let file = path(&directory, "both.pcapng");
    let options = ["-i", "rx1", "--source", "xdp", "-w", &file, "--json", "--comment", "two at once"];
    let running = capture(&network, &options);
    for (pair, frames) in network.pairs().iter().zip([3, 5]) {
        send_each(pair, &Traffic::new(60).expect("size").between(pair).frames(0..frames));
    }
    let account = running.interrupt().succeeded().account();
    account.closes();
    assert_eq!(account.0["queues"].as_array().map(Vec::len), Some(3));
    for (place, (name, written)) in [("rx0", 3), ("rx1", 5)].into_iter().enumerate() {
        assert_eq!(account.0["interfaces"][place]["name"], name);
        assert_eq!(account.0["interfaces"][place]["written"], written);
    }
    let mut names = tshark(file.as_ref(), &["frame.interface_name"]);
    names.sort();
    assert_eq!(names, [vec!["rx0"; 3], vec!["rx1"; 5]].concat());
    let bytes = fs::read(&file).expect("the file");
    assert!(bytes.windows(11).any(|window| window == b"two at once"), "the comment is in the file");
}

#[root_test]
fn root_no_interface_named_takes_the_first_that_is_up() {
    let network = network();
    let running = start(&network, &["capture", "--json"]);
    let ended = running.interrupt().succeeded();
    assert!(ended.stderr.contains("no -i given: using rx0"), "{}", ended.stderr);
    assert_eq!(ended.account().0["interfaces"][0]["name"], "rx0");
    let list = run(&network, &["capture", "-D"]).succeeded();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.contains("1.lo [Up, Loopback") && list.contains(".rx0 [Up"), "{list}");
}

#[root_test]
fn root_quiet_prints_the_four_lines_only() {
    let capture = ["capture", "-i", "rx0", "-q", "-w", "/dev/null", "--duration", "10ms"];
    let ended = run(&network(), &capture).succeeded();
    let expected = ["captured", "received by filter", "dropped by kernel", "dropped by interface"];
    assert_eq!(ended.stderr, expected.map(|what| format!("0 packets {what}\n")).concat());
    assert!(ended.stdout.is_empty());
}

#[root_test]
fn root_loss_is_always_said_and_fails_who_asks_for_that() {
    let network = network();
    let lossy = ["-i", "rx0", "--source", "xdp", "-B", "64KiB", "--chunk-size", "4KiB", "--json"];
    for command in [&["capture", "-w", "/dev/null"][..], &["count"]] {
        for (more, status) in [(&["-q"][..], 0), (&["-q", "--fail-on-loss"], 3), (&["--fail-on-loss"], 3)] {
            let args = [command, &lossy[..], more].concat();
            let running = start_quietly(&network, &args);
            running.signal(Signal::STOP);
            send(&network, 10_000);
            running.signal(Signal::CONT);
            let ended = running.interrupt();
            assert_eq!(ended.status.code(), Some(status), "{args:?}: {}", ended.stderr);
            let lost = ended.account().number("lost");
            let line = format!("weir: {lost} of 10000 packets lost (NIC 0 pool {lost}");
            let said = ended.stderr.replace(',', "");
            let lines = said.lines().filter(|said| said.starts_with(&line)).count();
            assert!(lost > 0 && lines == 1, "{line}: {said}");
        }
    }
    // Where nothing is lost, nothing fails.
    run(&network, &["capture", "-i", "rx0", "--fail-on-loss", "--duration", "10ms"]).succeeded();
}

#[root_test]
fn root_exclusive_captures_do_not_cut_off_this_host_unasked() {
    let network = network();
    let shell = |script: &str| {
        let output = output(&network, Command::new("sh").args(["-c", script]));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let ip = |args: &str| shell(&format!("ip {args}"));
    let take = |command: &str, login: &str, more: &[&str]| {
        let args = [command, "-i", "rx0", "-B", "8MiB", "--mode", "exclusive", "--duration", "10ms"];
        let mut command = weir(&[&args[..], more].concat());
        Running::spawn(&network, command.env("SSH_CONNECTION", login)).wait()
    };
    let refused = |command: &str, login: &str, parts: &[&str]| {
        let ended = take(command, login, &[]);
        assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
        }
        ended.stderr.contains("this login")
    };
    shell("echo 0 >/proc/sys/net/ipv6/conf/rx0/disable_ipv6");
    ip("address add fe80::5/64 dev rx0 nodad");
    take("capture", "fe80::9%rx0 50000 fe80::6%rx0 22", &[]).succeeded();
    assert!(refused("count", "fe80::9%rx0 50000 fe80::5%rx0 22", &["fe80::5 (used by this login"]));
    // Behind it is what stands on it.
    ip("link add br0 type bridge");
    ip("link set rx0 master br0");
    assert!(!refused("capture", "", &["its traffic for bridge br0\n"]));
    ip("link set rx0 nomaster");
    ip("route add 10.9.0.2 dev rx0");
    assert!(!refused("capture", "", &["its traffic for the route to 10.9.0.2\n"]));
    ip("link set rx0 master br0");
    ip("address add 192.0.2.5/24 dev br0");
    assert!(!refused("capture", "", &["its traffic for 192.0.2.5 on br0\n", "--force"]));
    ip("address add 198.51.100.1/24 dev rx0");
    let login = "203.0.113.9 50000 198.51.100.1 22";
    let told = ["cannot use --mode exclusive on rx0", "198.51.100.1 (used by this login), 192.0.2.5"];
    assert!(refused("count", login, &told));
    for command in ["capture", "count"] {
        take(command, login, &["--force"]).succeeded();
    }
    // Nor from elsewhere.
    let elsewhere = format!("/proc/{}/ns/net", std::process::id());
    let mut there =
        weir(&["capture", "-i", "lo", "--netns", &elsewhere, "--mode", "exclusive", "-B", "8MiB"]);
    let ended = Running::spawn(&network, &mut there).wait();
    assert!(ended.stderr.contains("its traffic for 127.0.0.1"), "{}", ended.stderr);
}

root_tests! { who_waits_until_it_is_ready_misses_no_packet:
    root_who_waits_until_it_is_ready_misses_no_packet_xdp("capture", XDP);
    root_who_waits_until_it_is_ready_misses_no_packet_tc("capture", TC);
    root_who_waits_until_it_is_ready_misses_no_packet_af_packet("capture", AF_PACKET);
    root_who_waits_until_it_is_ready_misses_no_packet_handlers("count", &["--handlers", "2", "--steer", "flow"]);
}

fn who_waits_until_it_is_ready_misses_no_packet(command: &str, args: &[&str]) {
    let (network, directory) = (network(), directory());
    let file = path(&directory, "ready.pcapng");
    let write = if command == "capture" { &["-w", &file][..] } else { &[] };
    let running = start_quietly(&network, &[&[command, "-q", "--json", "-i", "rx0"], write, args].concat());
    assert_eq!(Path::new(&file).exists(), command == "capture");
    send(&network, 2000);
    let account = running.interrupt().succeeded().account();
    assert_eq!((account.number("captured"), account.number("lost")), (2000, 0));
}

#[root_test]
fn root_systemd_is_told_when_it_captures() {
    let (network, directory) = (network(), directory());
    let place = path(&directory, "notify");
    let abstract_name = format!("weir-test-{}", std::process::id());
    let in_files = UnixDatagram::bind(&place).expect("a socket");
    let elsewhere = network.rx().run(|| {
        let address = SocketAddr::from_abstract_name(&abstract_name)?;
        UnixDatagram::bind_addr(&address)
    });
    for (name, socket) in [(place, in_files), (format!("@{abstract_name}"), elsewhere.expect("a socket"))] {
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        let mut command = weir(&["capture", "-q", "--json", "-B", "8MiB", "-i", "rx0", "--source", "xdp"]);
        let running = Running::spawn(&network, command.env("NOTIFY_SOCKET", &name));
        let mut word = [0; 64];
        let length = socket.recv(&mut word).expect("a word");
        assert_eq!(&word[..length], b"READY=1", "{name}");
        send(&network, 2000);
        let ended = running.interrupt().succeeded();
        assert_eq!(ended.account().number("captured"), 2000, "{}", ended.stderr);
    }
}

#[test]
fn a_ready_descriptor_that_is_not_there_is_a_usage_error() {
    let output = weir(&["capture", "-i", "lo", "--ready-fd", "77"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot write to --ready-fd 77") && said.contains("77>FILE"), "{said}");
}

#[root_test]
fn root_a_full_disk_is_told_and_counted() {
    let network = network();
    // The start of the file is written at once, and refused at once.
    run(&network, &["capture", "-i", "rx0", "-w", "/dev/full"])
        .failed(&["weir: no space left for /dev/full"]);

    let directory = directory();
    let file = path(&directory, "small.pcapng");
    let mut command = Command::new("prlimit");
    command.args([
        "--fsize=40000",
        env!("CARGO_BIN_EXE_weir"),
        "capture",
        "-i",
        "rx0",
        "-B",
        "8MiB",
        "-U",
        "-w",
        &file,
        "--json",
    ]);
    // Who writes past the limit gets a signal, unless it is ignored.
    let mut ignoring = Command::new("env");
    ignoring.arg("--ignore-signal=XFSZ").arg(command.get_program()).args(command.get_args());
    let running = Running::spawn(&network, &mut ignoring);
    running.wait_until_open();
    send_off(&network, 5000);
    let ended = running.wait().failed(&["cannot grow further", "safely written", "not in the file"]);
    let account = ended.account();
    let written = account.number("written");
    assert!((1..5000).contains(&written), "{}", account.0);
    account.closes();
    assert_eq!(account.number("not_written"), account.number("captured") - written, "{}", account.0);
    assert_eq!(account.0["stopped_by"], "error");
    assert!(account.0["error"].as_str().is_some_and(|error| error.contains("cannot grow")));
    assert_eq!(tshark(file.as_ref(), &["frame.len"]).len() as u64, written, "what was written is readable");
}

#[root_test]
fn root_an_interface_that_goes_away_ends_the_capture() {
    let (directory, network) = (directory(), network());
    let file = path(&directory, "gone.pcapng");
    let running = capture(&network, &["-w", &file, "--json"]);
    send(&network, 100);
    let mut delete = Command::new("ip");
    delete.args(["link", "delete", "rx0"]);
    assert!(network.rx().spawn(&mut delete).expect("ip starts").wait().expect("ip ends").success());
    let ended = running.wait().failed(&["interface `rx0` is gone"]);
    assert_eq!(ended.account().number("written"), 100);
    assert_eq!(tshark(file.as_ref(), &["frame.len"]).len(), 100);
}

#[root_test]
fn root_bad_places_are_named() {
    let (directory, network) = (directory(), network());
    let place = directory.path().display().to_string();
    run(&network, &["capture", "-i", "rx0", "-w", &place]).failed(&["it is a directory", &place]);
    let nowhere = path(&directory, "no/file");
    run(&network, &["capture", "-i", "rx0", "-w", &nowhere]).failed(&[": no directory", "mkdir -p"]);
}

#[root_test]
fn root_a_pool_larger_than_memory_is_a_usage_error() {
    let network = network();
    let too_many: [&[&str]; 3] = [&["-B", "1T"], &["-B", "1000000T"], &["--chunks", "4294967295"]];
    for (size, source) in
        too_many.iter().flat_map(|size| ["xdp", "tc", "af_packet"].map(|source| (size, source)))
    {
        let mut command = weir(&[&["capture", "-i", "rx0", "--source", source], *size].concat());
        let ended = Running::spawn_with_memory(&network, &mut command, "it is refused").wait();
        assert_eq!(ended.status.code(), Some(2), "{size:?} {source}: {}", ended.stderr);
        let said = ["try -B ", "-B, or --chunks times --chunk-size"];
        assert!(said.iter().any(|part| ended.stderr.contains(part)), "{}", ended.stderr);
    }
}

#[test]
fn an_unknown_interface_is_answered_with_the_known_ones() {
    let output = weir(&["capture", "-i", "lo0"]).output().expect("weir runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in ["weir: no interface named `lo0`", "hint: did you mean `lo`? available: lo"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn no_privilege_is_told_with_the_capability() {
    for source in ["af_packet", "tc", "xdp"] {
        // Root without any capability, or whoever runs the test.
        let mut command = Command::new("setpriv");
        if rustix::process::geteuid().is_root() {
            command.args(["--bounding-set=-all", "--inh-caps=-all"]);
        }
        command.args([env!("CARGO_BIN_EXE_weir"), "capture", "-i", "lo", "--source", source]);
        let output = command.output().expect("setpriv is installed");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        for part in ["`lo`", "permission denied", "hint: run as root", "setcap cap_"] {
            assert!(text.contains(part), "{source}: {text}");
        }
    }
}

/// Frames that arrive, and frames that leave.
const WAYS: (u64, u64) = (60, 40);
const ARRIVING: (u64, u64) = (WAYS.0, 0);
const LEAVING: (u64, u64) = (0, WAYS.1);

root_tests! { which_way_packets_went_is_the_same_live_and_in_the_file:
    root_which_way_packets_went_is_the_same_live_and_in_the_file_xdp(&[(XDP, ARRIVING)]);
    root_which_way_packets_went_is_the_same_live_and_in_the_file_tc(
        &[(TC, WAYS), (&["--source", "tc", "-Q", "in"], ARRIVING), (&["--source", "tc", "-Q", "out"], LEAVING)]
    );
    root_which_way_packets_went_is_the_same_live_and_in_the_file_xdp_and_tc(&[(&["--source", "xdp+tc"], WAYS)]);
    root_which_way_packets_went_is_the_same_live_and_in_the_file_af_packet(
        &[
            (AF_PACKET, WAYS),
            (&["--source", "af_packet", "-Q", "in"], ARRIVING),
            (&["--source", "af_packet", "-Q", "out"], LEAVING),
        ]
    );
    root_which_way_packets_went_is_the_same_live_and_in_the_file_af_xdp(&[(AF_XDP, ARRIVING)]);
}

/// `cases`: sources, and what each of them sees of [`WAYS`].
fn which_way_packets_went_is_the_same_live_and_in_the_file(cases: &[(&[&str], (u64, u64))]) {
    let (directory, network) = (directory(), network());
    let pair = network.pair();
    let sent = Traffic::new(60).expect("a size");
    let file = path(&directory, "file.pcapng");
    for &(source, (inbound, outbound)) in cases {
        let written = |expression: &[&str]| {
            let running = capture(&network, &[source, &["-w", &file, "--json", "--"], expression].concat());
            send(&network, WAYS.0);
            let sender = network.rx().run(|| FrameSender::new(&pair.rx)).expect("a socket");
            (0..WAYS.1).for_each(|number| sender.send(&sent.frame(number)).expect("frames"));
            running.interrupt().succeeded().account().number("written")
        };
        let read = |expression: &str| {
            let output = weir(&["read", &file, "--", expression]).output().expect("weir runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count() as u64
        };
        assert_eq!(written(&["inbound"]), inbound, "{source:?}: inbound, live");
        assert_eq!(written(&["outbound"]), outbound, "{source:?}: outbound, live");
        assert_eq!(written(&[]), inbound + outbound, "{source:?}: everything");
        let judged = tshark(file.as_ref(), &["frame.packet_flags_direction"]);
        for (expression, wanted, flags) in
            [("inbound", inbound, "0x00000001"), ("outbound", outbound, "0x00000002")]
        {
            assert_eq!(read(expression), wanted, "{source:?}: {expression}, from the file");
            let judged = judged.iter().filter(|direction| *direction == flags).count() as u64;
            assert_eq!(judged, wanted, "{source:?}: {expression}, says tshark");
        }
    }
}
