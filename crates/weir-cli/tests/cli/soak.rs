//! A capture at full rate, for as long as you like, while everything around it changes: files rotate, filters are exchanged,
//! statistics are switched on and off, metrics are scraped. The account must close, the files must be whole, and the process must
//! not grow from the first half of the time to the second.
//!
//! It takes some seconds, or the time in `WEIR_SOAK`: 90s, 5m, 1h (`make soak`).
#![expect(clippy::print_stdout, reason = "the figures, for whoever has waited an hour for them")]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use serde_json::Value;
use weir_lab::{Generator, Network, Traffic, Veth, root_test};

use crate::control::{EVEN, ctl_succeeds};
use crate::harness::{Account, arrive, directory, path, run, start};

const SOURCES: [&str; 3] = ["tc", "xdp", "af_packet"];
/// What all sources have together.
const TIME: Duration = Duration::from_secs(3);
/// A process may have grown by this, whatever the time: buffers come to their size late.
const GROWTH: u64 = 16 << 20;
/// Descriptors that are open while a filter is exchanged.
const OPEN: u64 = 2;
/// From one scrape to the next.
const SCRAPE: Duration = Duration::from_millis(10);
/// Files of a ring.
const FILES: usize = 3;

#[root_test]
fn root_a_capture_stays_as_it_is() {
    let time =
        env::var("WEIR_SOAK").map_or(TIME, |asked| duration(&asked)) / SOURCES.len().try_into().expect("few");
    for source in SOURCES {
        soak(source, time);
    }
}

fn duration(text: &str) -> Duration {
    let units = [('s', 1), ('m', 60), ('h', 3600)];
    let in_unit =
        |(unit, seconds): (char, u64)| Some(text.strip_suffix(unit)?.parse::<u64>().ok()? * seconds);
    let seconds = units.into_iter().find_map(in_unit);
    Duration::from_secs(seconds.unwrap_or_else(|| panic!("WEIR_SOAK={text}: a time like 90s, 5m or 1h")))
}

/// How often each thing was done.
#[derive(Debug, Default)]
struct Done {
    packets: AtomicU64,
    filters: AtomicU64,
    switches: AtomicU64,
    scrapes: AtomicU64,
}

/// What a process had at one moment.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Memory of its own, in bytes: not the pool's.
    memory: u64,
    descriptors: u64,
}

impl Size {
    fn of(process: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
        let memory =
            status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB"));
        let memory = memory.and_then(|kibibytes| kibibytes.parse::<u64>().ok()).expect("a size") << 10;
        let descriptors =
            fs::read_dir(format!("/proc/{process}/fd")).expect("the process runs").count() as u64;
        Self { memory, descriptors }
    }

    /// The least of each: what is open for a moment only does not count.
    fn least(sizes: &[Self]) -> Self {
        let least = |of: fn(&Self) -> u64| sizes.iter().map(of).min().expect("some");
        Self { memory: least(|size| size.memory), descriptors: least(|size| size.descriptors) }
    }
}

fn soak(source: &str, time: Duration) {
    let network = Network::new(Veth::default().queues(2)).expect("a private network");
    let directory = directory();
    let (file, socket) = (path(&directory, "ring"), path(&directory, "metrics"));
    let rotated = ["-w", &file, "--rotate-size", "8MiB", "-W", &FILES.to_string()];
    let asked = ["--stat", "lab: udp port 9", "--metrics", &socket, "--json", "-v"];
    let begin = ["capture", "-i", "rx0", "--source", source, "-B", "8MiB"];
    let running = start(&network, &[&begin[..], &rotated, &asked].concat());
    running.wait_for("confined: no capabilities, no new privileges; user ");
    let process = running.id().to_string();

    let (done, over, start) = (Done::default(), AtomicBool::new(false), Instant::now());
    let sizes = thread::scope(|scope| {
        scope.spawn(|| send_on(&network, &done.packets, &over));
        scope.spawn(|| {
            repeat(&over, &done.filters, |turn| {
                let filter = if turn % 2 == 0 { EVEN } else { "--none" };
                ctl_succeeds(&network, &["filter", "-t", &process, filter]);
            });
        });
        scope.spawn(|| {
            repeat(&over, &done.switches, |turn| {
                let how = if turn % 2 == 0 { "off" } else { "on" };
                ctl_succeeds(&network, &["stat", "-t", &process, how]);
            });
        });
        scope.spawn(|| {
            repeat(&over, &done.scrapes, |_| {
                scrape(&socket);
                thread::sleep(SCRAPE);
            });
        });
        let mut sizes = Vec::new();
        // A slow machine takes longer, for a sample in each half.
        while start.elapsed() < time || sizes.len() < 2 {
            thread::sleep(time / 100);
            sizes.push(Size::of(running.id()));
        }
        over.store(true, Ordering::Relaxed);
        sizes
    });

    let account = running.interrupt().succeeded().account();
    account.closes();
    let sent = done.packets.load(Ordering::Relaxed);
    assert_eq!(account.number("seen"), sent, "{source}: {}", account.0);
    are_whole(&network, &file, &account);
    let (first, second) = sizes.split_at(sizes.len() / 2);
    let (first, second) = (Size::least(first), Size::least(second));
    println!(
        "{source}: {done:?} in {:.0?}; {first:?}, then {second:?}; {}",
        start.elapsed(),
        account.0["lost"]
    );
    assert!(second.memory <= first.memory + GROWTH, "{source}: {first:?}, then {second:?}");
    assert!(second.descriptors <= first.descriptors + OPEN, "{source}: {first:?}, then {second:?}");
    for count in [&done.filters, &done.switches, &done.scrapes] {
        assert!(count.load(Ordering::Relaxed) > 0, "{source}: {done:?}");
    }
}

/// Does something until all is over, and counts how often.
fn repeat(over: &AtomicBool, count: &AtomicU64, mut what: impl FnMut(u64)) {
    while !over.load(Ordering::Relaxed) {
        what(count.fetch_add(1, Ordering::Relaxed));
    }
}

/// Sends at full rate to both queues in turn; all has arrived when it ends.
fn send_on(network: &Network, packets: &AtomicU64, over: &AtomicBool) {
    let pair = network.pair();
    let traffic = Traffic::new(256).and_then(|traffic| traffic.flows(64)).expect("a size").between(pair);
    let mut generator = Generator::new(pair, &traffic).expect("generator");
    arrive(pair, || {
        while !over.load(Ordering::Relaxed) {
            let report = generator.send_for(Duration::from_millis(50)).expect("frames");
            packets.fetch_add(report.accepted, Ordering::Relaxed);
        }
        packets.load(Ordering::Relaxed)
    });
}

fn scrape(socket: &str) {
    let mut stream = UnixStream::connect(socket).expect("weir listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it takes the request");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("it answers and closes");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("\nweir_"), "{page}");
}

/// The ring has its last files, each of which can be read to its end, and no more than was written.
fn are_whole(network: &Network, file: &str, account: &Account) {
    let all =
        (0..FILES).map(|number| format!("{file}{number}")).filter(|file| fs::exists(file).expect("a folder"));
    let all: Vec<String> = all.collect();
    let words: Vec<&str> = ["info", "--json"].into_iter().chain(all.iter().map(String::as_str)).collect();
    let told = run(network, &words).succeeded();
    let text = String::from_utf8_lossy(&told.stdout);
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut packets = 0;
    for line in lines.filter(|line| line["file"].is_string()) {
        assert!(line["unfinished"] == false && line["damage"].is_null(), "{line}");
        packets += line["packets"].as_u64().expect("a number");
    }
    assert!(packets > 0 && packets <= account.number("written"), "{packets}: {}", account.0);
}
