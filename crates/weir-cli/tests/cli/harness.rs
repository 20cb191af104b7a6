//! Running the real binary in a private network.

use std::io::Read;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use weir_lab::{Generator, Network, SendReport, Traffic, Veth};
use weir_sys::user::User;

/// Somebody: the number of `nobody` on Debian.
pub(crate) const NOBODY: u32 = 65_534;

/// Longest that a command may take to begin or to end; far more than it does.
const PATIENCE: Duration = Duration::from_secs(30);

/// The binary under test.
pub(crate) fn weir(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args);
    command
}

/// A silent pair with one queue: what is not sent is not there.
pub(crate) fn network() -> Network {
    Network::new(Veth::default()).expect("a private network")
}

/// `frames` numbered frames of 60 bytes, sent to the pair's `rx0`.
pub(crate) fn send(network: &Network, frames: u64) -> SendReport {
    let traffic = Traffic::new(60).expect("size").between(network.pair());
    let report = Generator::new(network.pair(), &traffic).expect("generator").send(frames).expect("frames");
    assert_eq!(report.accepted, frames, "the receiving end has refused some");
    report
}

/// Who a capture is that root has started.
pub(crate) fn own_user() -> User {
    let found = ["weir", "nobody"].into_iter().find_map(|name| User::find(name).expect("a user database"));
    found.expect("nobody is everywhere")
}

/// What the capture says once it has given up everything, if it was root who started it.
pub(crate) fn confined() -> String {
    format!("confined: no capability, no new privileges; user {}; writes no file", own_user().name)
}

/// A folder for the files of a test.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// A path in `directory`, as an argument.
pub(crate) fn path(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).display().to_string()
}

/// `weir capture -i rx0` with `args`, capturing.
pub(crate) fn capture(network: &Network, args: &[&str]) -> Running {
    start(network, &[&["capture", "-i", "rx0"], args].concat())
}

/// A program that runs, with what it prints.
pub(crate) struct Running {
    child: Child,
    /// None where the test reads it.
    stdout: Option<Captured>,
    stderr: Captured,
}

/// A program that has ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// Starts weir in the receiving namespace and waits until it captures, which it says on standard error.
pub(crate) fn start(network: &Network, args: &[&str]) -> Running {
    let running = Running::spawn(network, &mut weir(args));
    running.wait_until_open();
    running
}

/// The same, with its standard output for the test to read, or not to.
pub(crate) fn start_piped(network: &Network, args: &[&str]) -> (Running, ChildStdout) {
    let mut running = Running::spawn_child(network, &mut weir(args));
    let stdout = running.child.stdout.take().expect("a pipe");
    running.wait_until_open();
    (running, stdout)
}

/// Runs weir in the receiving namespace until it ends by itself.
pub(crate) fn run(network: &Network, args: &[&str]) -> Ended {
    Running::spawn(network, &mut weir(args)).wait()
}

impl Running {
    pub(crate) fn spawn(network: &Network, command: &mut Command) -> Self {
        let mut running = Self::spawn_child(network, command);
        running.stdout = running.child.stdout.take().map(Captured::new);
        running
    }

    fn spawn_child(network: &Network, command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = network.rx().spawn(command).expect("the program starts");
        let stderr = Captured::new(child.stderr.take().expect("a pipe"));
        Self { child, stdout: None, stderr }
    }

    /// Waits until weir says that it captures.
    pub(crate) fn wait_until_open(&self) {
        self.wait_for("; source ");
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the program can be waited for").is_none()
    }

    /// Waits until standard error has `text`.
    pub(crate) fn wait_for(&self, text: &str) {
        let start = Instant::now();
        while !self.stderr.text().contains(text) {
            assert!(start.elapsed() < PATIENCE, "waited for `{text}`, found: {}", self.stderr.text());
            thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the program runs");
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn interrupt(self) -> Ended {
        self.signal(Signal::INT);
        self.wait()
    }

    pub(crate) fn wait(mut self) -> Ended {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the program can be waited for") {
                break status;
            }
            if start.elapsed() > PATIENCE {
                let _ended = self.child.kill();
                panic!("it does not end: {}", self.stderr.text());
            }
            thread::sleep(Duration::from_millis(2));
        };
        let stderr = String::from_utf8_lossy(&self.stderr.finish()).into_owned();
        Ended { status, stdout: self.stdout.map(Captured::finish).unwrap_or_default(), stderr }
    }
}

impl Ended {
    /// It succeeded; else the test fails with what it printed.
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.status.code(), Some(0), "{}", self.stderr);
        self
    }

    /// It failed with exit status 1 and a message that has all `parts`.
    pub(crate) fn failed(self, parts: &[&str]) -> Self {
        assert_eq!(self.status.code(), Some(1), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "should say `{part}`: {}", self.stderr);
        }
        self
    }

    /// The account that `--json` has printed.
    pub(crate) fn account(&self) -> Account {
        let text = String::from_utf8_lossy(&self.stdout);
        let last = text.lines().last().unwrap_or_else(|| panic!("no JSON; {}", self.stderr));
        Account(serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {last}")))
    }

    /// Has the line of tcpdump's that scripts parse.
    pub(crate) fn says(&self, line: &str) {
        assert!(self.stderr.lines().any(|found| found == line), "no line `{line}`: {}", self.stderr);
    }
}

/// What `--json` prints.
pub(crate) struct Account(pub(crate) Value);

impl Account {
    pub(crate) fn number(&self, field: &str) -> u64 {
        number(&self.0, field)
    }

    /// The sums that every account promises, in total, per interface and per queue.
    pub(crate) fn closes(&self) {
        let parts = ["interfaces", "queues"].map(|field| self.0[field].as_array().expect("an array"));
        for part in parts {
            for field in ["seen", "captured", "lost", "errors", "delivered", "discarded", "written", "bytes"]
            {
                let sum: u64 = part.iter().map(|part| number(part, field)).sum();
                assert_eq!(sum, self.number(field), "{field}: {}", self.0);
            }
        }
        for one in std::iter::once(&self.0).chain(parts.into_iter().flatten()) {
            let of = |field| number(one, field);
            let ends = of("filtered") + of("sampled_out") + of("captured") + of("lost") + of("errors");
            assert_eq!(of("seen"), ends, "{one}");
            assert_eq!(of("captured"), of("delivered") + of("queued") + of("discarded"), "{one}");
        }
        for queue in parts[1] {
            let pool = &queue["pool"];
            let sum: u64 = ["free", "open", "ready", "held"].iter().map(|field| number(pool, field)).sum();
            assert_eq!(sum, number(pool, "total"), "{queue}");
        }
    }
}

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("no number `{field}`: {value}"))
}

/// What a program prints, taken while it runs so that it never waits for us.
struct Captured {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Captured {
    fn new(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&bytes);
        let thread = thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                shared.lock().expect("no panic").extend_from_slice(&buffer[..length]);
            }
        });
        Self { bytes, thread }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("no panic")).into_owned()
    }

    fn finish(self) -> Vec<u8> {
        self.thread.join().expect("no panic");
        std::mem::take(&mut *self.bytes.lock().expect("no panic"))
    }
}

/// What tshark reads of a file: the fields of each packet, a line each.
pub(crate) fn tshark(file: &std::path::Path, fields: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-n", "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark is installed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark: {errors}");
    assert!(!errors.contains("cut short") && !errors.contains("damaged"), "tshark: {errors}");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}
