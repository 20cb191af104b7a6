//! Running the real binary in a private network.

use std::cell::RefCell;
use std::fmt;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, panic};

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{MembarrierCommand, membarrier};
use serde_json::Value;
use tempfile::TempDir;
use weir_lab::{FrameSender, Generator, LinkCounters, Network, Pair, Traffic, Veth};
use weir_sys::link::Links;
use weir_sys::user::{PASSING, User};

use crate::contract;

/// Somebody: the number of `nobody` on Debian.
pub(crate) const NOBODY: u32 = 65_534;

/// Longest that anything may take; far more than it does.
const PATIENCE: Duration = Duration::from_secs(30);

/// A test that needs root for each case: its name, and what it gives to the function in which all of them are.
macro_rules! root_tests {
    ($test:ident: $($name:ident($($case:expr),+);)+) => {$(
        #[test]
        fn $name() {
            if weir_lab::require_root(stringify!($name)) {
                $test($($case),+);
            }
        }
    )+};
}
pub(crate) use root_tests;

/// Waits for `what` until `look` finds it; else that says what there is instead.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(start.elapsed() < PATIENCE, "waited for {what}; there is: {seen}"),
        }
        thread::sleep(Duration::from_millis(2));
    }
}

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

/// Sends `frames` numbered frames of 60 bytes to the pair's `rx0`, where they have arrived when this returns.
pub(crate) fn send(network: &Network, frames: u64) {
    let traffic = Traffic::new(60).expect("size").between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).expect("generator");
    generate(&mut generator, network.pair(), frames);
}

/// The same from a generator, whose numbers go on.
pub(crate) fn generate(generator: &mut Generator, pair: &Pair, frames: u64) {
    arrive(pair, || {
        let report = generator.send(frames).expect("frames");
        assert_eq!(report.accepted, frames, "the receiving end has refused some");
        frames
    });
}

/// Sends `frames` to a capture that may have enough before all are there.
pub(crate) fn send_off(network: &Network, frames: u64) {
    let traffic = Traffic::new(60).expect("size").between(network.pair());
    Generator::new(network.pair(), &traffic).expect("generator").send(frames).expect("frames");
}

/// Sends these frames one by one, as [`send`].
pub(crate) fn send_each(pair: &Pair, frames: &[Vec<u8>]) {
    let sender = FrameSender::new(&pair.tx).expect("a sender");
    arrive(pair, || {
        frames.iter().for_each(|frame| sender.send(frame).expect("a frame"));
        frames.len() as u64
    });
}

/// Waits until as many frames as `sent` tells have arrived: whoever takes packets at the pair's receiving end has met them.
pub(crate) fn arrive(pair: &Pair, sent: impl FnOnce() -> u64) {
    // The end that sends counts what the other has taken out of the ring between them.
    let taken = || LinkCounters::read(&pair.tx).expect("counters").tx_packets;
    let before = taken();
    let wanted = before + sent();
    until(&format!("{wanted} frames at {}", pair.rx.name), || {
        let taken = taken();
        if taken >= wanted { Ok(()) } else { Err(format!("{taken}")) }
    });
    softirqs_end();
}

/// Waits until what the kernel is doing with packets at this moment is done.
pub(crate) fn softirqs_end() {
    // For all processes it is a grace period of RCU, and each softirq is a reader.
    membarrier(MembarrierCommand::Global).expect("the kernel has it");
}

/// Who a capture is that root has started, of which this is the process: `weir`, or who nobody else is.
pub(crate) fn own_user(process: u32) -> User {
    if let Some(user) = User::find("weir").expect("a user database") {
        return user;
    }
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let uid =
        status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse().ok());
    let uid = uid.expect("a user");
    assert!(PASSING.contains(&uid), "{uid}");
    User { name: uid.to_string(), uid, gid: uid, groups: vec![uid] }
}

/// What the capture says once it has given up everything, if it was root who started it.
pub(crate) const CONFINED: &str = "confined: no capabilities, no new privileges; user ";

/// Brings the loopback device of the receiving end up.
pub(crate) fn loopback_up(network: &Network) {
    network.rx().run(|| Links::open()?.bring_up("lo")).expect("it comes up");
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

/// The pool of a queue in tests that say nothing of it: more than what they send takes.
const POOL: &str = "8MiB";
/// What all pools of a test's program may take together, as several tests run at once.
const MEMORY: u64 = 64 << 20;

/// `args` with a small pool, if they ask for none and capture.
fn with_a_pool<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let (command, rest) = args.split_first().expect("a command");
    let pool = if takes_a_pool(args) && !names_a_pool(args) { &["-B", POOL][..] } else { &[] };
    [&[*command], pool, rest].concat()
}

fn takes_a_pool(args: &[&str]) -> bool {
    args.iter().any(|arg| ["capture", "count", "flows"].contains(arg))
        && !args.contains(&"af_xdp")
        && !args.contains(&"-D")
}

fn names_a_pool(args: &[&str]) -> bool {
    ["-B", "--chunks", "--memory"].iter().any(|named| args.contains(named))
}

/// Panics if a command line may take more memory than a test should.
fn is_modest(network: &Network, args: &[&str]) {
    if !takes_a_pool(args) {
        return;
    }
    let bytes = |name: &str| {
        let value = args[args.iter().position(|arg| *arg == name)? + 1];
        let digits = value.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = match &value[digits.len()..] {
            "" => 0,
            "KB" | "KiB" => 10,
            "MB" | "MiB" => 20,
            _ => 40,
        };
        Some(digits.parse::<u64>().expect("a number") << unit)
    };
    let chunk = bytes("--chunk-size").unwrap_or(1 << 20);
    let pool = bytes("-B")
        .or_else(|| bytes("--memory"))
        .or_else(|| Some(bytes("--chunks")? * chunk))
        .unwrap_or(64 << 20);
    let queues: u32 = network.pairs().iter().map(|pair| pair.rx.queues).sum();
    let hooks = if args.contains(&"xdp+tc") { 2 } else { 1 };
    let all = pool.saturating_mul(u64::from(queues) * hooks);
    assert!(all <= MEMORY, "pools of {} MiB for a test: give -B, or spawn_with_memory", all >> 20);
}

/// A mount namespace of its own, as long as this lives.
pub(crate) struct Mounts(Child);

impl Mounts {
    /// With what `mount` has mounted.
    pub(crate) fn with(mount: &str) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &format!("{mount} && echo ready && exec sleep 600")]);
        let mut holder = Self(command.stdout(Stdio::piped()).spawn().expect("unshare is installed"));
        let mut line = String::new();
        let pipe = holder.0.stdout.take().expect("a pipe");
        BufReader::new(pipe).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n", "{mount}");
        holder
    }

    /// weir in it.
    pub(crate) fn weir(&self, args: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_weir"));
        command.args(args);
        command
    }

    /// Another program in it.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-m", "-t", &self.0.id().to_string(), program]);
        command
    }

    /// What is called `path` in it.
    pub(crate) fn path(&self, path: &str) -> String {
        format!("/proc/{}/root{path}", self.0.id())
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        let _over = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// A program that runs, with what it prints. It is killed with the test that fails.
pub(crate) struct Running {
    child: Child,
    /// None where the test reads it.
    stdout: Option<JoinHandle<()>>,
    stderr: Option<JoinHandle<()>>,
    run: Arc<Run>,
}

/// A program that has ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// Starts weir in the receiving namespace and waits until it captures, which it says on standard error.
pub(crate) fn start(network: &Network, args: &[&str]) -> Running {
    let running = Running::spawn(network, &mut weir(&with_a_pool(args)));
    running.wait_until_open();
    running
}

/// Starts weir in the receiving namespace and waits until it says by `--ready-fd` that it takes packets, and lets go of the
/// descriptor: it may be quiet.
pub(crate) fn start_quietly(network: &Network, args: &[&str]) -> Running {
    let directory = directory();
    let fifo = path(&directory, "ready");
    mkfifoat(CWD, &fifo, Mode::RWXU).expect("a FIFO");
    let ready = thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).expect("a word")
    });
    let weir = [&[env!("CARGO_BIN_EXE_weir")], &with_a_pool(args)[..], &["--ready-fd", "3"]].concat();
    let mut command = Command::new("sh");
    command.args(["-c", r#"exec "$@" 3>"$0""#, &fifo]).args(weir);
    let mut running = Running::spawn(network, &mut command);
    until("it to be ready", || {
        assert!(running.is_running(), "it ended before");
        if ready.is_finished() { Ok(()) } else { Err(String::new()) }
    });
    assert_eq!(ready.join().expect("no panic"), "\n");
    running
}

/// The same, with its standard output for the test to read, or not to.
pub(crate) fn start_piped(network: &Network, args: &[&str]) -> (Running, ChildStdout) {
    let mut running = Running::spawn_child(network, &mut weir(&with_a_pool(args)));
    let stdout = running.child.stdout.take().expect("a pipe");
    running.wait_until_open();
    (running, stdout)
}

/// Runs weir in the receiving namespace until it ends by itself.
pub(crate) fn run(network: &Network, args: &[&str]) -> Ended {
    Running::spawn(network, &mut weir(&with_a_pool(args))).wait()
}

/// Runs a command to its end in the receiving namespace. Its output is shown if the test fails.
pub(crate) fn output(network: &Network, command: &mut Command) -> Output {
    let output = network.rx().run(|| command.output()).expect("the program starts");
    let run = Run::noted(command);
    run.stdout.add(&output.stdout);
    run.stderr.add(&output.stderr);
    run.ends(output.status);
    contract::printed(&run.words, &output.stdout, &output.stderr);
    output
}

impl Running {
    pub(crate) fn spawn(network: &Network, command: &mut Command) -> Self {
        let args: Vec<_> = command.get_args().map(|arg| arg.to_str().expect("UTF-8")).collect();
        is_modest(network, &args);
        Self::spawn_with_memory(network, command, "no more than others")
    }

    /// The same of one that asks for much memory; `_why` it has to.
    pub(crate) fn spawn_with_memory(network: &Network, command: &mut Command, _why: &str) -> Self {
        let mut running = Self::spawn_child(network, command);
        running.stdout = running.child.stdout.take().map(|pipe| running.run.stdout.take(pipe));
        running
    }

    fn spawn_child(network: &Network, command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = network.rx().spawn(command).expect("the program starts");
        let run = Run::noted(command);
        let stderr = Some(run.stderr.take(child.stderr.take().expect("a pipe")));
        Self { child, stdout: None, stderr, run }
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

    /// What it has said on standard error.
    pub(crate) fn stderr(&self) -> String {
        self.run.stderr.text()
    }

    /// Waits until standard error has `text`.
    pub(crate) fn wait_for(&self, text: &str) {
        until(&format!("`{text}`"), || {
            let said = self.run.stderr.text();
            // One that was killed still has its last words in the pipe.
            let over = self.stderr.as_ref().is_none_or(JoinHandle::is_finished);
            assert!(
                said.contains(text) || !over || self.run.stderr.text().contains(text),
                "it ended without `{text}`: {said}"
            );
            if said.contains(text) { Ok(()) } else { Err(said) }
        });
    }

    /// Waits until standard output has as many lines as this.
    pub(crate) fn wait_for_lines(&self, lines: usize) {
        let (mut found, mut looked_at) = (0, 0);
        until(&format!("{lines} lines on standard output"), || {
            let (more, end) = self.run.stdout.lines_since(&mut looked_at);
            found += more;
            if found >= lines { Ok(()) } else { Err(format!("{found} lines; the end of them: {end}")) }
        });
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the program runs");
    }

    /// What it has printed so far.
    pub(crate) fn stdout(&self) -> String {
        self.run.stdout.text()
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn interrupt(self) -> Ended {
        self.signal(Signal::INT);
        self.wait()
    }

    pub(crate) fn wait(mut self) -> Ended {
        let status = until("its end", || {
            let status = self.child.try_wait().expect("the program can be waited for");
            status.ok_or_else(|| fs::read_to_string(format!("/proc/{}/wchan", self.id())).unwrap_or_default())
        });
        self.run.ends(status);
        for pipe in [self.stdout.take(), self.stderr.take()].into_iter().flatten() {
            pipe.join().expect("no panic");
        }
        contract::printed(&self.run.words, &self.run.stdout.bytes(), &self.run.stderr.bytes());
        Ended { status, stdout: self.run.stdout.bytes(), stderr: self.run.stderr.text() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Of no effect on one that has been waited for.
        let _over = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// A program that a test has run, for those who want to know why the test has failed.
#[derive(Default)]
struct Run {
    command: String,
    words: Vec<String>,
    stdout: Captured,
    stderr: Captured,
    status: Mutex<Option<ExitStatus>>,
}

thread_local! {
    static RUNS: RefCell<Vec<Arc<Run>>> = const { RefCell::new(Vec::new()) };
}

/// So many programs are told of: the last.
const TOLD: usize = 4;

impl Run {
    /// Notes a program of this test: a panic shows it.
    #[expect(clippy::print_stderr, reason = "where panics are shown, and captured with the test's output")]
    fn noted(command: &Command) -> Arc<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                before(panic);
                let told = |runs: &RefCell<Vec<Arc<Self>>>| {
                    runs.try_borrow().iter().flat_map(|runs| runs.iter()).for_each(|run| eprintln!("{run}"));
                };
                let _nobody_left = RUNS.try_with(told);
            }));
        });
        let words = contract::words(command);
        let run = Arc::new(Self { command: format!("{command:?}"), words, ..Self::default() });
        RUNS.with_borrow_mut(|runs| {
            runs.push(Arc::clone(&run));
            if runs.len() > TOLD {
                runs.remove(0);
            }
        });
        run
    }

    fn ends(&self, status: ExitStatus) {
        *self.status.lock().expect("no panic") = Some(status);
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let status = status.map_or("it runs".to_owned(), |status| status.to_string());
        let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
        write!(f, "$ {}\n{status}; standard output:\n{stdout}standard error:\n{stderr}", self.command)
    }
}

impl Ended {
    /// It succeeded.
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

    /// Fails unless it says that it captured this many packets and lost none, in one line or in many.
    #[track_caller]
    pub(crate) fn captured_all(&self, packets: u64) {
        let captured = format!("{packets} packet{} captured", if packets == 1 { "" } else { "s" });
        let is_told = |line: &str| {
            line.strip_prefix(&captured)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with(", nothing lost"))
        };
        assert!(self.stderr.lines().any(is_told), "not `{captured}`: {}", self.stderr);
        assert!(self.stderr.contains("othing lost"), "{}", self.stderr);
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
            let ends = of("filtered")
                + of("sampled_out")
                + of("counted")
                + of("captured")
                + of("lost")
                + of("errors");
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
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    /// Takes all of a pipe, on a thread.
    fn take(&self, mut pipe: impl Read + Send + 'static) -> JoinHandle<()> {
        let captured = self.clone();
        thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                captured.add(&buffer[..length]);
            }
        })
    }

    fn add(&self, bytes: &[u8]) {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
    }

    /// Counts the lines that have ended since the first `looked_at` bytes, and gives the last thousand bytes. (All of a
    /// long text is too much to look at each time.)
    fn lines_since(&self, looked_at: &mut usize) -> (usize, String) {
        let bytes = self.0.lock().expect("no panic");
        let new = &bytes[*looked_at..];
        *looked_at = bytes.len();
        let end = &bytes[bytes.len().saturating_sub(1000)..];
        (new.iter().filter(|&&byte| byte == b'\n').count(), String::from_utf8_lossy(end).into_owned())
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("no panic").clone()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
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
