//! Each source with each available network driver: every frame is delivered as it was on the wire, or the source says
//! that it cannot do that. On most machines the driver is veth. `scripts/test-kernels cards` provides pairs of cards,
//! each of which receives what the other sends, and creates a table from the lines that begin with `card |`.

use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use weir::writer::{Writer, WriterOptions};
use weir::{Capture, FileInterface, Filter, Mode, SourceChoice};
use weir_lab::{FrameSender, Generator, Network, Traffic, Veth, root_test};
use weir_sys::ethtool::Ethtool;
use weir_sys::kernel;
use weir_sys::link::links;

#[path = "common/mod.rs"]
mod common;

use common::{drain, ended, wait_for};

/// Drivers (by ethtool's name) whose cards come in pairs here.
const DRIVERS: [&str; 6] = ["virtio_net", PLATFORM, "e1000e", "e1000", "igb", "vmxnet3"];
/// One whose device honours the platform's restrictions on memory (`VIRTIO_F_ACCESS_PLATFORM`): without, the driver has no
/// addresses for zero-copy.
const PLATFORM: &str = "virtio_net, ACCESS_PLATFORM";
/// From this kernel on `virtio_net` says that it has zero-copy, by its history; tried were 6.12, which copies, and 7.2.
const ZERO_COPY: (u32, u32) = (6, 13);

const WAYS: [(SourceChoice, Mode); 7] = [
    (SourceChoice::AfPacket, Mode::Pass),
    (SourceChoice::Tc, Mode::Pass),
    (SourceChoice::Xdp, Mode::Pass),
    (SourceChoice::Xdp, Mode::Exclusive),
    (SourceChoice::XdpTc, Mode::Pass),
    (SourceChoice::AfXdp, Mode::Exclusive),
    (SourceChoice::Auto, Mode::Pass),
];

/// Below and above the lengths at which drivers change what they do.
const SIZES: [usize; 6] = [64, 256, 1024, 1025, 1500, 1514];
/// As many as the smallest ring of these cards holds.
const BURST: u64 = 64;

/// What is said of one source on one driver.
enum Said {
    /// Every frame came, with its tags where they were.
    Right(String),
    /// It could not be had, and said why.
    Refused(String),
    Wrong(String),
}

#[root_test]
fn root_each_source_on_each_driver() {
    let mut wrong = Vec::new();
    let mut tell = |driver: &str, way: (SourceChoice, Mode), said: Said| {
        let (verdict, detail) = match said {
            Said::Right(detail) => ("right", detail),
            Said::Refused(error) => ("refused", error),
            Said::Wrong(what) => {
                wrong.push(format!("{driver} {way:?}: {what}"));
                ("**wrong**", what)
            }
        };
        let (source, mode) = way;
        let detail = detail.lines().next().unwrap_or_default().replace('|', "/");
        // A closed standard error is no reason to fail.
        let _ = writeln!(std::io::stderr(), "card | {driver} | {source:?}, {mode:?} | {verdict} | {detail}");
    };
    let veth = Network::new(Veth::default()).expect("a network");
    for way in WAYS {
        let said = try_way(&veth, way);
        assert!(!matches!(said, Said::Refused(_)), "veth has all of them");
        tell("veth", way, said);
    }
    for driver in DRIVERS {
        let Some((tx, rx)) = cards(driver) else { continue };
        let network = Network::of_cards(&tx, &rx).unwrap_or_else(|error| panic!("{driver}: {error}"));
        for way in WAYS {
            let said = match try_way(&network, way) {
                Said::Right(detail)
                    if driver == PLATFORM
                        && kernel::version() >= ZERO_COPY
                        && detail.contains("no zero-copy") =>
                {
                    Said::Wrong(detail)
                }
                said => said,
            };
            let everywhere = matches!(way.0, SourceChoice::AfPacket | SourceChoice::Tc | SourceChoice::Auto);
            let refused = matches!(said, Said::Refused(_));
            tell(driver, way, said);
            assert!(!(everywhere && refused), "{way:?} runs on any driver, but not on {driver}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A bond hands the program to each of its ports, which have receive queues of the same numbers.
#[root_test]
fn root_both_ports_of_a_bond_at_once_make_one_whole_file() {
    const COUNT: u64 = 20_000;
    let mut network = Network::new(Veth::default()).expect("a network");
    network.connect(Veth::default()).expect("another pair");
    let ip = |arguments: &str| {
        Command::new("ip").args(arguments.split(' ')).output().expect("iproute2").status.success()
    };
    let tell = |verdict: &str, detail: &str| {
        // As above.
        let _ = writeln!(std::io::stderr(), "card | bonding | Xdp, Pass | {verdict} | {detail}");
    };
    if !network.rx().run(|| ip("link add bond0 type bond mode balance-rr")) {
        return tell("not there", "this kernel has no bond driver");
    }
    network.rx().run(|| {
        for port in ["rx0", "rx1"] {
            assert!(ip(&format!("link set {port} down")) && ip(&format!("link set {port} master bond0")));
            assert!(ip(&format!("link set {port} up")));
        }
        assert!(ip("link set bond0 up"));
    });
    let generators = network.pairs().iter().map(|pair| {
        let traffic = Traffic::new(300).expect("a size").between(pair);
        Generator::new(pair, &traffic).expect("it loads")
    });
    let generators: Vec<_> = generators.collect();
    network.rx().run(|| {
        let builder = common::with_room_for(2 * COUNT, 300).interface("bond0").source(SourceChoice::Xdp);
        let mut capture = builder.open().expect("it opens");
        let detail = capture.interfaces()[0].detail.clone();
        let file = tempfile::NamedTempFile::new().expect("a file");
        let described: Vec<_> = capture.interfaces().iter().map(FileInterface::from).collect();
        let mut writer = Writer::create(file.path(), &described, &WriterOptions::default()).expect("a file");
        let accepted: u64 = thread::scope(|scope| {
            let sending: Vec<_> = generators
                .into_iter()
                .map(|mut generator| scope.spawn(move || generator.send(COUNT).expect("frames").accepted))
                .collect();
            while !sending.iter().all(|one| one.is_finished()) {
                if let Some(chunk) = capture.next(Duration::from_millis(10)).expect("it goes on").taken() {
                    writer.write(chunk).expect("it is written");
                }
            }
            sending.into_iter().map(|one| one.join().expect("no panic")).sum()
        });
        wait_for(&mut capture, |account| account.total().captured + account.total().lost >= accepted);
        drain(&mut capture, |chunk| writer.write(chunk).expect("it is written"));
        let account = capture.stats().expect("an account");
        let total = account.total();
        writer.finish(&account).1.expect("the file is whole");
        // Where the machine is slow, not all that is generated finds room in a ring.
        assert!(accepted > COUNT / 10 && total.seen >= accepted, "{accepted} {total:?}");
        assert!(total.errors == 0 && total.seen == total.captured + total.lost, "{total:?}");

        let tcpdump = Command::new("tcpdump").arg("-nr").arg(file.path()).output().expect("tcpdump");
        assert!(tcpdump.status.success(), "{}", String::from_utf8_lossy(&tcpdump.stderr));
        let lines = tcpdump.stdout.iter().filter(|&&byte| byte == b'\n').count() as u64;
        assert_eq!(lines, total.captured);
        tell("right", &detail);
    });
}

/// Two interfaces of this namespace with this driver.
fn cards(driver: &str) -> Option<(String, String)> {
    let ethtool = Ethtool::new().expect("a socket");
    let links = links().expect("interfaces");
    let mut of_driver = links.into_iter().filter(|link| {
        let name = ethtool.driver(&link.name);
        // The device's features, a digit each.
        let features = fs::read(format!("/sys/class/net/{}/device/features", link.name)).unwrap_or_default();
        let platform = name.as_deref() == Some("virtio_net") && features.get(33) == Some(&b'1');
        if platform { driver == PLATFORM } else { name.as_deref() == Some(driver) }
    });
    Some((of_driver.next()?.name, of_driver.next()?.name))
}

fn try_way(network: &Network, way: (SourceChoice, Mode)) -> Said {
    network.rx().run(|| {
        let (source, mode) = way;
        let builder = common::capture().interface(&network.pair().rx.name).source(source).mode(mode);
        // A card may begin anew when a program comes, and carries nothing meanwhile.
        let mut capture = match builder.open() {
            Ok(capture) => capture,
            Err(error) => return Said::Refused(error.to_string()),
        };
        thread::sleep(Duration::from_secs(3 * u64::from(network.pair().rx.name != "rx0")));
        let interface = capture.interfaces()[0].clone();
        let tags_missing = interface.detail.contains("missing")
            || interface
                .warnings
                .iter()
                .any(|warning| matches!(warning, weir::InterfaceWarning::TagsLost { .. }));
        let detail = format!("{}: {}", interface.source, interface.detail);

        for (size, tag) in SIZES.into_iter().flat_map(|size| [(size, None), (size, Some(6))]) {
            // The tag makes it longer than the MTU allows for.
            if tag.is_some() && (size == SIZES[SIZES.len() - 1] || tags_missing) {
                continue;
            }
            let mut traffic = Traffic::new(size).expect("a size").between(network.pair());
            if let Some(tag) = tag {
                traffic = traffic.vlan(tag).expect("a tag");
            }
            let sent = traffic.frames(0..BURST);
            let mut came = send(&mut capture, network, &traffic, BURST);
            // Cards, emulated ones above all, drop some of a burst now and then; nothing else may happen to a frame.
            for _again in 0..2 {
                if came.len() == sent.len() || !came.iter().all(|frame| sent.contains(frame)) {
                    break;
                }
                came = send(&mut capture, network, &traffic, BURST);
            }
            if came != sent {
                return Said::Wrong(format!("{}; {}", difference(&came, &traffic), detail));
            }
        }
        // Filters, exchanged while packets come.
        for (expression, wanted) in
            [("udp", BURST), ("not udp", 0), ("greater 101", 0), ("less 100 and udp", BURST)]
        {
            if let Err(error) = capture.set_filter(Some(&Filter::new(expression))) {
                return Said::Wrong(format!("`{expression}`: {error}; {detail}"));
            }
            let traffic = Traffic::new(100).expect("a size").between(network.pair());
            let came = send(&mut capture, network, &traffic, wanted);
            if came.len() as u64 != wanted {
                return Said::Wrong(format!("`{expression}` took {} of {BURST}; {detail}", came.len()));
            }
        }
        capture.stop().expect("it stops");
        while capture.next(Duration::ZERO).expect("what was captured can be taken").taken().is_some() {}
        let total = capture.stats().expect("an account").total();
        let ends = total.filtered.unwrap_or(0) + total.captured + total.lost + total.errors;
        if total.lost + total.errors > 0 || (total.filtered.is_some() && total.seen != ends) {
            return Said::Wrong(format!("{total:?}; {detail}"));
        }
        if tags_missing {
            Said::Right(format!("VLAN tags missing, and said; {detail}"))
        } else {
            Said::Right(detail)
        }
    })
}

/// Sends a burst of frames, and gives those of them that were delivered, in the order of their times: where a queue is a processor's,
/// who sends may be moved to another one in the middle. So many should be.
fn send(capture: &mut Capture, network: &Network, traffic: &Traffic, wanted: u64) -> Vec<Vec<u8>> {
    /// How long to wait for what a card has lost.
    const PATIENCE: Duration = Duration::from_secs(5);
    let before = ended(&capture.stats().expect("an account").total());
    let sender = FrameSender::new(&network.pair().tx).expect("a socket");
    sender.send_frames(&traffic.frames(0..BURST)).expect("frames are sent");
    let (mut came, mut last) = (Vec::new(), Instant::now());
    loop {
        while let Some(chunk) = capture.next(Duration::from_millis(10)).expect("the capture goes on").taken()
        {
            // The system may have something to say of its own.
            let ours =
                chunk.packets().filter(|packet| packet.data.get(6..12) == Some(&network.pair().tx.mac[..]));
            came.extend(ours.map(|packet| (packet.timestamp, packet.data.to_vec())));
            last = Instant::now();
        }
        let total = capture.stats().expect("an account").total();
        let all = came.len() as u64 >= wanted && ended(&total) - before >= BURST;
        if all && total.delivered == total.captured || last.elapsed() > PATIENCE {
            came.sort_by_key(|&(timestamp, _)| timestamp);
            return came.into_iter().map(|(_, frame)| frame).collect();
        }
    }
}

fn difference(came: &[Vec<u8>], traffic: &Traffic) -> String {
    let sent = traffic.frames(0..BURST);
    let first = came.iter().zip(&sent).position(|(one, other)| one != other);
    let what = first.map_or_else(String::new, |at| {
        format!(", number {at} with {} bytes: {:02x?}", came[at].len(), &came[at][..came[at].len().min(40)])
    });
    let kind = if traffic.is_tagged() { "tagged frames" } else { "frames" };
    format!("of {BURST} {kind} of {} bytes {} came{what}", traffic.size(), came.len())
}
