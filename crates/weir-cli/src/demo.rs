//! `weir demo`: a capture of real traffic in a private network. Only the capture file remains.
//!
//! The commands are those that a user would type, run as separate programs; the capture in the receiving namespace.

use std::env;
use std::fmt::Display;
use std::fs::{self, DirBuilder};
use std::io::{self, Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::net::sockopt;
use rustix::process::{Pid, Signal, kill_process};
use weir::parts::command;
use weir::send::{Due, LiveReport, Sender};
use weir_sys::CallError;
use weir_sys::netns::NetNs;
use weir_sys::pair::{self, Pair, Port, Veth};
use weir_traffic::{Description, Sizes, Tables};

use crate::failure::Failure;
use crate::{program, style, units};

/// Size of the TCP transfer in bytes.
const TRANSFER: u64 = 64 << 20;
/// Number of packets in the burst.
const BURST: u64 = 1_000_000;
/// Size of the smallest Ethernet frame, without its checksum.
const SMALL: u32 = 60;
/// Longest wait for the capture to begin; normally, it takes some hundred milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for packets in transit to arrive, after the sender has finished.
const SETTLE: Duration = Duration::from_millis(300);

const DEMO_EXAMPLES: &str = "\
Example:
  sudo weir demo --dir /var/tmp
        Capture real traffic in a private network, then show what is in the file.

It needs root to create two network namespaces, which are gone at the end. The interfaces of
this host are not touched. Only the capture file remains, in a new directory that only root can read.";

#[derive(Debug, Args)]
#[command(after_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Directory in which a private one is created for the capture file.
    #[arg(long, value_name = "DIR", default_value = "/tmp")]
    dir: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let paint = style::stderr();
    say("");
    say(&format!("{}: real traffic in a private network", paint.bold("weir demo")));
    say("");
    let pair = network().map_err(|error| cannot_build(&error))?;
    say(&format!("   tx0 10.77.0.1 {} rx0 10.77.0.2", paint.cyan("────── veth ──────")));
    say(&paint.dim("   network namespace    network namespace"));
    say("");

    let directory = private_directory(&args.dir)?;
    let file = directory.join("demo.pcapng");
    // A directory with a file in it stays.
    let mut capture = Capture::start(&pair.rx, &file).inspect_err(|_| drop(fs::remove_dir(&directory)))?;
    say(&paint.dim(format!("# a TCP transfer of {}", units::bytes(TRANSFER))));
    let transfer = transfer(&pair).map_err(cannot_send)?;
    say(&paint.dim(format!(
        "# {} packets of {SMALL} bytes, as fast as this machine can send them",
        units::grouped(BURST)
    )));
    let burst = burst(&pair)?;
    thread::sleep(SETTLE);
    let account = capture.finish()?;
    drop(pair);

    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let rate = |amount: u64, time: Duration| units::scaled(amount as f64 / time.as_secs_f64());
    say("");
    say(&paint.bold("Sent and captured"));
    say(&format!("  TCP      {}, at {}bit/s", units::bytes(TRANSFER), rate(TRANSFER * 8, transfer)));
    say(&format!(
        "  burst    {} packets, at {}pps",
        units::grouped(burst.sent),
        rate(burst.made.packets, burst.elapsed)
    ));
    let others = account.captured.saturating_sub(burst.sent);
    say(&format!(
        "  captured {} packets: the burst and {} TCP packets",
        units::grouped(account.captured),
        units::grouped(others)
    ));
    let name = command::word(&file.to_string_lossy());
    for words in [&["info"][..], &["read", "-c", "5"]] {
        show(words, &file, &name)?;
    }
    say("");
    say(&paint.bold("Look further"));
    let further = [
        (format!("{} read -c 10 {name} -- tcp", program::name()), "the TCP transfer"),
        (format!("tshark -r {name} -q -z conv,tcp"), "the same, with tshark"),
        (format!("tcpdump -nn -r {name} -c 10"), "the first packets, with tcpdump"),
        (format!("wireshark {name}"), "in a graphical interface"),
    ];
    let width = further.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    for (command, what) in further {
        say(&format!("  {command:<width$}  {}", paint.dim(format!("# {what}"))));
    }
    say("");
    say(&paint.dim("The network was removed; only the file remains."));
    account.verdict(burst.sent)
}

/// Creates the network. It lives as long as the pair.
fn network() -> Result<Pair, CallError> {
    Veth::default().ipv4().queues(2).connect(&Arc::new(NetNs::new()?), &Arc::new(NetNs::new()?), 0)
}

/// Moves bytes between two sockets, and returns how long it took.
fn transfer(pair: &Pair) -> Result<Duration, CallError> {
    let cannot = |what: &'static str| move |error: io::Error| CallError::new(what, error);
    let address = pair.rx.ipv4.expect("the pair has addresses");
    let listener = pair
        .rx
        .netns
        .run(|| TcpListener::bind((address, 0)))
        .map_err(cannot("listen for a TCP connection"))?;
    // TCP fills a super-frame to at most half of the window, which the kernel opens only as fast as the reader reads.
    sockopt::set_socket_recv_buffer_size_force(&listener, 8 << 20)
        .map_err(|error| CallError::new("enlarge a socket's buffer", error))?;
    let address = listener.local_addr().map_err(cannot("find the port of a socket"))?;
    let mut out = pair
        .tx
        .netns
        .run(|| TcpStream::connect_timeout(&address, PATIENCE))
        .map_err(cannot("connect by TCP"))?;
    let (mut back, _) = listener.accept().map_err(cannot("accept a TCP connection"))?;
    out.set_write_timeout(Some(PATIENCE)).map_err(cannot("set a socket's timeout"))?;
    back.set_read_timeout(Some(PATIENCE)).map_err(cannot("set a socket's timeout"))?;
    let start = Instant::now();
    let (received, sent) = thread::scope(|scope| {
        let sender = scope.spawn(move || {
            let block: Vec<u8> = (0..64 << 10).map(|at: u32| at.to_le_bytes()[0]).collect();
            (0..TRANSFER / block.len() as u64).try_for_each(|_| out.write_all(&block))?;
            out.shutdown(Shutdown::Write)
        });
        (io::copy(&mut back, &mut io::sink()), sender.join().expect("sending does not panic"))
    });
    sent.and(received).map(|_| start.elapsed()).map_err(cannot("send by TCP"))
}

/// Sends the burst.
fn burst(pair: &Pair) -> Result<LiveReport, Failure> {
    let (macs, sizes) = ([pair.tx.mac, pair.rx.mac], Some(Sizes::Fixed(SMALL)));
    let description = Description { macs, sizes, ..Description::new(false) };
    let tables = Tables::new(&description).map_err(cannot_send)?;
    pair.tx.netns.run(|| {
        let mut frames = Sender::to(&pair.tx.name).live(&tables, 0).map_err(cannot_send)?;
        let due = |made, _| if made < BURST { Due::Now(BURST - made) } else { Due::Over };
        frames.run(0, due).map_err(cannot_send)
    })
}

/// Creates a directory for this user alone.
fn private_directory(parent: &Path) -> Result<PathBuf, Failure> {
    let mut names = (0..).map(|number| parent.join(format!("weir-demo-{}-{number}", process::id())));
    loop {
        let path = names.next().expect("there is always another number");
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                made.map_err(|error| {
                    Failure::new(format_args!("cannot create {}: {error}", path.display()))
                })?;
                return Ok(path);
            }
        }
    }
}

/// Runs weir on the file, and shows the command and its output.
fn show(words: &[&str], file: &Path, name: &str) -> Result<(), Failure> {
    say("");
    say(&format!("{} weir {} {name}", style::stderr().green("$"), words.join(" ")));
    let output = Command::new(this_program()?).args(words).arg(file).output();
    let output =
        output.map_err(|error| Failure::new(format_args!("cannot run weir {}: {error}", words[0])))?;
    String::from_utf8_lossy(&output.stdout).lines().for_each(say);
    match output.status.success() {
        true => Ok(()),
        false => Err(Failure::new(String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn this_program() -> Result<PathBuf, Failure> {
    env::current_exe().map_err(|error| Failure::new(format_args!("cannot find the weir program: {error}")))
}

/// `weir capture`, running in the receiving namespace.
struct Capture {
    program: Child,
    file: PathBuf,
}

/// The part of the account that the demo uses.
#[derive(serde::Deserialize)]
struct CaptureSummary {
    captured: u64,
    lost: u64,
    errors: u64,
    written: u64,
}

impl Capture {
    fn start(port: &Port, file: &Path) -> Result<Self, Failure> {
        // An interface with an address is in use by the host, so `auto` would choose an unobtrusive source.
        let mut words = vec!["capture", "-i", &port.name, "--source", "xdp", "-B", "128MiB", "-w"];
        let name = file.display().to_string();
        words.push(&name);
        say(&format!("{} weir {}", style::stderr().green("$"), words.join(" ")));
        let mut command = Command::new(this_program()?);
        command.args(&words).arg("--json").stdin(Stdio::null()).stdout(Stdio::piped());
        let program = port.netns.spawn(&mut command);
        let program =
            program.map_err(|error| Failure::new(format_args!("cannot start weir capture: {error}")))?;
        let mut capture = Self { program, file: file.to_owned() };
        capture.wait_until_begun()?;
        Ok(capture)
    }

    /// Waits for the start of the file, which is written once the capture is attached.
    fn wait_until_begun(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if fs::metadata(&self.file).is_ok_and(|file| file.len() > 0) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.program.try_wait() {
                // It has printed the reason.
                return Err(Failure::new(format_args!("weir capture ended: {status}")));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(Failure::new(format_args!("weir capture did not start within {} s", PATIENCE.as_secs())))
    }

    /// Sends Ctrl-C and returns the account.
    fn finish(&mut self) -> Result<CaptureSummary, Failure> {
        let cannot = |what: &str, error: &dyn Display| {
            Failure::new(format_args!("cannot {what} weir capture: {error}"))
        };
        kill_process(Pid::from_child(&self.program), Signal::INT).map_err(|error| cannot("stop", &error))?;
        let mut json = String::new();
        let mut output = self.program.stdout.take().expect("a pipe was asked for");
        output.read_to_string(&mut json).map_err(|error| cannot("read the summary of", &error))?;
        let status = self.program.wait().map_err(|error| cannot("wait for", &error))?;
        if !status.success() {
            return Err(Failure::new(format_args!("weir capture ended: {status}")));
        }
        serde_json::from_str(&json).map_err(|error| cannot("read the summary of", &error))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // Whatever went wrong, nothing is left running. This fails if the program has ended already.
        let _ended = self.program.kill().and_then(|()| self.program.wait());
    }
}

impl CaptureSummary {
    fn verdict(&self, sent: u64) -> Result<(), Failure> {
        let lost = self.lost + self.errors;
        if lost > 0 {
            return Err(Failure::new(format_args!("packets were lost: {lost}"))
                .hint("the disk or the processor is busy; try --dir /dev/shm"));
        }
        if self.written != self.captured || self.captured < sent {
            let Self { captured, written, .. } = self;
            return Err(Failure::new(format_args!(
                "{sent} packets sent, {captured} captured, {written} written"
            )));
        }
        Ok(())
    }
}

/// Prints a line of the demo over the capture's live line.
fn say(line: &str) {
    if style::terminal() {
        style::draw("\r\x1b[K");
    }
    style::say(format_args!("{line}"));
}

fn cannot_build(error: &CallError) -> Failure {
    let text = format!("cannot create a private network: {error}");
    if rustix::process::geteuid().is_root() {
        Failure::new(text + pair::remedy(error))
    } else {
        Failure::new(text).hint(format!("run as root: sudo {} demo", program::path()))
    }
}

fn cannot_send(error: impl Display) -> Failure {
    Failure::new(format_args!("cannot send traffic: {error}"))
}
