//! A reader: a program that captures in the receiving namespace, on a processor of its own.

use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weir::DEFAULT_CHUNK_SIZE;
use weir_lab::Port;

use super::process::{Memory, cpu_time, is_runnable};
use super::tidy;
use super::witness::Witness;
use crate::failure::{Failure, failed};

/// Where readers run.
pub(super) const READER_CPU: u32 = 0;
/// How long a reader may take to begin, to take what it has got, and to end.
const PATIENCE: Duration = Duration::from_secs(15);
/// Between two looks at a reader's processor time.
const LOOK: Duration = Duration::from_millis(10);

/// How a program is run and what it says.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// Debian's name of the package that has it.
    pub(super) package: &'static str,
    /// Where it is, if it was made for this run.
    pub(super) place: Option<PathBuf>,
    /// What is added to its environment.
    pub(super) environment: Vec<(&'static str, OsString)>,
    /// `{interface}`, `{address}` (its IPv4 address) and `{file}` stand for what they say.
    pub(super) arguments: Vec<&'static str>,
    /// What it prints once it captures.
    pub(super) ready: &'static str,
    /// How long packets may lie in a batch that is not full before it looks at them.
    pub(super) batch: Duration,
    /// Whether it never sleeps, so that its processor time does not tell when it is done.
    pub(super) spins: bool,
    /// Reads its last words, on standard output and standard error.
    pub(super) parse: fn(&str, &str) -> Option<Counts>,
}

/// What a reader says it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// Packets that it has taken.
    pub(super) delivered: u64,
    /// Packets that it knows to be lost.
    pub(super) dropped: Option<u64>,
    /// Packets that it says its filter has rejected.
    pub(super) filtered: Option<u64>,
    /// Chunks of its pool.
    pub(super) chunks: Option<u64>,
    /// What was in the packets.
    pub(super) witness: Option<Witness>,
}

impl Counts {
    /// Where nothing else is known.
    pub(super) fn of(delivered: u64) -> Self {
        Self { delivered, dropped: None, filtered: None, chunks: None, witness: None }
    }
}

impl Program {
    /// One that is installed. `package`: Debian's name of the package that has it, none for ours; `batch`: milliseconds.
    pub(super) fn new(
        [name, package]: [&'static str; 2],
        ready: &'static str,
        batch: u64,
        arguments: Vec<&'static str>,
        parse: fn(&str, &str) -> Option<Counts>,
    ) -> Self {
        let (environment, batch) = (Vec::new(), Duration::from_millis(batch));
        Self { name, package, place: None, environment, arguments, ready, batch, spins: false, parse }
    }

    /// Why it does not run here, if it does not.
    pub(super) fn missing(&self) -> Option<String> {
        self.path().is_none().then(|| missing(self.name, self.package))
    }

    /// Where it is.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.place.clone().or_else(|| find(self.name))
    }

    /// Whether it writes a file.
    pub(super) fn writes(&self) -> bool {
        self.arguments.contains(&"{file}")
    }

    /// What follows `-s`, which all programs call the snap length.
    pub(super) fn snap_len(&self) -> Option<usize> {
        let at = self.arguments.iter().position(|&word| word == "-s")?;
        self.arguments.get(at + 1)?.parse().ok()
    }

    /// Bytes of a chunk, if it is weir: what follows `--chunk-size`, or the default.
    pub(super) fn chunk_size(&self) -> u64 {
        let at = self.arguments.iter().position(|&word| word == "--chunk-size");
        let asked = at.and_then(|at| self.arguments.get(at + 1)?.parse().ok());
        asked.unwrap_or_else(|| DEFAULT_CHUNK_SIZE.into())
    }

    /// Starts it, and waits until it captures.
    pub(super) fn start(&self, port: &Port, file: Option<&Path>) -> Result<Reader, Failure> {
        self.start_to(port, file, Stdio::piped())
    }

    /// The same, with standard output elsewhere.
    pub(super) fn start_to(
        &self,
        port: &Port,
        file: Option<&Path>,
        stdout: Stdio,
    ) -> Result<Reader, Failure> {
        let name = self.name;
        let path = self.path().ok_or_else(|| Failure::new(format_args!("cannot find {name}")))?;
        let mut command = Command::new("taskset");
        command.args(["-c", &READER_CPU.to_string()]).arg(path);
        for &argument in &self.arguments {
            match (argument, file) {
                ("{interface}", _) => command.arg(&port.name),
                ("{address}", _) => command.arg(port.ipv4.expect("the port has an address").to_string()),
                ("{file}", Some(file)) => command.arg(file),
                (word, _) => command.arg(word),
            };
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
        let held = tidy::hold();
        let mut child =
            port.netns.spawn(&mut command).map_err(failed(format_args!("start {name} with taskset")))?;
        drop(held);
        let stdout = child.stdout.take().map_or_else(Words::default, Words::from);
        let stderr = Words::from(child.stderr.take().expect("a pipe was asked for"));
        let mut reader = Reader { name, child, stdout, stderr, program: Box::new(self.clone()) };
        reader.wait_until_ready()?;
        Ok(reader)
    }
}

/// This program.
pub(super) const OWN: &str = "weir-bench";
/// The program that is measured.
pub(super) const WEIR: &str = "weir";

/// Where [`WEIR`] is.
static MEASURED: OnceLock<PathBuf> = OnceLock::new();

/// Has [`WEIR`] be at `path`, or else beside this program.
pub(super) fn measure(path: Option<&Path>) -> Result<(), Failure> {
    let own = env::current_exe().map_err(failed("find this program"))?;
    let path = path.map_or_else(|| own.with_file_name(WEIR), Path::to_owned);
    let found = path.canonicalize().map_err(|error| {
        let what = format_args!(
            "cannot run {}: {error}; try cargo build --package weir-cli, or --weir PATH",
            path.display()
        );
        Failure::new(what)
    })?;
    MEASURED.get_or_init(|| found);
    Ok(())
}

/// Where a program is.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    match name {
        OWN => return env::current_exe().ok(),
        WEIR => return MEASURED.get().cloned(),
        _ => {}
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.map(|place| place.join(name)).find(|path| path.is_file())
}

/// What is wrong with one that is not there.
pub(super) fn missing(name: &str, package: &str) -> String {
    format!("{name} is not installed (apt-get install {package})")
}

/// What a program has said, if it succeeded.
pub(super) fn succeeded(what: impl Display, ran: io::Result<Output>) -> Result<Output, Failure> {
    let output = ran.map_err(failed(format_args!("run {what}")))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format_args!("{what} failed: {}", said.trim())))
}

/// Where a program of others is; `package`: Debian's name of the package that has it.
pub(super) fn installed(name: &str, package: &str) -> Result<PathBuf, Failure> {
    let missing = || {
        Failure::new(format_args!("cannot find {name}: it is not installed; try apt-get install {package}"))
    };
    find(name).ok_or_else(missing)
}

/// A reader that runs. Killed when dropped.
#[derive(Debug)]
pub(super) struct Reader {
    name: &'static str,
    child: Child,
    stdout: Words,
    stderr: Words,
    program: Box<Program>,
}

impl Reader {
    fn wait_until_ready(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let ready = self.program.ready;
            if self.stderr.text().contains(ready) || self.stdout.text().contains(ready) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                let words = self.stderr.end();
                return Err(Failure::new(format_args!("{} ended ({status}): {}", self.name, words.trim())));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Err(self.too_slow("begin", PATIENCE))
    }

    fn too_slow(&self, to: &str, patience: Duration) -> Failure {
        let (name, patience, words) = (self.name, patience.as_secs(), self.stderr.text());
        Failure::new(format_args!("{name} did not {to} within {patience} s: {}", words.trim()))
    }

    /// The process.
    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(super) fn spins(&self) -> bool {
        self.program.spins
    }

    pub(super) fn cpu_time(&self) -> Result<Duration, Failure> {
        cpu_time(self.pid()).map_err(failed(format_args!("read the processor time of {}", self.name)))
    }

    fn is_runnable(&self) -> Result<bool, Failure> {
        is_runnable(self.pid()).map_err(failed(format_args!("read the state of {}", self.name)))
    }

    pub(super) fn memory(&self) -> Result<Memory, Failure> {
        Memory::of(self.pid()).map_err(failed(format_args!("read the memory of {}", self.name)))
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        kill_process(self.pid(), signal).map_err(failed(format_args!("send a signal to {}", self.name)))
    }

    /// Waits until the reader has taken what has arrived: until it sleeps, and for as long as it lets a batch grow. Gives
    /// the time for which it was still busy.
    pub(super) fn settle(&self) -> Result<Duration, Failure> {
        self.settle_within(PATIENCE)
    }

    /// The same; an error if it takes longer.
    pub(super) fn settle_within(&self, patience: Duration) -> Result<Duration, Failure> {
        let start = Instant::now();
        let (mut busy, mut quiet) = (Duration::ZERO, Duration::ZERO);
        let mut used = self.cpu_time()?;
        while quiet < self.program.batch.max(3 * LOOK) {
            thread::sleep(LOOK);
            let growth = self.cpu_time()?.saturating_sub(used);
            used += growth;
            if self.program.spins {
                quiet += LOOK;
                continue;
            }
            if growth > LOOK / 2 {
                busy = start.elapsed();
            }
            if growth > LOOK / 10 {
                quiet = Duration::ZERO;
            } else if !self.is_runnable()? {
                // While it waits for a processor, its silence tells nothing.
                quiet += LOOK;
            }
            if start.elapsed() > patience {
                return Err(self.too_slow("read the remaining packets", patience));
            }
        }
        Ok(busy)
    }

    /// Ends one that has too much left to do. Ctrl-C first, for it may have children.
    pub(super) fn give_up(self) -> Result<(), Failure> {
        self.signal(Signal::INT)?;
        thread::sleep(Duration::from_millis(500));
        Ok(())
    }

    /// Ctrl-C, and its last words.
    pub(super) fn finish(self) -> Result<Counts, Failure> {
        let parse = self.program.parse;
        self.finish_as(parse)
    }

    /// The same; `parse` reads its last words instead, on standard output and standard error.
    pub(super) fn finish_as<T>(mut self, parse: impl FnOnce(&str, &str) -> Option<T>) -> Result<T, Failure> {
        self.signal(Signal::INT)?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) =
                self.child.try_wait().map_err(failed(format_args!("wait for {}", self.name)))?
            {
                break status;
            }
            if start.elapsed() > PATIENCE {
                return Err(self.too_slow("end", PATIENCE));
            }
            thread::sleep(Duration::from_millis(2));
        };
        let (stdout, stderr) = (self.stdout.end(), self.stderr.end());
        if !status.success() {
            return Err(Failure::new(format_args!("{} ended ({status}): {}", self.name, stderr.trim())));
        }
        let unclear = || Failure::new(format_args!("unexpected output of {}: {stdout}{stderr}", self.name));
        parse(&stdout, &stderr).ok_or_else(unclear)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Fails where it has ended already.
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// What a program prints, read while it runs so that it never has to wait for that.
#[derive(Debug, Default)]
struct Words {
    text: Arc<Mutex<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Words {
    fn from(mut pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&text);
        let thread = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = pipe.read(&mut bytes) {
                let mut text = sink.lock().unwrap_or_else(PoisonError::into_inner);
                text.push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        Self { text, thread: Some(thread) }
    }

    /// So far.
    fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All of it: waits until the program has closed its end.
    fn end(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the thread only reads");
        }
        self.text()
    }
}
