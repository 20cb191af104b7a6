//! Scrapes of a running weir, read by a parser that knows nothing of what wrote them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

use weir_lab::{Network, Veth, root_test};

use crate::harness::{
    Mounts, Running, loopback_up, network, root_tests, run, send, start, tshark, until, weir,
};

const ADDRESS: &str = "127.0.0.1:9464";

/// The names that users rely on.
const PROMISED: &str = include_str!("../contract/metrics.txt");
const ALERTS: &str = include_str!("../../../../packaging/prometheus.rules.yaml");

/// A private network whose receiving end has a loopback that is up.
fn with_loopback() -> Network {
    let network = network();
    loopback_up(&network);
    network
}

fn connect(network: &Network) -> TcpStream {
    let address: SocketAddr = ADDRESS.parse().expect("an address");
    network.rx().run(|| TcpStream::connect(address)).expect("weir listens")
}

/// Sends `request` and gives head and body of what comes back.
fn ask(mut stream: impl Read + Write, request: &str) -> (String, String) {
    stream.write_all(request.as_bytes()).expect("it takes the request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers and closes");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {answer}"));
    (head.to_owned(), body.to_owned())
}

fn scrape(network: &Network) -> Page {
    let (head, body) = ask(connect(network), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
    Page::parse(&body)
}

/// Scrapes until `name` is so many; what is told is a little old.
fn scrape_until(network: &Network, name: &str, wanted: u64) -> Page {
    until(&format!("{name} {wanted}"), || {
        let page = scrape(network);
        let is_so = page.types.contains_key(name) && page.sum(name, &[]) == wanted;
        if is_so { Ok(page) } else { Err(format!("{page:?}")) }
    })
}

/// The text format 0.0.4, strictly: `HELP` and `TYPE` once for a name and before its samples, which stand together; no
/// sample twice; names and labels of the permitted letters; counters end in `_total`.
#[derive(Debug, Default)]
struct Page {
    types: BTreeMap<String, String>,
    samples: BTreeMap<(String, BTreeMap<String, String>), f64>,
}

impl Page {
    fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut helped = BTreeSet::new();
        let mut current = String::new();
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a name and a help");
                assert!(helped.insert(name.to_owned()) && !help.is_empty(), "{line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a type");
                assert!(["counter", "gauge"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                assert!(helped.contains(name), "{line}");
                assert!(page.types.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
                name.clone_into(&mut current);
            } else {
                let (name, labels, value) = sample(line);
                assert_eq!(name, current, "{line}");
                assert!(page.samples.insert((name, labels), value).is_none(), "twice: {line}");
            }
        }
        let wrong = page.differences();
        assert!(
            wrong.is_empty(),
            "other metrics than those in crates/weir-cli/tests/contract/metrics.txt, on which dashboards rely: {}. A metric \
             may be added: put it there and into CHANGELOG.md. If one has to change or go, CHANGELOG.md says so below \
             `Changed`",
            wrong.join("; ")
        );
        page
    }

    /// What is not as it was promised.
    fn differences(&self) -> Vec<String> {
        let has = |name: &str| self.types.contains_key(name);
        let whose = match has("weir_seen_packets_total") {
            true => "capture",
            false if has("weir_guard_packets_total") => "guard",
            false => "stat",
        };
        let mut promised = BTreeMap::new();
        for line in PROMISED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let [of, name, kind, labels @ ..] = &words[..] else { panic!("{line}") };
            if [whose, "all"].contains(of) {
                promised.insert(name.trim_end_matches('?'), (name.ends_with('?'), *kind, labels.to_vec()));
            }
        }
        let mut wrong = Vec::new();
        for (name, (may_be_missing, kind, _)) in &promised {
            match self.types.get(*name) {
                None if !may_be_missing => wrong.push(format!("{name} is missing")),
                Some(found) if found != kind => wrong.push(format!("{name} is a {found}")),
                _ => {}
            }
        }
        let new = self.types.keys().filter(|name| !promised.contains_key(name.as_str()));
        wrong.extend(new.map(|name| format!("{name} is new")));
        for (name, found) in self.samples.keys() {
            let Some((.., labels)) = promised.get(name.as_str()) else { continue };
            let missing = labels.iter().filter(|label| !label.ends_with('?') && !found.contains_key(**label));
            wrong.extend(missing.map(|label| format!("{name} lacks {label}")));
            let is_known =
                |label: &&String| labels.iter().any(|one| one.trim_end_matches('?') == label.as_str());
            wrong.extend(
                found.keys().filter(|label| !is_known(label)).map(|label| format!("{name} has {label}")),
            );
        }
        wrong
    }

    /// The sum over all samples of `name` with these labels.
    fn sum(&self, name: &str, wanted: &[(&str, &str)]) -> u64 {
        assert!(self.types.contains_key(name), "no {name}: {:?}", self.types);
        let fits = |labels: &BTreeMap<String, String>| {
            wanted.iter().all(|(name, value)| labels.get(*name).is_some_and(|found| found == value))
        };
        let found = self.samples.iter().filter(|((found, labels), _)| found == name && fits(labels));
        let sum = found.fold(0.0, |sum, (_, value)| sum + value);
        assert!(sum >= 0.0 && sum.fract() == 0.0, "{name} {sum}");
        format!("{sum}").parse().expect("a number without fraction")
    }
}

/// `name{label="value",...} value`
fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let word = |text: &str| {
        !text.is_empty()
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    assert!(word(name), "{line}");
    let labels = labels.strip_suffix('}').unwrap_or_else(|| panic!("no end: {line}"));
    let label = |label: &str| {
        let (name, value) = label.split_once('=').expect("a label and its value");
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).expect("in quotes");
        assert!(word(name) && !value.contains(['"', '\\']), "{line}");
        (name.to_owned(), value.to_owned())
    };
    let labels = labels.split(',').filter(|label| !label.is_empty()).map(label).collect();
    (name.to_owned(), labels, value.parse().unwrap_or_else(|error| panic!("{error}: {line}")))
}

/// How each change of a page would be told.
#[test]
fn metrics_that_are_new_or_missing_or_of_another_type_are_noticed() {
    let mut text = String::new();
    let lines = PROMISED.lines().filter(|line| line.starts_with("all ") || line.starts_with("stat "));
    for line in lines {
        let words: Vec<&str> = line.split(' ').map(|word| word.trim_end_matches('?')).collect();
        let labels: Vec<String> = words[3..].iter().map(|label| format!("{label}=\"x\"")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let (name, kind) = (words[1], words[2]);
        text += &format!("# HELP {name} .\n# TYPE {name} {kind}\n{name}{labels} 1\n");
    }
    // What is not promised ends the test that scrapes it.
    let page = Page::parse(&text);
    let wrong = |change: &dyn Fn(&mut Page)| {
        let mut page = Page { types: page.types.clone(), samples: page.samples.clone() };
        change(&mut page);
        page.differences()
    };
    let gone = wrong(&|page| drop(page.types.remove("weir_filter_packets_total")));
    assert_eq!(gone, ["weir_filter_packets_total is missing"]);
    assert_eq!(wrong(&|page| drop(page.types.remove("weir_size_packets_total"))), [""; 0]);
    let new = wrong(&|page| drop(page.types.insert("weir_x".to_owned(), "gauge".to_owned())));
    assert_eq!(new, ["weir_x is new"]);
    let other = wrong(&|page| drop(page.types.insert("weir_build_info".to_owned(), "counter".to_owned())));
    assert_eq!(other, ["weir_build_info is a counter"]);
    let labelled = |labels: &[&str]| {
        let labels = labels.iter().map(|label| ((*label).to_owned(), "x".to_owned())).collect();
        wrong(&move |page: &mut Page| {
            let labels: &BTreeMap<String, String> = &labels;
            page.samples.insert(("weir_build_info".to_owned(), labels.clone()), 1.0);
        })
    };
    assert_eq!(labelled(&[]), ["weir_build_info lacks version"]);
    assert_eq!(labelled(&["version", "commit"]), ["weir_build_info has commit"]);
}

root_tests! { a_scrape_tells_the_account:
    root_a_scrape_tells_the_account_xdp("xdp");
    root_a_scrape_tells_the_account_tc("tc");
    root_a_scrape_tells_the_account_af_packet("af_packet");
}

fn a_scrape_tells_the_account(source: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("scraped.pcapng").display().to_string();
    let network = with_loopback();
    let args =
        ["capture", "-i", "rx0", "-Q", "in", "--source", source, "-w", &file, "--json", "--metrics", ADDRESS];
    let running = start(&network, &args);
    running.wait_for(&format!("metrics: http://{ADDRESS}/metrics"));
    assert_eq!(scrape(&network).sum("weir_seen_packets_total", &[]), 0);
    send(&network, 700);
    let page = scrape_until(&network, "weir_written_packets_total", 700);
    let account = running.interrupt().succeeded().account();
    let of_rx0 = &[("interface", "rx0")][..];
    for (name, field) in [
        ("weir_seen_packets_total", "seen"),
        ("weir_filtered_packets_total", "filtered"),
        ("weir_sampled_out_packets_total", "sampled_out"),
        ("weir_captured_packets_total", "captured"),
        ("weir_captured_bytes_total", "bytes"),
        ("weir_error_packets_total", "errors"),
        ("weir_delivered_packets_total", "delivered"),
        ("weir_discarded_packets_total", "discarded"),
        ("weir_written_packets_total", "written"),
        ("weir_queued_packets", "queued"),
    ] {
        assert_eq!(page.sum(name, of_rx0), account.number(field), "{source} {name}");
    }
    assert_eq!(page.sum("weir_captured_packets_total", &[]), 700);
    assert_eq!(page.sum("weir_lost_packets_total", &[("stage", "pool")]), account.number("lost"));
    assert_eq!(page.sum("weir_lost_packets_total", &[("stage", "nic")]), 0);
    let queues = account.0["queues"].as_array().expect("queues");
    for (number, queue) in queues.iter().enumerate() {
        let labels = [("queue", &*number.to_string())];
        let captured = queue["captured"].as_u64().expect("a number");
        assert_eq!(page.sum("weir_captured_packets_total", &labels), captured);
        let total = queue["pool"]["total"].as_u64().expect("a number");
        assert_eq!(page.sum("weir_pool_chunks", &labels), total, "the states of all chunks");
    }
    let info = [("interface", "rx0"), ("source", source), ("mode", "pass")];
    assert_eq!(page.sum("weir_interface_info", &info), 1);
    assert_eq!(page.sum("weir_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1);
    let alerts = ALERTS.split(|c: char| !c.is_ascii_lowercase() && c != '_');
    for name in alerts.filter(|name| name.starts_with("weir_")) {
        assert!(page.types.contains_key(name), "alerts watch {name}");
    }
    for counter in ["missed", "fifo_errors"] {
        assert_eq!(page.sum("weir_nic_lost_packets_total", &[("counter", counter)]), 0, "{source}");
    }
    // All but the statistics at its end.
    let written = page.sum("weir_file_bytes_total", &[]);
    assert!((60 * 700..=account.number("file_bytes")).contains(&written), "{written}");
}

#[root_test]
fn root_a_capture_outlasts_a_full_disk() {
    let network = with_loopback();
    let mounts = Mounts::with("mount -t tmpfs -o size=1m none /mnt && head -c 600K /dev/zero > /mnt/ballast");
    let args = ["capture", "-i", "rx0", "-B", "8MiB", "-w", "/mnt/f.pcapng", "--json", "--fail-on-loss"];
    let mut command = mounts.weir(&args);
    let running = Running::spawn(&network, command.args(["--keep-going", "--metrics", ADDRESS]));
    running.wait_until_open();
    send(&network, 6000);
    running.wait_for("weir: /mnt/f.pcapng: no room; packets are dropped until there is");
    let page = scrape_until(&network, "weir_delivered_packets_total", 6000);
    let on_disk =
        |page: &Page| page.sum("weir_lost_packets_total", &[("interface", "rx0"), ("stage", "disk")]);
    let (lost, written) = (on_disk(&page), page.sum("weir_written_packets_total", &[]));
    assert!(lost > 0 && written > 0 && lost + written <= 6000, "{lost} {written}");

    std::fs::remove_file(mounts.path("/mnt/ballast")).expect("it is there");
    until("packets to be written again", || {
        send(&network, 1);
        let now = scrape(&network).sum("weir_written_packets_total", &[]);
        if now > written { Ok(()) } else { Err(format!("{now}")) }
    });
    send(&network, 500);
    let ended = running.interrupt();
    assert_eq!(ended.status.code(), Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("weir: /mnt/f.pcapng: room again after "), "{}", ended.stderr);
    let account = ended.account();
    account.closes();
    let (written, lost) = (account.number("written"), account.number("not_written"));
    assert_eq!((account.number("captured"), account.number("lost")), (written + lost, 0));
    assert_eq!(account.0["queues"][0]["not_written"], lost);
    assert_eq!(account.0["stopped_by"], "signal");
    let loss = format!("lost (NIC 0, pool 0, disk {lost})");
    assert!(ended.stderr.contains(&loss), "{}", ended.stderr);

    let file = mounts.path("/mnt/f.pcapng");
    let drops = tshark(file.as_ref(), &["frame.drop_count"]);
    assert_eq!(drops.len() as u64, written);
    let drops = drops.iter().filter_map(|drops| drops.parse::<u64>().ok()).sum::<u64>();
    assert_eq!(drops, lost, "the file tells what it lacks");
    let info = mounts.weir(&["info", "/mnt/f.pcapng"]).output().expect("it runs");
    let info = String::from_utf8_lossy(&info.stdout);
    assert!(info.contains("  no room on the disk for ") && !info.contains("missing"), "{info}");
}

#[root_test]
fn root_what_is_no_scrape_is_answered_properly() {
    let network = with_loopback();
    let running = start(&network, &["count", "-i", "rx0", "--metrics", ADDRESS]);
    let ask = |request: &str| ask(connect(&network), request);
    let scrape = ask("GET /metrics HTTP/1.0\r\n\r\n");
    let (head, body) = ask("HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && body.is_empty(), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", scrape.1.len())), "{head} {}", scrape.0);
    for (request, status) in [
        ("GET /nowhere HTTP/1.1\r\n\r\n", "404"),
        ("DELETE /metrics HTTP/1.1\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\n\r\n", "200"),
    ] {
        let (head, _) = ask(request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {head}");
    }
    assert!(ask("PUT / HTTP/1.1\r\n\r\n").0.contains("\r\nAllow: GET, HEAD\r\n"));
    let (head, _) = ask(&format!("GET /metrics HTTP/1.1\r\nCookie: {}\r\n\r\n", "x".repeat(9000)));
    assert!(head.starts_with("HTTP/1.1 431 "), "{head}");

    let open_metrics = "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n";
    let (head, body) = ask(open_metrics);
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.ends_with("\n# EOF\n") && body.contains("# TYPE weir_seen_packets counter\n"), "{body}");
    assert!(body.contains("\nweir_seen_packets_total{interface=\"rx0\",queue=\"0\"} 0\n"), "{body}");
    running.interrupt().succeeded();
}

#[root_test]
fn root_who_is_slow_or_many_keeps_nobody_waiting() {
    let network = with_loopback();
    let running = start(&network, &["count", "-i", "rx0", "--metrics", ADDRESS]);
    let silent: Vec<TcpStream> = (0..100).map(|_| connect(&network)).collect();
    // Who came before and is slow is still waited for when another has been answered.
    let mut slow = until("an answer before the patience with others is over", || {
        let mut slow = connect(&network);
        slow.write_all(b"GET /metrics HTT").expect("it takes a part");
        assert_eq!(scrape(&network).sum("weir_seen_packets_total", &[]), 0);
        slow.set_nonblocking(true).expect("a socket");
        match slow.peek(&mut [0; 8]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(slow),
            other => Err(format!("the slow one got {other:?}")),
        }
    });
    slow.set_nonblocking(false).expect("a socket");
    // All but the newest were closed, and all are in the end.
    let mut answers = silent.iter();
    assert_eq!(answers.next().expect("the first").read(&mut [0; 8]).expect("closed"), 0);
    assert_eq!(slow.read(&mut [0; 8]).expect("closed"), 0);
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", running.id())).expect("it runs").count();
    assert!(descriptors < 100, "{descriptors}");
    running.interrupt().succeeded();
}

#[root_test]
fn root_who_asks_takes_what_packets_leave_over() {
    let network = with_loopback();
    let running = start(&network, &["count", "-i", "rx0", "--metrics", ADDRESS]);
    scrape(&network);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", running.id())).expect("it runs").flatten();
    let nice = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        let (head, rest) = stat.rsplit_once(") ")?;
        // Field 19 of proc_pid_stat(5), of which the third is the first here.
        let nice: i32 = rest.split(' ').nth(19 - 3)?.parse().ok()?;
        Some((head.split_once('(')?.1.to_owned(), nice))
    };
    let threads: Vec<(String, i32)> = tasks.filter_map(nice).collect();
    let answering: Vec<_> = threads.iter().filter(|(name, _)| name == "weir-metrics").collect();
    assert!(matches!(answering[..], [(_, 19)]), "{threads:?}");
    assert!(threads.iter().any(|(name, nice)| name == "weir" && *nice < 19), "{threads:?}");
    running.interrupt().succeeded();
}

#[root_test]
fn root_a_unix_socket_is_served_and_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("metrics");
    let network = network();
    let metrics = path.display().to_string();
    let running = start(&network, &["count", "-i", "rx0", "--metrics", &metrics]);
    let stream = UnixStream::connect(&path).expect("weir listens");
    let (head, body) = ask(stream, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    Page::parse(&body);
    // It is taken.
    let ended = run(&network, &["count", "-i", "rx0", "--metrics", &metrics]);
    ended.failed(&["serve metrics at", "the address is in use"]);
    running.interrupt().succeeded();
    assert!(!path.exists());
}

#[root_test]
fn root_a_port_that_is_taken_is_told_before_anything_is_captured() {
    let network = with_loopback();
    let address: SocketAddr = ADDRESS.parse().expect("an address");
    let _taken = network.rx().run(|| std::net::TcpListener::bind(address)).expect("nobody is there");
    let mut command = weir(&["count", "-i", "rx0", "--metrics", ":9464"]);
    let ended = Running::spawn(&network, &mut command).wait();
    let ended = ended.failed(&["serve metrics at 127.0.0.1:9464", "choose another one"]);
    assert!(!ended.stderr.contains("; source "), "{}", ended.stderr);
}

#[root_test]
fn root_a_scrape_tells_how_the_order_of_time_was_kept() {
    let network = with_loopback();
    // What is held back for so long fills a pool of this size.
    let order = ["--order", "time", "--window", "50s", "--chunks", "8", "--chunk-size", "4KiB"];
    let running = start(
        &network,
        &[&["count", "-i", "rx0", "--source", "xdp", "--json", "--metrics", ADDRESS], &order[..]].concat(),
    );
    send(&network, 700);
    // Those that are told early may be in the next copy of the account alone.
    let time = |page: &Page| {
        let mut samples = page.samples.iter();
        let found =
            samples.find_map(|((name, _), time)| (name == "weir_account_timestamp_seconds").then_some(*time));
        found.expect("the time of the copy")
    };
    let first = scrape_until(&network, "weir_seen_packets_total", 700);
    let page = until("the next copy of the account", || {
        let page = scrape(&network);
        if time(&page) > time(&first) { Ok(page) } else { Err(format!("{page:?}")) }
    });
    let account = running.interrupt().succeeded().account();
    account.closes();
    let told = |field: &str| account.0["time_order"][field].as_u64().expect("a number");
    assert_eq!(page.sum("weir_early_packets_total", &[]), told("early"));
    assert_eq!(page.sum("weir_late_packets_total", &[]), told("late"));
    assert!(told("early") > 0, "{}", account.0);
}

#[root_test]
fn root_a_scrape_tells_targets_and_handlers() {
    let network = with_loopback();
    let handlers = ["--handlers", "2", "--steer", "round-robin"];
    let running = start(
        &network,
        &[&["count", "-i", "rx0", "--source", "xdp", "--json", "--metrics", ADDRESS], &handlers[..]].concat(),
    );
    send(&network, 700);
    let page = scrape_until(&network, "weir_handler_packets_total", 700);
    running.interrupt().succeeded().account().closes();
    for number in ["0", "1"] {
        assert_eq!(page.sum("weir_captured_packets_total", &[("target", number)]), 350);
        assert_eq!(page.sum("weir_handler_packets_total", &[("handler", number)]), 350);
        assert_eq!(page.sum("weir_orphan_packets_total", &[("target", number)]), 0);
        assert_eq!(page.sum("weir_offloaded_chunks_total", &[("target", number)]), 0);
    }
    assert!(page.types.contains_key("weir_handler_busy_seconds_total"));
}

#[root_test]
fn root_statistics_are_metrics_too() {
    let network = with_loopback();
    let args = ["--metrics", "9464", "--by", "dport,proto", "--sizes", "--gaps", "lab: udp port 9"];
    let running = start(&network, &[&["stat", "-i", "rx0"], &args[..]].concat());
    running.wait_for("metrics: http://127.0.0.1:9464/metrics");
    send(&network, 500);
    let page = scrape_until(&network, "weir_filter_packets_total", 500);
    let received: &[(&str, &str)] = &[("direction", "received"), ("interface", "rx0")];
    assert_eq!(page.sum("weir_counted_bytes_total", received), 500 * 60);
    assert_eq!(page.sum("weir_filter_packets_total", &[("filter", "lab")]), 500);
    assert_eq!(page.sum("weir_key_packets_total", &[("dport", "9"), ("proto", "17")]), 500);
    assert_eq!(page.sum("weir_size_packets_total", &[("from", "64"), ("to", "64")]), 500);
    let gaps = page.sum("weir_gap_packets_total", &[]) + page.sum("weir_first_packets_total", &[]);
    assert_eq!((gaps, page.sum("weir_others_packets_total", &[])), (500, 0));
    running.interrupt().succeeded();
}

#[root_test]
fn root_a_guard_has_metrics_of_each_rule() {
    let network = with_loopback();
    let directory = tempfile::tempdir().expect("a directory");
    let [rules, log] = ["a.rules", "a.pcapng"].map(|name| directory.path().join(name).display().to_string());
    let text = "all: udp -> continue\nlab: inbound and udp dst port 9 -> block\nrest: tcp -> pass\n";
    std::fs::write(&rules, text).expect("a file");
    let args = ["guard", "-i", "rx0", "--rules", &rules, "--log", &log, "--no-control", "--metrics", "9464"];
    let running = start(&network, &args);
    running.wait_for("metrics: http://127.0.0.1:9464/metrics");
    send(&network, 500);
    let page = scrape_until(&network, "weir_guard_logged_packets_total", 500);
    for (rule, packets) in [("lab", 500), ("rest", 0), ("(replaced)", 0)] {
        let labels = [("interface", "rx0"), ("rule", rule)];
        assert_eq!(page.sum("weir_guard_packets_total", &labels), packets);
        assert_eq!(page.sum("weir_guard_bytes_total", &labels), packets * 60);
    }
    for (fate, packets) in [("block", 500), ("bounce", 0), ("reflect", 0), ("limit", 0), ("exact", 0)] {
        let labels = [("interface", "rx0"), ("fate", fate)];
        assert_eq!(page.sum("weir_guard_fate_packets_total", &labels), packets);
        assert_eq!(page.sum("weir_guard_fate_bytes_total", &labels), packets * 60);
    }
    assert_eq!(
        page.sum("weir_guard_fate_packets_total", &[]),
        page.sum("weir_guard_packets_total", &[]),
        "these are all packets, too"
    );
    assert_eq!(page.sum("weir_guard_continued_packets_total", &[("rule", "all")]), 500);
    assert_eq!(page.sum("weir_guard_rule_info", &[("rule", "lab"), ("fate", "block")]), 1);
    assert_eq!(page.sum("weir_guard_log_lost_packets_total", &[]), 0);
    running.interrupt().succeeded();
}

#[root_test]
fn root_statistics_of_several_interfaces_have_labels() {
    let mut network = with_loopback();
    network.connect(Veth::default()).expect("a second pair");
    for apart in [false, true] {
        let args =
            ["stat", "-i", "rx0,rx1", "--metrics", "9464", "--by", "dport", "--gaps", "lab: udp port 9"];
        let running = start(&network, &[&args[..], if apart { &["--per-interface"] } else { &[] }].concat());
        running.wait_for("metrics: http://127.0.0.1:9464/metrics");
        send(&network, 500);
        let page = scrape_until(&network, "weir_filter_packets_total", 500);
        for (interface, packets) in [("rx0", 500), ("rx1", 0)] {
            let labels = [("filter", "lab"), ("interface", interface), ("direction", "received")];
            assert_eq!(page.sum("weir_filter_packets_total", &labels), packets);
            assert_eq!(page.sum("weir_counted_packets_total", &labels[1..]), packets);
            let keyed = if apart { packets } else { 0 };
            assert_eq!(page.sum("weir_key_packets_total", &labels[1..]), keyed);
        }
        assert_eq!(page.sum("weir_key_packets_total", &[("dport", "9")]), 500);
        let gaps = page.sum("weir_gap_packets_total", &[]) + page.sum("weir_first_packets_total", &[]);
        assert_eq!(gaps, 500);
        running.interrupt().succeeded();
    }
}
