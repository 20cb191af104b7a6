//! `weir flows --to kafka://...` with a broker of Kafka itself, which `make test-kafka` fetches, and kcat, which reads what it has. It is not
//! among the tests that everybody runs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Flows of the file, a packet each.
const FLOWS: usize = 20_000;
/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(120);

/// A broker that is its own controller.
struct Broker {
    place: TempDir,
    port: u16,
    running: Option<Child>,
}

impl Broker {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        // Below those that the kernel gives to clients: one of them could have it while the broker is away.
        let first = 20_000 + u16::try_from(std::process::id() % 5000).expect("small") * 2;
        let mut free = (first..32_000).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
        let [port, controller] = [(); 2].map(|()| free.next().expect("a free port"));
        drop(free);
        let settings = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             controller.listener.names=CONTROLLER\nlog.dirs={}\nnum.partitions=4\n",
            place.path().join("data").display()
        );
        fs::write(place.path().join("settings"), settings).expect("room");
        let mut broker = Self { place, port, running: None };
        let mut format = broker.java("kafka.tools.StorageTool");
        format.args(["format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c"]).arg(broker.settings());
        assert!(format.status().expect("java").success());
        broker.start();
        broker
    }

    fn settings(&self) -> PathBuf {
        self.place.path().join("settings")
    }

    fn java(&self, class: &str) -> Command {
        let jars = std::env::var("KAFKA").expect("KAFKA: run `make test-kafka`");
        let mut java = Command::new("java");
        java.args(["-Xmx512m", "-cp", &format!("{jars}/*"), class])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        java
    }

    fn start(&mut self) {
        let log = self.place.path().join("log");
        let mut kafka = self.java("kafka.Kafka");
        kafka.arg(self.settings()).stdout(File::create(&log).expect("room"));
        self.running = Some(kafka.spawn().expect("java"));
        let began = Instant::now();
        while !self.kcat(&["-L", "-m", "1"]).output().expect("kcat").status.success() {
            let said = || fs::read_to_string(&log).unwrap_or_default();
            assert!(began.elapsed() < LONG, "it does not listen: {}", said());
            sleep(Duration::from_millis(100));
        }
    }

    fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.kill().and_then(|()| running.wait()).expect("it runs");
        }
    }

    fn kcat(&self, args: &[&str]) -> Command {
        let mut kcat = Command::new("kcat");
        kcat.args(["-b", &format!("127.0.0.1:{}", self.port)]).args(args);
        kcat
    }

    /// Returns how often each flow is in a topic.
    fn flows(&self, topic: &str) -> BTreeMap<String, u32> {
        let output = self.kcat(&["-t", topic, "-C", "-e", "-q", "-K", " "]).output().expect("kcat");
        let text = String::from_utf8(output.stdout).expect("text");
        let mut found = BTreeMap::new();
        for line in text.lines() {
            let (key, value) = line.split_once(' ').expect("a key");
            let flow: Value = serde_json::from_str(value).expect("JSON");
            assert_eq!(flow["community_id"], key);
            *found.entry(key.to_owned()).or_insert(0) += 1;
        }
        found
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A running weir that is given a file, a piece at a time.
struct Weir {
    child: Child,
    pieces: std::vec::IntoIter<Vec<u8>>,
    pipe: Option<std::process::ChildStdin>,
}

/// Pieces of the file.
const PIECES: usize = 40;

impl Weir {
    fn start(file: &[u8], to: &str, output: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["flows", "-r", "-", "--json", "--idle-timeout", "10ms", "--to", to]);
        command.stdin(Stdio::piped()).stdout(File::create(output).expect("room"));
        let mut child = command.spawn().expect("it starts");
        let pieces: Vec<_> = file.chunks(file.len().div_ceil(PIECES)).map(<[u8]>::to_vec).collect();
        Self { pipe: child.stdin.take(), child, pieces: pieces.into_iter() }
    }

    /// Gives it some pieces.
    fn give(&mut self, pieces: usize) {
        for piece in self.pieces.by_ref().take(pieces) {
            self.pipe.as_mut().expect("not the end").write_all(&piece).expect("it reads");
            sleep(Duration::from_millis(50));
        }
    }

    /// Gives it the rest. Returns its account of the topic.
    fn end(mut self, output: &Path) -> Value {
        self.give(PIECES);
        drop(self.pipe.take());
        assert!(self.child.wait().expect("it runs").success());
        let text = fs::read_to_string(output).expect("it has written");
        let last: Value = serde_json::from_str(text.lines().last().expect("the account")).expect("JSON");
        last["flows"]["exports"][0].clone()
    }
}

/// Kills the weir-export with this spool, once it runs.
fn kill_export(spool: &Path) {
    let word = format!("--spool={}", spool.display());
    let has_it = |number: &i32| {
        let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|found| found == word.as_bytes())
    };
    let began = Instant::now();
    loop {
        let entries = fs::read_dir("/proc").expect("processes").flatten();
        let mut numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        if let Some(found) = numbers.find(has_it).and_then(Pid::from_raw) {
            return kill_process(found, Signal::KILL).expect("it runs");
        }
        assert!(began.elapsed() < LONG, "it does not run");
        sleep(Duration::from_millis(10));
    }
}

fn number(account: &Value, key: &str) -> u64 {
    account[key].as_u64().unwrap_or_else(|| panic!("{key}: {account}"))
}

#[test]
fn no_flow_is_missing_whoever_is_killed_and_only_weir_export_doubles_some() {
    let mut broker = Broker::new();
    let place = tempfile::tempdir().expect("a directory");
    let (file, output) = (place.path().join("flows.pcapng"), place.path().join("output"));
    let mut generator = Command::new(env!("CARGO_BIN_EXE_weir"));
    let flows = FLOWS.to_string();
    generator.args(["gen", "--flows", &flows, "--count", &flows, "--rate", "10kpps", "-w"]).arg(&file);
    assert!(generator.output().expect("it starts").status.success());
    let file = fs::read(file).expect("it is written");
    // Where the user of weir-export can be.
    let spools =
        tempfile::Builder::new().permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755)).tempdir();
    let spools = spools.expect("a directory");
    let to = |topic: &str| {
        let spool = spools.path().join(topic);
        format!("kafka://127.0.0.1:{}/{topic}?spool={}", broker.port, spool.display())
    };
    let to = ["brokers", "export", "probe"].map(to);

    // The broker is killed again and again.
    let mut weir = Weir::start(&file, &to[0], &output);
    for pause in [300, 3000, 0] {
        weir.give(8);
        broker.kill();
        weir.give(4);
        sleep(Duration::from_millis(pause));
        broker.start();
    }
    let account = weir.end(&output);
    assert_eq!((number(&account, "sent"), number(&account, "lost")), (FLOWS as u64, 0), "{account}");
    let found = broker.flows("brokers");
    assert_eq!((found.len(), found.values().max()), (FLOWS, Some(&1)), "{account}");

    // weir-export is killed again and again.
    let mut weir = Weir::start(&file, &to[1], &output);
    for _ in 0..3 {
        weir.give(10);
        kill_export(&spools.path().join("export"));
    }
    let account = weir.end(&output);
    assert_eq!((number(&account, "sent"), number(&account, "lost")), (FLOWS as u64, 0), "{account}");
    assert!(number(&account["kafka"], "restarts") >= 1, "{account}");
    let found = broker.flows("export");
    let twice: u64 = found.values().map(|times| u64::from(times - 1)).sum();
    assert_eq!(found.len(), FLOWS);
    assert!(twice <= number(&account["kafka"], "repeated"), "{twice}: {account}");

    // weir is killed while the broker is away: what it has handed over is in the spool, and the next run sends it.
    let mut weir = Weir::start(&file, &to[2], &output);
    weir.give(10);
    broker.kill();
    weir.give(10);
    sleep(Duration::from_secs(3));
    weir.give(10);
    weir.child.kill().and_then(|()| weir.child.wait()).expect("it runs");
    broker.start();
    let account = Weir::start(&file, &to[2], &output).end(&output);
    let earlier = number(&account["kafka"], "earlier_sent");
    assert!(earlier > 0 && number(&account["kafka"], "earlier_spooled") == 0, "{account}");
    let found = broker.flows("probe");
    let twice = found.values().filter(|times| **times >= 2).count() as u64;
    // The second run sends all flows once more.
    assert_eq!(found.len(), FLOWS, "{account}");
    // A flow can be on its way when a run ends, and when a broker dies.
    assert!(found.values().all(|times| *times <= 3), "{account}");
    assert!(twice >= earlier, "{twice}: {account}");
}
