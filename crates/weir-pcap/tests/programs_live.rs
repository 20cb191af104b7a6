//! Runs Debian's programs, unchanged, on both libraries, in private networks, and compares what they print and write.
//!
//! Captures run side by side and see the same packets. Only what legitimately differs is set aside: times, the order of
//! packets of two directions, names of temporary files.

mod beside;
mod programs;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread::{self, sleep};
use std::time::Duration;

use beside::{BOTH, Bench, Library, Outcome, packets, sorted};
use programs::Program;
use weir_lab::{Network, UdpSink, Veth, root_test};
use weir_sys::netns::NetNs;

/// Frames of each kind that [`frames`] makes.
const OF_A_KIND: u8 = 5;
/// Where tcpdump is ready.
const LISTENING: &str = "listening on";

/// Returns UDP, TCP, tagged UDP (VLAN 5), ARP, and large UDP frames to `to`, numbered from `first`, in turns.
fn frames(to: [u8; 6], from: [u8; 6], first: u8) -> Vec<Vec<u8>> {
    let ip = |protocol: u8, number: u8, rest: &[u8]| {
        let length = u16::try_from(20 + rest.len()).expect("a short packet").to_be_bytes();
        let mut packet = vec![0x45, 0, length[0], length[1], 0, number, 0, 0, 64, protocol, 0, 0];
        packet.extend([10, 77, 0, 1, 10, 77, 0, 2]);
        packet.extend(rest);
        packet
    };
    let udp = |number: u8, room: usize| {
        let length = u16::try_from(8 + room).expect("a short packet").to_be_bytes();
        let mut datagram = vec![0x10, number, 0, 7, length[0], length[1], 0, 0];
        datagram
            .extend(b"number ".iter().chain(&[b'0' + number / 10, b'0' + number % 10]).cycle().take(room));
        ip(17, number, &datagram)
    };
    let frame = |kind: &[u8], rest: Vec<u8>| [&to[..], &from, kind, &rest].concat();
    let kinds = (first..first + OF_A_KIND).map(|number| {
        let tcp = [0x10, number, 0, 80, 0, 0, 0, number, 0, 0, 0, 0, 0x50, 2, 0, 9, 0, 0, 0, 0];
        let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
        arp.extend([&from[..], &[10, 77, 0, 1], &[0; 6], &[10, 77, 9, number]].concat());
        [
            frame(&[8, 0], udp(number, 40)),
            frame(&[8, 0], ip(6, number, &tcp)),
            frame(&[0x81, 0, 0, 5, 8, 0], udp(number, 40)),
            frame(&[8, 6], arp),
            frame(&[8, 0], udp(number, 1200)),
        ]
    });
    kinds.flatten().collect()
}

impl Bench {
    /// Sends all frames of [`frames`] to `rx0`, and others from it.
    fn talk(&self) {
        let (tx, rx) = (self.network.pair().tx.mac, self.network.pair().rx.mac);
        self.send(&frames(rx, tx, 10), &frames(tx, rx, 30));
    }

    /// Runs a program in the receiving namespace on both libraries while frames pass.
    fn capture(&self, program: &str, options: &str, ready: &str) -> [Outcome; 2] {
        let arguments: Vec<&str> = options.split(' ').collect();
        self.beside(self.network.rx(), program, &arguments, ready, || self.talk())
    }

    /// Runs a program on one library after the other, and returns what it prints, without the lines that have one of
    /// the `varying` words.
    fn in_turns(&self, netns: &NetNs, program: &str, arguments: &[&str], varying: &[&str]) -> String {
        let [system, ours] = BOTH.map(|on| {
            let Outcome { status, out, err, .. } = self.start(netns, program, arguments, on).end();
            let lines =
                out.lines().chain(err.lines()).filter(|line| !varying.iter().any(|word| line.contains(word)));
            format!("{status}\n{}", lines.collect::<Vec<_>>().join("\n"))
        });
        assert_eq!(system, ours, "{program} {arguments:?}");
        ours
    }
}

fn same(options: &str, [system, ours]: &[Outcome; 2]) {
    assert_eq!(system.status, ours.status, "{options}: {system:?} {ours:?}");
    alike(options, &sorted(&system.out), &sorted(&ours.out));
    // Filters on cooked packets do not run in the kernel, so it counts what they reject, too.
    let counts = |line: &&str| options.contains("-i any") && line.ends_with(" received by filter");
    let [system, ours] =
        [system, ours].map(|one| one.err.lines().filter(|line| !counts(line)).collect::<Vec<_>>());
    assert_eq!(system, ours, "{options}");
}

/// The packets are the same; shows those that are not.
fn alike(options: &str, system: &[String], ours: &[String]) {
    let only = |these: &[String], those: &[String]| {
        let number = |packets: &[String], packet| packets.iter().filter(|other| *other == packet).count();
        let more = these.iter().filter(|packet| number(these, *packet) > number(those, *packet));
        more.map(|packet| packet.chars().take(200).collect()).collect::<Vec<String>>()
    };
    assert!(
        system == ours,
        "{options}: of {} and {} packets, only with the system's library or more often {:#?}, only with ours {:#?}",
        system.len(),
        ours.len(),
        only(system, ours),
        only(ours, system)
    );
}

/// Returns the files that a program wrote in its directory, in the order of their names.
fn written(outcome: &Outcome) -> Vec<PathBuf> {
    let entries = outcome.place.read_dir().expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| !path.ends_with("out") && !path.ends_with("err")).collect();
    files.sort();
    files
}

/// Both ran to the end, and the packets of their files are the same, file by file.
fn same_files(options: &str, outcomes: &[Outcome; 2], number: usize, all: usize) {
    let [system, ours] = outcomes.each_ref().map(|outcome| {
        assert!(outcome.status.success(), "{options}: {outcome:?}");
        written(outcome).iter().map(|file| packets(file)).collect::<Vec<_>>()
    });
    assert_eq!(system.len(), number, "{options}");
    assert_eq!(system.iter().map(Vec::len).sum::<usize>(), all, "{options}");
    assert_eq!(ours.len(), number, "{options}");
    for (system, ours) in system.iter().zip(&ours) {
        alike(options, system, ours);
    }
}

#[root_test]
fn root_tcpdump_prints_the_same_live() {
    // tcpdump waits for up to a second, so several do at the same time, in a network each.
    let benches = (0..3).map(|_| Bench::new(Veth::default(), &["tcpdump"])).collect();
    let Some(benches): Option<Vec<Bench>> = benches else { return };
    // A kind is 5 frames in each direction.
    let all = [
        "-i rx0 -c 50",
        "-i rx0 -c 25 -Q in",
        "-i rx0 -c 25 -Q out",
        "-i rx0 -c 10 vlan",
        "-i rx0 -c 5 -Q in vlan 5 and udp",
        "-i rx0 -c 40 not vlan",
        "-i rx0 -c 10 -Q out udp",
        "-i rx0 -c 10 greater 1000",
        "-i rx0 -c 10 arp",
        "-i rx0 -c 50 -s 30",
        // The system's library keeps place for 8 packets that are this long otherwise.
        "-i rx0 -c 50 -vv -XX -s 2000 --immediate-mode",
        "-i rx0 -c 50 -B 300",
        "-i rx0 -c 10 -Z nobody tcp",
        "-i any -c 50",
        "-i any -c 50 -y LINUX_SLL",
        "-i any -c 10 tcp",
        "-i any -c 15 -Q in udp",
        "-i any -c 25 udp",
        "-i any -c 25 -y LINUX_SLL udp",
        "-i any -c 15 -y LINUX_SLL -Q in udp",
        "-i any -c 25 -Q in -x",
    ];
    thread::scope(|scope| {
        for (bench, some) in benches.iter().zip(all.chunks(all.len().div_ceil(benches.len()))) {
            scope.spawn(move || {
                for options in some {
                    let options = format!("-n -t -e {options}");
                    same(&options, &bench.capture("tcpdump", &options, LISTENING));
                }
            });
        }
    });
}

#[root_test]
fn root_tcpdump_writes_the_same_live() {
    let Some(bench) = Bench::new(Veth::default(), &["tcpdump"]) else { return };
    for options in [
        "-i rx0 -c 50 -w file",
        "-i rx0 -c 50 -w file --nano",
        "-i rx0 -c 50 -w file -U -Z nobody",
        "-i any -c 50 -w file",
        "-i rx0 -c 10 -w file vlan",
    ] {
        let all = if options.ends_with("vlan") { 10 } else { 50 };
        same_files(options, &bench.capture("tcpdump", options, LISTENING), 1, all);
    }
    // A new file after each megabyte, and one for each second in which there are packets.
    let [tx, rx] = [&bench.network.pair().tx, &bench.network.pair().rx].map(|port| port.mac);
    let many = || {
        for first in (0..250).step_by(5).cycle().take(300) {
            bench.send(&frames(rx, tx, first), &[]);
        }
    };
    let run = |options: &str, traffic: &dyn Fn()| {
        let arguments: Vec<&str> = options.split(' ').collect();
        bench.beside(bench.network.rx(), "tcpdump", &arguments, LISTENING, traffic)
    };
    let by_size = "-i rx0 -B 16384 -c 7500 -w file -C 1 -W 5 -Z nobody";
    same_files(by_size, &run(by_size, &many), 3, 7500);
    let by_time = "-i rx0 -c 50 -w file-%s -G 1";
    let [system, ours] = run(by_time, &|| {
        bench.send(&frames(rx, tx, 10), &[]);
        sleep(Duration::from_millis(1100));
        bench.send(&frames(rx, tx, 30), &[]);
    })
    .map(|outcome| {
        let files = written(&outcome);
        assert!(outcome.status.success() && files.len() > 1, "{outcome:?} {files:?}");
        files.iter().flat_map(|file| packets(file)).collect::<Vec<_>>()
    });
    alike(by_time, &system, &ours);
}

#[root_test]
fn root_dumpcap_and_tshark_capture_the_same() {
    let Some(bench) = Bench::new(Veth::default(), &["dumpcap", "tshark", "tcpdump"]) else { return };
    for (options, files, all) in [
        ("-i rx0 -w file -c 50", 1, 50),
        ("-i rx0 -P -w file -a packets:50", 1, 50),
        ("-i any -w file -c 50", 1, 50),
        ("-i rx0 -s 40 -w file -c 10 -f vlan", 1, 10),
        ("-i rx0 -f arp -i rx0 -f tcp -t -w file -c 20", 1, 20),
    ] {
        let outcomes = bench.capture("dumpcap", options, "File: ");
        same_files(options, &outcomes, files, all);
    }
    // One direction, so that the packets have one order.
    let ring = ["-i", "rx0", "-P", "-w", "file", "-b", "packets:10", "-c", "25"];
    let [tx, rx] = [&bench.network.pair().tx, &bench.network.pair().rx].map(|port| port.mac);
    let one_way = || bench.send(&frames(rx, tx, 10), &[]);
    same_files(
        "-b packets:10",
        &bench.beside(bench.network.rx(), "dumpcap", &ring, "File: ", one_way),
        3,
        25,
    );
    // Not what the other tshark, which starts meanwhile, sends to itself: its androiddump looks for devices.
    let elsewhere = "!(ip[12:4]=0x7f000001)";
    for options in ["-i rx0 -c 50", "-i rx0 -c 10 -f arp", &format!("-i any -c 50 -f {elsewhere}")] {
        let fields = "-e frame.len -e eth.src -e vlan.id -e ip.id -e udp.payload -e arp.dst.proto_ipv4";
        let options = format!("{options} -n -l -T fields {fields}");
        let [system, ours] = bench.capture("tshark", &options, "Capture started.");
        assert!(system.status.success() && ours.status.success(), "{options}: {system:?} {ours:?}");
        alike(&options, &sorted(&system.out), &sorted(&ours.out));
        assert_eq!(system.out.lines().count(), if options.contains("arp -n") { 10 } else { 50 });
    }
}

#[root_test]
fn root_ngrep_finds_the_same() {
    let Some(bench) = Bench::new(Veth::default(), &["ngrep"]) else { return };
    for options in
        ["-l -d rx0 -W single -n 10 number.3[0-9] udp", "-l -d any -W single -n 5 number.1 greater 1000"]
    {
        let outcomes = bench.capture("ngrep", options, "match (JIT): ");
        same(options, &outcomes);
        assert!(outcomes[1].out.contains("number"), "{outcomes:?}");
    }
}

#[root_test]
fn root_scanners_report_the_same() {
    let veth = Veth::default().ipv4().chatter();
    let Some(bench) = Bench::new(veth, &["nmap", "arp-scan"]) else { return };
    let rx = &bench.network.pair().rx;
    let _listens = rx.netns.run(|| TcpListener::bind("10.77.0.2:80")).expect("a listener");
    let _receives = UdpSink::start(rx, 7, |_, _| {}).expect("a socket");
    for (scan, found) in [
        ("-sS -p 70-99", "80/tcp open  http    syn-ack ttl 64"),
        ("-sU -p 7,8", "8/udp closed"),
        ("-sF -p 80,81", "81/tcp closed"),
        ("-sn -PE --disable-arp-ping", "MAC Address"),
        ("-sn", "MAC Address"),
    ] {
        let options = format!("-n --reason {scan} 10.77.0.2");
        let arguments: Vec<&str> = options.split(' ').collect();
        let varying = ["Starting Nmap", "Nmap done", "latency"];
        let report = bench.in_turns(bench.network.tx(), "nmap", &arguments, &varying);
        assert!(report.contains(found), "{options}: {report}");
    }
    let arguments = ["-I", "tx0", "10.77.0.0/29"];
    // The count varies: some seconds after nmap's probes, the scanned host confirms its neighbour by a request.
    let varying = ["Ending arp-scan", "packets received by filter"];
    let report = bench.in_turns(bench.network.tx(), "arp-scan", &arguments, &varying);
    assert!(report.contains("10.77.0.2\t02:77:00:00:00:02"), "{report}");
}

/// Asks and sniffs by libpcap alone.
const SCAPY: &str = r"
from scapy.all import *
conf.use_pcap, conf.verb, conf.iface = True, 0, 'tx0'
import scapy.arch.libpcap
print(conf.L2socket, conf.L3socket, conf.L2listen)
show = lambda packet: packet and packet.summary()
print(show(srp1(Ether(dst='ff:ff:ff:ff:ff:ff')/ARP(pdst='10.77.0.2'), timeout=60)))
print(show(sr1(IP(dst='10.77.0.2')/ICMP()/b'x', timeout=60)))
found, none = sr(IP(dst='10.77.0.2')/TCP(dport=[79, 80, 81], sport=4445, flags='S'), timeout=60)
print(sorted(answer.sprintf('%TCP.sport% %TCP.flags%') for _, answer in found), none)
send_all = lambda: [send(IP(dst='10.77.0.2')/UDP(sport=1000 + i, dport=7)/b'sniff') for i in range(5)]
print([show(packet) for packet in sniff(filter='udp port 7', count=5, timeout=60, started_callback=send_all)])
began = threading.Event()
sniffer = AsyncSniffer(filter='icmp', count=2, started_callback=began.set)
sniffer.start()
began.wait()
send(IP(dst='10.77.0.2')/ICMP()/b'y')
sniffer.join(60)
print([show(packet) for packet in sniffer.results])
";

#[root_test]
fn root_scapy_sends_and_sniffs_the_same() {
    // Debian's, whose packages are there.
    let python = "/usr/bin/python3";
    let veth = Veth::default().ipv4().chatter();
    let Some(bench) = Bench::new(veth, &[python]) else { return };
    if !Path::new("/usr/lib/python3/dist-packages/scapy").exists() {
        return weir_skip::this_test("python3-scapy is missing (scripts/setup test)");
    }
    let rx = &bench.network.pair().rx;
    let _listens = rx.netns.run(|| TcpListener::bind("10.77.0.2:80")).expect("a listener");
    let _receives = UdpSink::start(rx, 7, |_, _| {}).expect("a socket");
    let shown = bench.in_turns(bench.network.tx(), python, &["-c", SCAPY], &[]);
    for found in
        ["02:77:00:00:00:02 says 10.77.0.2", "echo-reply", "'http SA'] <Unanswered: TCP:0", "L3pcapSocket"]
    {
        assert!(shown.contains(found), "{shown}");
    }
}

#[root_test]
fn root_tcpreplay_sends_the_same() {
    let Some(bench) = Bench::new(Veth::default(), &["tcpreplay", "tcpdump"]) else { return };
    let options = "-i rx0 -c 50 -w file";
    let [saved, _] = bench.capture("tcpdump", options, LISTENING);
    let saved = saved.place.join("file");
    let sent = packets(&saved);
    let copy = tempfile::NamedTempFile::new().expect("a file");
    fs::copy(&saved, copy.path()).expect("a copy");
    let file = copy.path().to_str().expect("a name");
    for on in BOTH {
        let other = if on == Library::Ours { Library::System } else { Library::Ours };
        let capture =
            bench.start(bench.network.rx(), "tcpdump", &options.split(' ').collect::<Vec<_>>(), other);
        capture.says(LISTENING);
        let replay = bench.start(bench.network.tx(), "tcpreplay", &["-t", "-i", "tx0", file], on).end();
        assert!(
            replay.status.success() && replay.out.contains("Successful packets:        50"),
            "{replay:?}"
        );
        let arrived = capture.end();
        alike(file, &packets(&arrived.place.join("file")), &sent);
    }
}

#[root_test]
fn root_an_interface_that_disappears_ends_a_capture() {
    for commands in [
        &["link del rx0"][..],
        &["link set rx0 down", "link set rx0 up", "link set rx0 down", "link del rx0"],
    ] {
        let Some(bench) = Bench::new(Veth::default(), &["tcpdump", "ip"]) else { return };
        let rx = bench.network.rx();
        let outcomes = bench.beside(rx, "tcpdump", &["-i", "rx0", "-w", "file"], LISTENING, || {
            for command in commands {
                let mut ip = Command::new("ip");
                let ip = rx.spawn(ip.args(command.split(' '))).and_then(|mut child| child.wait());
                assert!(ip.expect("ip runs").success(), "{command}");
            }
        });
        same(&format!("{commands:?}"), &outcomes);
        assert!(outcomes[1].err.contains("tcpdump: pcap_loop: The interface disappeared"), "{outcomes:?}");
        assert_eq!(outcomes[1].status.code(), Some(1));
    }
}

/// Runs a C program in the receiving namespace of a network, on both libraries.
fn compare_in_a_network(name: &'static str) {
    compare_with(name, |command| command);
}

fn compare_with(name: &'static str, prepare: impl Fn(&mut Command) -> &mut Command + Sync) {
    Program::compile(name).compare_by(&[], |command| in_a_network_of_its_own(prepare(command)));
}

/// Runs a command in the receiving namespace of a new network.
fn in_a_network_of_its_own(command: &mut Command) -> Output {
    let network = Network::new(Veth::default()).expect("a network");
    let child = network.rx().spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    child.expect("it starts").wait_with_output().expect("it ends")
}

#[root_test]
fn root_a_daemon_without_privileges_filters_late() {
    compare_in_a_network("daemon");
}

/// Neither fork, chroot and lost privileges keep a filter out of the kernel, nor does the program see how it gets there.
#[root_test]
fn root_a_daemon_without_privileges_filters_a_pool_in_the_kernel() {
    let program = Program::compile("daemon");
    for source in ["tc", "auto"] {
        let reports = Mutex::new(String::new());
        program.compare_by(&[], |command| {
            let mut output =
                in_a_network_of_its_own(command.env("WEIR_SOURCE", source).env("WEIR_REPORT", "1"));
            let (ours, rest): (Vec<_>, Vec<_>) = String::from_utf8_lossy(&output.stderr)
                .lines()
                .map(str::to_owned)
                .partition(|line| line.starts_with("weir: "));
            reports.lock().expect("no panic").push_str(&ours.join("\n"));
            output.stderr = rest.join("\n").into_bytes();
            output
        });
        let reports = reports.into_inner().expect("no panic");
        // With each of our two builds.
        assert_eq!(reports.matches("filter in the kernel; received 12, lost 0").count(), 2, "{reports}");
    }
}

/// With a pool, too, the kernel's filter decides about whole packets, however little of them is kept.
#[root_test]
fn root_a_filter_tests_bytes_that_are_cut_off() {
    let Some(bench) = Bench::new(Veth::default(), &["tcpdump"]) else { return };
    let [tx, rx] = [&bench.network.pair().tx, &bench.network.pair().rx].map(|port| port.mac);
    for device in ["tc:rx0", "xdp:rx0", "xdp+tc:rx0"] {
        let options = ["-i", device, "-s", "34", "-c", "5", "-w", "file", "udp[8] >= 0"];
        let capture = bench.start(bench.network.rx(), "tcpdump", &options, Library::Ours);
        capture.says(LISTENING);
        bench.send(&frames(rx, tx, 0), &[]);
        let outcome = capture.end();
        assert!(outcome.status.success(), "{device}: {outcome:?}");
        assert_eq!(packets(&outcome.place.join("file")).len(), 5, "{device}");
    }
}

#[root_test]
fn root_nothing_stays_behind() {
    compare_in_a_network("unload");
}

/// The same with weir's pool behind our library, less often: it takes longer to open.
#[root_test]
fn root_no_pool_stays_behind() {
    for source in ["xdp", "tc"] {
        compare_with("unload", |command| command.env("WEIR_SOURCE", source).arg("8"));
    }
}

#[root_test]
fn root_threads_have_a_handle_each() {
    compare_in_a_network("threads");
}
