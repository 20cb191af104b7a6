//! One turn of one contestant.

use std::fs::File;
use std::io::Seek;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde_json::Value;
use tempfile::NamedTempFile;
use weir_lab::{Generator, Hook, Network, Pair, SendReport, StackCounters, Traffic, Veth};

use super::contestants::{Contestant, ContestantKind};
use super::process::{Memory, cpu_time, ksoftirqd};
use super::program::{Counts, Reader};
use super::witness::Witness;
use crate::failure::{Failure, failed};
use crate::tidy;

/// Queues of the interface: one for each processor that takes part.
pub(super) const QUEUES: u32 = 2;
/// Where frames are made, and, in between, received: they arrive on the queue with this number.
pub(super) const GENERATOR_CPU: u32 = 1;
/// Frames are sent for this share of the time beforehand, to fill caches and to see how many a second it will be.
const WARM_UP: u32 = 10;
/// No more frames than these in a turn.
const MOST_FRAMES: u64 = 100_000_000;
/// No file grows longer than this.
const LONGEST_FILE: u64 = 2 << 30;
/// What a file has for a packet beside its bytes, at most: head, padding and options of pcapng.
const FILE_OVERHEAD: u64 = 64;
/// Frames may still be on their way when their sender has returned.
const ON_THEIR_WAY: Duration = Duration::from_millis(500);

/// Bounds of a turn.
#[derive(Debug)]
pub(super) struct Limits {
    /// For how long to send.
    pub(super) duration: Duration,
    /// Where files go.
    dir: PathBuf,
    /// How long they may get.
    file: u64,
}

/// The network, and what has to be known of the machine.
#[derive(Debug)]
pub(super) struct Lab {
    pub(super) network: Network,
    ksoftirqd: Option<Pid>,
    /// Flows of the frames, in random order.
    pub(super) flows: u32,
}

/// What was measured in one turn. Rates are frames a second, times of a packet nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// As fast as the processor that makes the frames and receives them could go.
    pub(super) offered_rate: f64,
    /// Of these, what reached the reader: the same if nothing was lost.
    pub(super) rate: f64,
    /// Processor time of a packet in the kernel: making it, receiving it, and giving it to the reader.
    pub(super) kernel_ns: f64,
    /// Processor time of a packet in the reader's process; none where there is no reader.
    pub(super) reader_ns: Option<f64>,
    /// Frames that the interface took, with those for warm-up.
    pub(super) accepted: u64,
    /// What the reader has got of the accepted ones; without one, what the program in the kernel or the stack has seen.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// What the reader itself says of its losses.
    pub(super) dropped: Option<u64>,
    /// What the reader says its filter has rejected.
    pub(super) filtered: Option<u64>,
    /// What has reached IP in the network stack.
    pub(super) stack: u64,
    /// Bytes and order of all packets are known to be right; that cannot be said where packets were lost, or where the
    /// reader keeps none.
    pub(super) verified: bool,
    /// Bytes that the reader has beyond the chunks of its pool; weir only.
    pub(super) beyond_pool: Option<u64>,
    /// What is not as it has to be.
    pub(super) problems: Vec<String>,
}

impl Limits {
    pub(super) fn new(duration: Duration, dir: &Path) -> Result<Self, Failure> {
        let about = rustix::fs::statvfs(dir).map_err(failed(format_args!("inspect {}", dir.display())))?;
        let room = about.f_bavail.saturating_mul(about.f_frsize);
        Ok(Self { duration, dir: dir.to_owned(), file: LONGEST_FILE.min(room / 2) })
    }

    /// Frames of a turn when so many were made in a while.
    fn frames(&self, size: usize, seen: &SendReport, writes: bool) -> u64 {
        let frames = u128::from(seen.sent()) * self.duration.as_nanos() / seen.elapsed.as_nanos().max(1);
        let frames = u64::try_from(frames).unwrap_or(u64::MAX).clamp(1, MOST_FRAMES);
        let fit = (self.file / (size as u64 + FILE_OVERHEAD)).saturating_sub(seen.sent());
        if writes { frames.min(fit) } else { frames }
    }
}

impl Lab {
    /// Makes the network. Its ends have other addresses than the frames: so the stack has as little to do with them as it
    /// can, as with the traffic of a mirror port, and those who leave it its packets are not slowed down by it.
    pub(super) fn new() -> Result<Self, Failure> {
        Self::with_queues(QUEUES)
    }

    /// The same with so many queues.
    pub(super) fn with_queues(queues: u32) -> Result<Self, Failure> {
        let ends = Veth::default().queues(queues).macs([2, 0x77, 1, 0, 0, 1], [2, 0x77, 1, 0, 0, 2]);
        let network = Network::new(ends);
        let network =
            network.map_err(|error| failed("create a private network")(error).hint("run as root"))?;
        Ok(Self { network, ksoftirqd: ksoftirqd(GENERATOR_CPU), flows: 1 })
    }

    /// The same with two interfaces that are there: one to send on, one to receive on.
    pub(super) fn on(cards: Option<&[String; 2]>) -> Result<Self, Failure> {
        let Some([tx, rx]) = cards else { return Self::new() };
        let network = Network::of_cards(tx, rx);
        let network = network.map_err(failed(format_args!("send on {tx} and receive on {rx}")))?;
        Ok(Self { network, ksoftirqd: ksoftirqd(GENERATOR_CPU), flows: 1 })
    }

    pub(super) fn pair(&self) -> &Pair {
        self.network.pair()
    }

    /// Frames, and what sends them as fast as it can.
    pub(super) fn generator(&self, size: usize) -> Result<(Traffic, Generator), Failure> {
        let traffic = Traffic::new(size).and_then(|traffic| traffic.flows(self.flows));
        let traffic = traffic.map_err(failed("describe frames"))?.scattered();
        let generator = Generator::new(self.pair(), &traffic).map_err(failed("prepare to send"))?;
        Ok((traffic, generator.cpu(GENERATOR_CPU)))
    }

    /// One turn: starts the contestant, sends, waits until it has taken everything, ends it and compares.
    pub(super) fn sample(
        &self,
        contestant: &Contestant,
        size: usize,
        limits: &Limits,
    ) -> Result<Sample, Failure> {
        let stack_before = self.stack()?;
        let receiver = self.start(contestant, limits)?;
        let reader_before = receiver.cpu_time()?;
        let sent = self.send(size, limits, receiver.writes())?;
        let spun = receiver.cpu_time()?;
        receiver.settle()?;
        let reader_time = if receiver.spins() { spun } else { receiver.cpu_time()? }.zip(reader_before);
        let memory = receiver.memory()?;

        let accepted = sent.warm_up.accepted + sent.timed.accepted;
        let counts = receiver.finish(accepted)?;
        let due = if contestant.stack { accepted } else { 0 };
        let stack = self.stack_since(stack_before, due)?;
        let delivered = counts.map_or(stack, |counts| counts.delivered);
        let mut problems = Vec::new();
        if stack != due {
            problems.push(format!("the stack got {stack} packets instead of {due}"));
        }
        if delivered > accepted {
            problems.push(format!("{delivered} packets delivered of {accepted} sent"));
        }
        let verified = match counts.and_then(|counts| counts.witness) {
            Some(witness) => sent.compare(&witness, contestant.kept(), delivered, &mut problems),
            None => false,
        };

        let per = |time: Duration, packets: u64| time.as_secs_f64() * 1e9 / packets.max(1) as f64;
        let lost = accepted.saturating_sub(delivered);
        let offered_rate = sent.timed.accepted as f64 / sent.timed.elapsed.as_secs_f64();
        Ok(Sample {
            offered_rate,
            rate: offered_rate * (accepted - lost) as f64 / accepted.max(1) as f64,
            kernel_ns: per(sent.kernel, sent.timed.accepted),
            reader_ns: reader_time.map(|(after, before)| per(after.saturating_sub(before), delivered)),
            accepted,
            delivered,
            lost,
            dropped: counts.and_then(|counts| counts.dropped),
            filtered: counts.and_then(|counts| counts.filtered),
            stack,
            verified,
            beyond_pool: memory
                .zip(counts.and_then(|counts| counts.chunks))
                .map(|(memory, chunks)| memory.beyond(contestant.pool(chunks))),
            problems,
        })
    }

    fn start(&self, contestant: &Contestant, limits: &Limits) -> Result<Receiver, Failure> {
        let port = &self.pair().rx;
        match &contestant.kind {
            ContestantKind::Stack => Ok(Receiver::Stack),
            ContestantKind::Hook(action) => {
                Hook::attach(port, *action).map(Receiver::Hook).map_err(failed("attach a program"))
            }
            ContestantKind::Program(program) => {
                let make = || tidy::file_in(&limits.dir);
                let file = program.writes().then(make).transpose();
                let file = file.map_err(failed(format_args!("create a file in {}", limits.dir.display())))?;
                let reader = program.start(port, file.as_ref().map(NamedTempFile::path))?;
                // The reader has it open. Without a name nothing is left of it, whatever happens.
                Ok(Receiver::Reader { reader, file: file.map(NamedTempFile::into_file) })
            }
        }
    }

    /// Sends for a short while, and then, measured, for the time that a turn has.
    fn send(&self, size: usize, limits: &Limits, writes: bool) -> Result<Sent, Failure> {
        let (traffic, mut generator) = self.generator(size)?;
        let warm_up = generator.send_for(limits.duration / WARM_UP).map_err(failed("send"))?;
        let frames = limits.frames(size, &warm_up, writes);
        if frames == 0 {
            return Err(Failure::new(format_args!(
                "cannot write to {}: too little space",
                limits.dir.display()
            )));
        }
        let before = self.softirq_time();
        let timed = generator.send(frames).map_err(failed("send"))?;
        let kernel = timed.cpu_time + self.softirq_time().saturating_sub(before);
        Ok(Sent { traffic, warm_up, timed, kernel })
    }

    /// Packets that have reached IP in the receiving end's stack so far, whoever they are for.
    pub(super) fn stack(&self) -> Result<u64, Failure> {
        Ok(self.to_this_host()? + self.to_others()?)
    }

    /// Those that are addressed to it.
    pub(super) fn to_this_host(&self) -> Result<u64, Failure> {
        let counters = StackCounters::read(self.network.rx()).map_err(failed("read the stack's counters"))?;
        Ok(counters.get("IpInReceives"))
    }

    /// Those that are not; `ip_rcv_core` counts and drops them.
    fn to_others(&self) -> Result<u64, Failure> {
        let mut ip = Command::new("ip");
        ip.args(["-json", "-s", "-s", "link", "show", &self.pair().rx.name]).stdout(Stdio::piped());
        let output =
            self.network.rx().spawn(&mut ip).and_then(Child::wait_with_output).map_err(failed("run ip"))?;
        let links: Value = serde_json::from_slice(&output.stdout).map_err(failed("read the output of ip"))?;
        // Absent as long as it is zero.
        Ok(links.pointer("/0/stats64/rx/otherhost").and_then(Value::as_u64).unwrap_or(0))
    }

    /// Processor time of the kernel's thread for network work that is too much to be done at once.
    fn softirq_time(&self) -> Duration {
        self.ksoftirqd.and_then(|pid| cpu_time(pid).ok()).unwrap_or_default()
    }

    /// How the stack's count has grown; waits for a while until that is as much as expected.
    pub(super) fn stack_since(&self, before: u64, expected: u64) -> Result<u64, Failure> {
        let start = Instant::now();
        loop {
            let grown = self.stack()? - before;
            if grown >= expected || start.elapsed() > ON_THEIR_WAY {
                return Ok(grown);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What was sent in a turn.
struct Sent {
    traffic: Traffic,
    warm_up: SendReport,
    timed: SendReport,
    /// Processor time in the kernel while the time was measured.
    kernel: Duration,
}

impl Sent {
    /// See [`Witness::is_right`].
    fn compare(&self, witness: &Witness, kept: usize, delivered: u64, problems: &mut Vec<String>) -> bool {
        let all = self.warm_up.sequences.start..self.timed.sequences.end;
        witness.is_right(&self.traffic, kept, all, delivered, problems)
    }
}

/// What takes the packets, while it does.
enum Receiver {
    Stack,
    Hook(Hook),
    Reader { reader: Reader, file: Option<File> },
}

impl Receiver {
    fn reader(&self) -> Option<&Reader> {
        if let Self::Reader { reader, .. } = self { Some(reader) } else { None }
    }

    fn writes(&self) -> bool {
        matches!(self, Self::Reader { file: Some(_), .. })
    }

    fn spins(&self) -> bool {
        self.reader().is_some_and(Reader::spins)
    }

    fn cpu_time(&self) -> Result<Option<Duration>, Failure> {
        self.reader().map(Reader::cpu_time).transpose()
    }

    fn memory(&self) -> Result<Option<Memory>, Failure> {
        self.reader().map(Reader::memory).transpose()
    }

    /// See [`Reader::settle`].
    fn settle(&self) -> Result<Duration, Failure> {
        self.reader().map_or(Ok(Duration::ZERO), Reader::settle)
    }

    /// Ends it; gives its counts, and what is in its file. None where only the stack has counted.
    fn finish(self, accepted: u64) -> Result<Option<Counts>, Failure> {
        match self {
            Self::Stack => Ok(None),
            Self::Hook(hook) => Ok(Some(Counts::of(hook.wait_for(accepted, ON_THEIR_WAY)))),
            Self::Reader { reader, file: None } => reader.finish().map(Some),
            Self::Reader { reader, file: Some(mut file) } => {
                let counts = reader.finish()?;
                let witness = file
                    .rewind()
                    .and_then(|()| Witness::read(file))
                    .map_err(failed("read the file written"))?;
                Ok(Some(Counts { witness: Some(witness), ..counts }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_bounds() {
        let limits = Limits { duration: Duration::from_secs(2), dir: PathBuf::new(), file: 1_240_000 };
        let seen = |sent: u64, milliseconds| SendReport {
            sequences: 0..sent,
            accepted: sent,
            refused: 0,
            elapsed: Duration::from_millis(milliseconds),
            cpu_time: Duration::ZERO,
        };
        assert_eq!(limits.frames(60, &seen(1000, 100), false), 20_000, "ten thousand a second");
        assert_eq!(limits.frames(60, &seen(1000, 100), true), 9_000, "124 bytes of file each");
        assert_eq!(limits.frames(60, &seen(20_000, 100), true), 0);
        assert_eq!(limits.frames(60, &seen(0, 0), false), 1);
        assert_eq!(limits.frames(60, &seen(u64::MAX, 1), false), MOST_FRAMES);
    }
}
