//! Packets printed while they arrive.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};
use rustix::process::Signal;
use serde_json::Value;
use weir_lab::{FrameSender, Network, Traffic, Veth, root_test};

use crate::harness::{
    Running, arrive, capture, directory, network, output, path, root_tests, run, send, send_each, start,
    start_piped, tshark, until, weir,
};
use crate::terminal::Terminal;

/// Frames of many protocols that can be sent as they are.
fn frames() -> Vec<Vec<u8>> {
    let bytes = |hex: &str| {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits.chunks(2);
        pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex"))
            .collect()
    };
    let frame = |line: &str| {
        let (length, data) = line.strip_prefix("1 ")?.split_once(' ')?;
        let data: Vec<u8> = bytes(data);
        let whole = length.parse() == Ok(data.len());
        (whole && (60..=1514).contains(&data.len())).then_some(data)
    };
    include_str!("../../../weir-dissect/tests/frames.txt").lines().filter_map(frame).collect()
}

root_tests! { live_lines_are_those_of_tcpdump:
    root_live_lines_are_those_of_tcpdump("-n");
    root_live_lines_are_those_of_tcpdump_with_links("-ne");
    root_live_lines_are_those_of_tcpdump_numbered_and_dumped("-n#XX");
    root_live_lines_are_those_of_tcpdump_shorter("-qnS");
}

fn live_lines_are_those_of_tcpdump(letters: &str) {
    let (network, frames) = (network(), frames());
    assert!(frames.len() > 50, "{}", frames.len());
    let number = frames.len().to_string();
    let mut tcpdump = Command::new("tcpdump");
    // With --immediate-mode it would lose some of these few frames.
    tcpdump.args(["-i", "rx0", "-B", "8192", "-t", letters, "-c", &number]);
    let mut judge = match network
        .rx()
        .run(|| tcpdump.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())
    {
        Ok(judge) => judge,
        Err(error) => return weir_skip::this_test(format_args!("tcpdump: {error}")),
    };
    let mut said = BufReader::new(judge.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("listening on") {
        line.clear();
        assert!(said.read_line(&mut line).expect("a line") > 0, "tcpdump ended");
    }
    let running = capture(&network, &["-t", letters, "-c", &number]);
    send_each(network.pair(), &frames);
    let ended = running.wait().succeeded();
    let theirs = String::from_utf8_lossy(&judge.wait_with_output().expect("it ends").stdout).into_owned();
    let ours = String::from_utf8_lossy(&ended.stdout).into_owned();
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
    ended.captured_all(frames.len() as u64);
}

#[root_test]
fn root_a_line_is_there_while_nothing_else_comes() {
    let network = network();
    for format in [&[][..], &["--json"]] {
        let running = capture(&network, format);
        for packets in 1..=3 {
            send(&network, 1);
            running.wait_for_lines(packets);
        }
        let ended = running.interrupt().succeeded();
        let last = if format.is_empty() { "" } else { "{\"type\":\"account\"" };
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(text.lines().last().expect("a line").starts_with(last), "{text}");
        assert_eq!(text.lines().count(), if format.is_empty() { 3 } else { 4 }, "{text}");
    }
}

/// Starts a shell in the receiving namespace whose script runs weir as `"$@"`, with a small pool.
fn script(network: &Network, script: &str, name: &str, args: &[&str]) -> Running {
    let mut command = Command::new("sh");
    command.args(["-c", script, name, env!("CARGO_BIN_EXE_weir"), "capture", "--chunks", "8"]).args(args);
    Running::spawn(network, &mut command)
}

#[root_test]
fn root_lines_go_through_grep_jq_and_tee_as_they_come() {
    if let Err(error) = Command::new("jq").arg("--version").output() {
        return weir_skip::this_test(format_args!("jq: {error}"));
    }
    let (network, directory) = (network(), directory());
    let copy = path(&directory, "copy");
    for (filter, options) in [
        ("grep --line-buffered -o 'IP .* UDP, length 18$'", &["-n", "-l"][..]),
        ("jq --unbuffered -c 'select(.number) | .number'", &["--json", "-l"]),
        ("tee \"$0\"", &["-n"]),
    ] {
        let options = [&["-i", "rx0", "-c", "4"], options].concat();
        let running = script(&network, &format!("\"$@\" | {filter}"), &copy, &options);
        running.wait_until_open();
        for lines in 1..=3 {
            send(&network, 1);
            running.wait_for_lines(lines);
        }
        send(&network, 1);
        let ended = running.wait().succeeded();
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert_eq!(text.lines().count(), 4, "{filter}: {text}");
        match filter {
            _ if filter.starts_with("jq") => assert_eq!(text, "1\n2\n3\n4\n"),
            _ if filter.starts_with("tee") => assert_eq!(fs::read_to_string(&copy).expect("a copy"), text),
            _ => {}
        }
    }
}

#[root_test]
fn root_closed_descriptors_are_never_taken_for_others() {
    let (network, directory) = (network(), directory());
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        for printed in [&[][..], &["--print", "-n"]] {
            let (file, ready) = (path(&directory, "closed.pcapng"), path(&directory, "ready"));
            mkfifoat(CWD, &ready, Mode::RWXU).expect("a FIFO");
            let options = [&["-i", "rx0", "-c", "300", "-w", &file, "--ready-fd", "7"], printed].concat();
            let running = script(&network, &format!("exec \"$@\" 7>\"$0\" {closed}"), &ready, &options);
            assert_eq!(fs::read_to_string(&ready).expect("a word"), "\n", "{closed}");
            send(&network, 300);
            let ended = running.wait();
            assert!(ended.status.success(), "{closed} {printed:?}: {:?} {}", ended.status, ended.stderr);
            let lines = ended.stdout.split_inclusive(|byte| *byte == b'\n').count();
            let wanted = if printed.is_empty() || closed.contains(" >") || closed == ">&-" { 0 } else { 300 };
            assert_eq!(lines, wanted, "{closed} {printed:?}");
            assert_eq!(tshark(file.as_ref(), &["frame.number"]).len(), 300, "{closed} {printed:?}");
            fs::remove_file(ready).expect("the FIFO");
        }
    }
}

#[root_test]
fn root_weir_read_prints_what_a_pipe_has_given_so_far() {
    let (network, directory) = (network(), directory());
    let file = path(&directory, "three.pcapng");
    let running = capture(&network, &["-w", &file, "-c", "3"]);
    send(&network, 3);
    running.wait().succeeded();
    let bytes = fs::read(&file).expect("the file");
    for format in [&[][..], &["--json"]] {
        let mut reader = weir(&[&["read", "-"], format].concat());
        let mut reader = reader.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("weir starts");
        let mut pipe = reader.stdin.take().expect("a pipe");
        // Everything but the end of the file, which stays open.
        pipe.write_all(&bytes[..bytes.len() - 1]).expect("room");
        let mut lines = BufReader::new(reader.stdout.take().expect("a pipe"));
        for _ in 0..3 {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).expect("a line") > 0);
        }
        drop(pipe);
        assert_eq!(reader.wait().expect("it ends").code(), Some(1), "the last byte is missing");
    }
}

/// Begins an object that stands for packets that were not printed.
const MARK: &str = "{\"type\":\"not_printed\"";

/// Sends what no pipe and no buffer for lines holds. Returns the number.
fn flood(network: &Network) -> u64 {
    const FRAMES: u64 = 40_000;
    const BURST: u64 = 1000;
    let traffic = Traffic::new(1514).expect("size").between(network.pair());
    let sender = FrameSender::new(&network.pair().tx).expect("a sender");
    for burst in 0..FRAMES / BURST {
        let frames = traffic.frames(burst * BURST..(burst + 1) * BURST);
        arrive(network.pair(), || sender.send_frames(&frames).expect("frames"));
    }
    FRAMES
}

/// Returns the packets printed and those that marks stand for, and the number of marks.
fn printed(text: &str) -> (u64, u64, usize) {
    let mark = |line: &str| {
        line.strip_prefix('[')?.strip_suffix(" not printed]")?.replace(',', "").parse::<u64>().ok()
    };
    let marks: Vec<u64> = text.lines().filter_map(mark).collect();
    ((text.lines().count() - marks.len()) as u64, marks.iter().sum(), marks.len())
}

#[root_test]
fn root_a_slow_reader_of_lines_costs_the_file_nothing() {
    let (network, directory) = (network(), directory());
    let file = path(&directory, "all.pcapng");
    let args = ["capture", "-i", "rx0", "-B", "16MiB", "-w", &file, "--print", "--json"];
    let (running, stdout) = start_piped(&network, &args);
    let sent = flood(&network);
    // The file has everything before anybody reads a line.
    until("the file", || {
        let length = fs::metadata(&file).map_or(0, |file| file.len());
        if length > sent * 1514 { Ok(()) } else { Err(length.to_string()) }
    });
    let (marked, mark) = mpsc::channel();
    let lines = thread::spawn(move || {
        let mut text = String::new();
        for line in BufReader::new(stdout).lines().map(|line| line.expect("UTF-8")) {
            if line.starts_with(MARK) {
                marked.send(()).expect("somebody waits");
            }
            text += &(line + "\n");
        }
        text
    });
    mark.recv().expect("a mark");
    send(&network, 5);
    let ended = running.interrupt().succeeded();
    let text = lines.join().expect("no panic");
    let sent = sent + 5;
    let (last, packets) =
        text.trim_end().rsplit_once('\n').map(|(packets, last)| (last, packets)).expect("lines");
    let account: Value = serde_json::from_str(last).expect("JSON");
    let skipped: u64 = packets
        .lines()
        .filter(|line| line.starts_with(MARK))
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["packets"].as_u64().expect("a number"))
        .sum();
    let lines = packets.lines().filter(|line| line.starts_with("{\"number\"")).count() as u64;
    assert!(skipped > 0 && lines + skipped == sent, "{lines} + {skipped}");
    assert_eq!(account["not_printed"], skipped);
    assert_eq!((account["written"].as_u64(), account["lost"].as_u64()), (Some(sent), Some(0)));
    assert!(ended.stderr.contains("packets not printed: more than standard output took"), "{}", ended.stderr);
    // Numbers count packets that were not printed, too.
    let number = packets.lines().rev().find(|line| line.starts_with("{\"number\"")).expect("a packet");
    let number = serde_json::from_str::<Value>(number).expect("JSON")["number"].as_u64();
    assert_eq!(number, Some(sent));
}

root_tests! { lines_go_on_while_the_reader_of_a_fifo_does_not:
    root_lines_go_on_while_the_reader_of_a_fifo_does_not(&[]);
    root_lines_go_on_while_the_reader_of_a_fifo_does_not_pcap(&["--format", "pcap"]);
    root_lines_go_on_while_the_reader_of_a_fifo_does_not_compressed(&["--compress", "zstd"]);
    root_lines_go_on_while_the_reader_of_a_fifo_does_not_at_once(&["-U", "--order", "none"]);
}

fn lines_go_on_while_the_reader_of_a_fifo_does_not(args: &[&str]) {
    const POOL: u64 = 4 << 20;
    let (network, directory) = (network(), directory());
    let (fifo, copy) = (path(&directory, "fifo"), path(&directory, "copy"));
    mkfifoat(CWD, &fifo, Mode::RWXU).expect("a FIFO");
    let reader = open(&*fifo, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).expect("it waits for nobody");
    let options = ["-B", "4MiB", "--chunk-size", "64KiB", "-w", &fifo, "--print", "-t"];
    let running = capture(&network, &[&options[..], args].concat());
    // More than the FIFO holds, less than the pool does.
    let fits = POOL / 2 / 128;
    send(&network, fits);
    running.wait_for_lines(usize::try_from(fits).expect("few"));
    // More than the pool holds, and nobody has read a byte.
    let frames = flood(&network) + fits;
    // It answers meanwhile.
    running.signal(Signal::USR1);
    running.wait_for("every chunk was full");
    // The reader takes everything in the end, and what it gets is a whole file.
    rustix::fs::fcntl_setfl(&reader, OFlags::empty()).expect("from now on it waits");
    let reader = thread::spawn(move || {
        let mut read = Vec::new();
        fs::File::from(reader).read_to_end(&mut read).map(|_| read)
    });
    // As timeout(1) does, which sends a signal to the process and to its group.
    running.signal(Signal::INT);
    let ended = running.interrupt().succeeded();
    fs::write(&copy, reader.join().expect("no panic").expect("a FIFO")).expect("room");
    if args.contains(&"zstd") {
        let mut zstd = Command::new("zstd");
        let plain = output(&network, zstd.args(["-q", "-d", "-c", &copy])).stdout;
        fs::write(&copy, plain).expect("room");
    }
    let in_file = tshark(copy.as_ref(), &["frame.len"]).len() as u64;
    assert!(fits < in_file && in_file < frames, "{in_file} of {frames}");
    ended.says(&format!("{in_file} packets captured"));
    let lost = ended.stderr.lines().find_map(|line| line.strip_suffix(" packets dropped by kernel"));
    assert_eq!(lost.map(|lost| lost.parse()), Some(Ok(frames - in_file)), "{}", ended.stderr);
    let lines = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(printed(&lines).0 + printed(&lines).1, in_file);
}

#[root_test]
fn root_a_reader_of_a_fifo_that_never_reads_does_not_hold_up_a_second_ctrl_c() {
    let (network, directory) = (network(), directory());
    let fifo = path(&directory, "fifo");
    mkfifoat(CWD, &fifo, Mode::RWXU).expect("a FIFO");
    let _reader =
        open(&*fifo, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).expect("it waits for nobody");
    let running = capture(&network, &["-w", &fifo, "--print"]);
    send(&network, 5000);
    running.wait_for_lines(5000);
    running.signal(Signal::INT);
    running.signal(Signal::INT);
    running.wait_for("waiting for the reader of the FIFO");
    // Not a key that bounces any more.
    thread::sleep(Duration::from_millis(1100));
    let ended = running.interrupt();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("weir: interrupted again: ended at once"), "{}", ended.stderr);
}

#[root_test]
fn root_without_a_file_a_slow_reader_gets_marks_and_nothing_is_lost() {
    let network = network();
    let (running, mut stdout) = start_piped(&network, &["capture", "-i", "rx0", "-B", "16MiB"]);
    let sent = flood(&network);
    let lines = thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).expect("UTF-8");
        text
    });
    let ended = running.interrupt().succeeded();
    let (lines, skipped, marks) = printed(&lines.join().expect("no panic"));
    assert!(marks > 0 && lines + skipped == sent, "{lines} + {skipped}, {marks} marks");
    ended.captured_all(sent);
}

#[root_test]
fn root_output_that_is_stuck_does_not_hold_up_the_end() {
    let (network, directory) = (network(), directory());
    let file = path(&directory, "all.pcapng");
    for args in [&["-c", "5000"][..], &["-c", "5000", "-w", &file, "--print", "--json"]] {
        let (running, mut stdout) = start_piped(&network, &[&["capture", "-i", "rx0"], args].concat());
        // More than a pipe holds.
        send(&network, 5000);
        let ended = running.wait().succeeded();
        ended.captured_all(5000);
        let left = ended.stderr.lines().find_map(|line| line.split_once(" packets not printed"));
        let left: u64 = left.expect("a number").0.replace(',', "").parse().expect("a number");
        let mut text = String::new();
        stdout.read_to_string(&mut text).expect("UTF-8");
        // What is in the pipe was printed; the last line may be cut.
        assert_eq!(text.matches('\n').count() as u64 + left, 5000, "{}", ended.stderr);
        let summary = ended.stderr.lines().find(|line| line.starts_with("{\"type\":\"account\""));
        assert_eq!(summary.is_some(), args.contains(&"--json"), "{}", ended.stderr);
    }
}

#[root_test]
fn root_whoever_has_read_enough_ends_the_lines_and_not_the_file() {
    let (network, directory) = (network(), directory());
    let (running, stdout) = start_piped(&network, &["capture", "-i", "rx0"]);
    drop(stdout);
    send(&network, 10);
    let ended = running.wait().succeeded();
    assert!(!ended.stderr.contains("error"), "{}", ended.stderr);

    let file = path(&directory, "all.pcapng");
    let (running, stdout) =
        start_piped(&network, &["capture", "-i", "rx0", "-w", &file, "--print", "-c", "20"]);
    drop(stdout);
    send(&network, 10);
    running.wait_for("no more packets are printed");
    send(&network, 10);
    running.wait().succeeded().says("20 packets captured");
    let args = ["capture", "-i", "rx0", "-w", &file, "--print", "--json", "-c", "20"];
    let (running, stdout) = start_piped(&network, &args);
    drop(stdout);
    send(&network, 10);
    running.wait_for("no more packets are printed");
    send(&network, 10);
    running.wait().succeeded();

    // Output that cannot be written is an error, and the file is complete in spite of it.
    let mut command = Command::new("sh");
    command.args([
        "-c",
        r#"exec "$@" >/dev/full"#,
        "sh",
        env!("CARGO_BIN_EXE_weir"),
        "capture",
        "-B",
        "8MiB",
    ]);
    command.args(["-i", "rx0", "-w", &file, "--print", "-c", "30"]);
    let running = Running::spawn(&network, &mut command);
    running.wait_until_open();
    send(&network, 15);
    running.wait_for("no more packets are printed");
    send(&network, 15);
    let ended = running.wait().failed(&["cannot write to standard output: No space left"]);
    ended.says("30 packets captured");
}

#[root_test]
fn root_options_alone_mean_capture_and_a_number_means_the_list() {
    let network = network();
    let list = run(&network, &["-D"]).succeeded();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let number = list.lines().find_map(|line| line.split_once(".rx0 ")).expect("rx0").0.to_owned();
    let running = start(&network, &["-B", "8MiB", "-nni", &number, "-c3", "udp"]);
    send(&network, 3);
    let ended = running.wait().succeeded();
    assert!(ended.stderr.contains("rx0: "), "{}", ended.stderr);
    assert_eq!(String::from_utf8_lossy(&ended.stdout).lines().count(), 3);
    let ended = run(&network, &["capture", "-i", "99", "-c", "1"]);
    ended.failed(&["99"]);
}

#[root_test]
fn root_a_terminal_shows_lines_or_the_progress_although_weir_is_confined() {
    if !Terminal::is_there() {
        return;
    }
    let (network, directory) = (network(), directory());
    let program = env!("CARGO_BIN_EXE_weir");
    let file = path(&directory, "all.pcapng");
    let socket = |name: &str| path(&directory, name);

    let capture = format!("{program} capture -i rx0 -B 8MiB -n -c 4");
    let terminal = Terminal::start(&network, socket("lines"), (100, 30), &capture);
    terminal.wait_for("; source ");
    send(&network, 3);
    terminal.wait_for("UDP, length 18");
    send(&network, 1);
    terminal.wait_for("4 packets captured");
    let screen = terminal.screen();
    assert_eq!(screen.lines().filter(|line| line.contains("UDP, length 18")).count(), 4, "{screen}");
    drop(terminal);

    let capture = format!("{program} capture -i rx0 -B 8MiB -w {file}");
    for (name, size) in [("progress", (100, 30)), ("tiny", (20, 5))] {
        let terminal = Terminal::start(&network, socket(name), size, &capture);
        // The line appears by itself, and follows.
        terminal.wait_for("0 lost");
        send(&network, 7);
        if name == "progress" {
            terminal.wait_for("7 captured");
        }
        terminal.types(&["C-c"]);
        terminal.wait_for("dropped by");
    }

    // Neither on a terminal that cannot redraw a line.
    for (name, term) in [("dumb", "TERM=dumb"), ("none", "-u TERM")] {
        let dumb = format!("env {term} {program} capture -i rx0 -B 8MiB -w {file} -c 5");
        let terminal = Terminal::start(&network, socket(name), (100, 30), &dumb);
        terminal.wait_for("; source ");
        send(&network, 5);
        terminal.wait_for("5 packets captured");
        assert!(!terminal.screen().contains("pps"), "{}", terminal.screen());
    }
}

#[root_test]
fn root_lines_of_several_interfaces_are_in_order_of_time_and_say_which() {
    let mut network = network();
    network.connect(Veth::default()).expect("another pair");
    let running = start(&network, &["capture", "-i", "rx0", "-i", "rx1", "-tt", "-c", "40"]);
    let traffic = Traffic::new(60).expect("size");
    for number in 0..20 {
        for pair in network.pairs() {
            send_each(pair, &[traffic.clone().between(pair).frame(number)]);
        }
    }
    let ended = running.wait().succeeded();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let mut seen = BTreeMap::<&str, u32>::new();
    let mut last = 0.0;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let time: f64 = words.next().expect("a time").parse().expect("seconds");
        assert!(time >= last, "{text}");
        last = time;
        *seen.entry(words.next().expect("a name")).or_default() += 1;
    }
    assert_eq!(seen, BTreeMap::from([("rx0", 20), ("rx1", 20)]));
}
