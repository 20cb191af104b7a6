//! A packet counter on weir's ring and on libpcap (the table in PF_RING's user guide): by mode, way of waiting, queues and NAPI.
//!
//! ```text
//!  processor 0, 1: generator -> tx0 -> rx0: a queue each -> NAPI, there or in a thread of the kernel
//!  processor 0:                                               -> ring -> counter
//! ```

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Pid;
use weir_lab::{Generator, Port, SendReport, Traffic};

use super::readers::{self, Reader};
use crate::experiment::{
    About, Axis, Experiment, Judged, Measure, Outcome, Published, Series, Settings, Taken, Turn,
};
use crate::failure::{Failure, failed};
use crate::files::SIZE;
use crate::libpcap::both::Both;
use crate::process::{cpu_time, named};
use crate::sample::{GENERATOR_CPU, Lab};
use crate::wanted::Wanted;

/// What is added to the name of a series where NAPI has threads.
const THREADED: &str = "-threaded";
/// How the names of these threads begin.
const NAPI: &str = "napi/rx0-";
/// The only one that has them in a short run: who sends waits for two seconds where frames were refused.
const FEW: &str = "waiting-1";

/// Where packets are counted.
struct Field {
    queues: u32,
    /// Whether NAPI runs in threads of the kernel.
    threaded: bool,
    lab: Lab,
    /// Those of the kernel that receive, beside the one that sends.
    kernel: Vec<Pid>,
}

struct Counters {
    quick: bool,
    fields: Vec<Field>,
    /// Why NAPI has no threads here.
    unthreaded: Option<String>,
    readers: Vec<Reader>,
    time: Duration,
    /// Removed in the end.
    _both: Option<Both>,
}

/// Makes the networks.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    settings.without_cards("counters")?;
    let both = readers::libraries();
    let readers = readers::all(both.as_ref());
    let all = [(1, false), (2, false), (1, true), (2, true)];
    let quick = [(1, false), (2, true)];
    let (mut fields, mut unthreaded) = (Vec::new(), None);
    for &(queues, threaded) in if settings.quick { &quick[..] } else { &all } {
        let lab = Lab::with_queues(queues)?;
        if threaded && let Err(failure) = start_threads(&lab.pair().rx) {
            unthreaded = Some(failure.message().to_owned());
            continue;
        }
        let kernel = named(|comm| comm.starts_with("ksoftirqd/") || comm.starts_with(NAPI));
        fields.push(Field { queues, threaded, lab, kernel });
    }
    let (quick, time) = (settings.quick, settings.time(500));
    Ok(Box::new(Counters { quick, fields, unthreaded, readers, time, _both: both.ok() }))
}

impl Field {
    fn series(&self, reader: &Reader) -> String {
        series(reader.name, self.threaded)
    }

    /// Processor time that the threads of the kernel have used.
    fn kernel_time(&self) -> Duration {
        self.kernel.iter().filter_map(|&pid| cpu_time(pid).ok()).sum()
    }

    /// One for each queue.
    fn generators(&self, traffic: &Traffic) -> Result<Vec<Generator>, Failure> {
        let cpus = if self.queues == 1 { vec![GENERATOR_CPU] } else { (0..self.queues).collect() };
        let generator = |cpu| Ok(Generator::new(self.lab.pair(), traffic)?.cpu(cpu));
        let generators: Result<_, weir_lab::Error> = cpus.into_iter().map(generator).collect();
        generators.map_err(failed("prepare to send"))
    }
}

/// Has the kernel receive in threads, as TNAPI did.
fn start_threads(port: &Port) -> Result<(), Failure> {
    let mut set = Command::new("sh");
    set.args(["-c", r#"echo 1 > "$0" && cat "$0""#]).arg(format!("/sys/class/net/{}/threaded", port.name));
    set.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = port.netns.spawn(&mut set).and_then(Child::wait_with_output);
    let output = output.map_err(failed("run sh"))?;
    if output.stdout.trim_ascii() == b"1" {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    Err(Failure::new(format_args!("cannot have NAPI run in threads: {said}; try Linux 5.12 or newer")))
}

/// Has all of them send for a while, as fast as they can.
fn send(generators: Vec<Generator>, time: Duration) -> Result<Vec<SendReport>, Failure> {
    let sent: Result<_, _> = thread::scope(|scope| {
        let send = |mut generator: Generator| scope.spawn(move || generator.send_for(time));
        let senders: Vec<_> = generators.into_iter().map(send).collect();
        senders.into_iter().map(|sender| sender.join().expect("no panic")).collect()
    });
    sent.map_err(failed("send"))
}

fn series(name: &str, threaded: bool) -> String {
    name.to_owned() + if threaded { THREADED } else { "" }
}

impl Experiment for Counters {
    fn about(&self) -> About {
        let both = |threaded| self.readers.iter().map(move |reader| (reader, threaded));
        let all = || both(false).chain(both(true));
        let title = |reader: &Reader, threaded| {
            reader.title.to_owned() + if threaded { ", NAPI in threads" } else { "" }
        };
        let why = |reader: &Reader, threaded: bool| {
            let unthreaded = self.unthreaded.clone().filter(|_| threaded);
            unthreaded.or_else(|| reader.program.as_ref().err().cloned())
        };
        About {
            name: "counters".to_owned(),
            title: "Packet counters (PF_RING)".to_owned(),
            method: METHOD.to_owned(),
            differs: DIFFERS.map(str::to_owned).to_vec(),
            axis: Some(Axis { title: "receive".to_owned(), unit: "queues".to_owned(), logarithmic: false }),
            measures: vec![
                Measure::higher("rate", "packets that the counter got", "Mpps"),
                Measure::lower("cpu", "processor time of a packet, with that of making frames", "ns"),
                Measure::lower("lost", "packets lost", "packets"),
                Measure::fact("sent", "packets that the interface took", "packets"),
                Measure::fact("received", "packets that the counter got", "packets"),
                Measure::fact("dropped", "packets that it says it has lost", "packets"),
                Measure::fact("stack", "packets that reached the network stack", "packets"),
                Measure::fact("refused", "frames that the interface had no room for", "packets"),
            ],
            series: all()
                .map(|(reader, threaded)| {
                    Series::new(&series(reader.name, threaded), &title(reader, threaded), reader.role)
                })
                .collect(),
            missing: all()
                .filter_map(|(reader, threaded)| Some([title(reader, threaded), why(reader, threaded)?]))
                .collect(),
            versus: [false, true]
                .iter()
                .flat_map(|&threaded| {
                    readers::VERSUS.map(|ours| [series(ours, threaded), series("libpcap", threaded)])
                })
                .collect(),
            published: published(),
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let of = |field: &Field| {
            let (threaded, queues) = (field.threaded, u64::from(field.queues));
            let few = self.quick && threaded;
            let readers = self.readers.iter().filter(move |reader| !few || reader.name == FEW);
            let present = readers.filter(|reader| reader.program.is_ok());
            present.map(move |reader| Turn::of(&series(reader.name, threaded), Some(queues)))
        };
        self.fields.iter().flat_map(of).collect()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let here = self.fields.iter().filter(|field| Some(u64::from(field.queues)) == turn.at);
        let (field, reader) = here
            .flat_map(|field| self.readers.iter().map(move |reader| (field, reader)))
            .find(|(field, reader)| field.series(reader) == turn.series)
            .expect("turns are of readers in fields");
        let program = reader.program.as_ref().expect("turns are of programs that run here");
        let lab = &field.lab;
        let traffic = Traffic::new(SIZE as usize).map_err(failed("describe frames"))?;

        let generators = field.generators(&traffic)?;
        let stack = lab.stack()?;
        let counter = program.start(&lab.pair().rx, None)?;
        let before = field.kernel_time() + counter.cpu_time()?;
        let sent = send(generators, self.time)?;
        counter.settle()?;
        let used = (field.kernel_time() + counter.cpu_time()?).saturating_sub(before);
        let spins = counter.spins();
        let counts = counter.finish()?;

        let accepted: u64 = sent.iter().map(|report| report.accepted).sum();
        let refused: u64 = sent.iter().map(|report| report.refused).sum();
        let elapsed = sent.iter().map(|report| report.elapsed).max().unwrap_or_default();
        let due = if reader.stack { accepted } else { 0 };
        let stack = lab.stack_since(stack, due)?;
        let dropped = counts.dropped.unwrap_or_default();
        let mut taken = Taken::default();
        if stack != due {
            taken.problems.push(format!("the stack got {stack} packets instead of {due}"));
        }
        if counts.delivered + dropped != accepted {
            let received = counts.delivered;
            taken.problems.push(format!("{accepted} packets sent, {received} received and {dropped} lost"));
        }
        if let Some(witness) = counts.witness {
            match &sent[..] {
                [report] => {
                    let all = report.sequences.clone();
                    witness.is_right(&traffic, usize::MAX, all, counts.delivered, &mut taken.problems);
                }
                _ if witness.bytes != counts.delivered * traffic.size() as u64 => {
                    taken.problems.push(format!("wrong lengths: {witness:?}"));
                }
                _ => {}
            }
        }
        taken.add(turn, "rate", counts.delivered as f64 / elapsed.as_secs_f64() / 1e6);
        if !spins {
            let used = used + sent.iter().map(|report| report.cpu_time).sum::<Duration>();
            taken.add(turn, "cpu", used.as_secs_f64() * 1e9 / accepted.max(1) as f64);
        }
        for (measure, packets) in [
            ("lost", accepted.saturating_sub(counts.delivered)),
            ("sent", accepted),
            ("received", counts.delivered),
            ("dropped", dropped),
            ("stack", stack),
            ("refused", refused),
        ] {
            taken.add(turn, measure, packets as f64);
        }
        Ok(taken)
    }

    /// The published gains: with one queue, over libpcap without PF_RING.
    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let gain = |ours: &str, published: f64| {
            let ratios = outcome.ratios([ours, "libpcap"], "rate", Some(1.0));
            let title = self.readers.iter().find(|reader| reader.name == ours).map(|reader| reader.title);
            let name = format!("{} / libpcap, one queue", title.unwrap_or(ours));
            Judged::new(&name, Wanted::AtLeast(published), "times", ratios)
        };
        // Published: 661, 762, 757, 843, 730 and 830 Kpps over 544.
        vec![
            gain("waiting-0", 1.22),
            gain("waiting-2", 1.4),
            gain("active-0", 1.39),
            gain("active-2", 1.55),
            gain("library-0", 1.34),
            gain("library-2", 1.53),
        ]
    }
}

const METHOD: &str = "\
Frames of 60 bytes come at full rate, and a program counts them: on weir's ring, by libpcap's functions on weir's library, \
and by the same C program on the system's libpcap. weir's counter also reads all bytes, the C program the number of the frame. Mode 0 is the kernel's standard path, with the packet taken where the stack \
begins (tc). In mode 1 it is taken in the driver, and the stack gets it, too (xdp). In mode 2 the stack gets nothing (xdp, \
exclusive). A counter either waits actively, which takes a processor all the time, or sleeps while nothing comes. NAPI runs \
on the processor that sends or, as in TNAPI, in threads of the kernel, a thread for each queue. What was sent has to be what \
the counter got and what it says it has lost, and the stack has to get all of it, or nothing.";

const DIFFERS: [&str; 5] = [
    "Frames come from a veth pair as fast as a processor makes them; no wire of 1.48 Mpps limits the rate.",
    "The sender needs a processor, too. With two queues both processors send, and the counter shares one of them.",
    "PF_RING is not part of a stock kernel. weir replaces the ring, and each of its sources one mode.",
    "Threaded NAPI of Linux stands for TNAPI; the scheduler chooses where the threads run.",
    "The article gives one figure for pcount on TNAPI, and not its mode.",
];

/// Thousands of packets a second: counter, queues, and modes 0, 1 and 2.
const PUBLISHED: [(&str, u32, &[f64]); 12] = [
    ("pfcount -a, e1000e", 1, &[757.0, 795.0, 843.0]),
    ("pfcount, e1000e", 1, &[661.0, 700.0, 762.0]),
    ("pcount on PF_RING, e1000e", 1, &[730.0, 763.0, 830.0]),
    ("pcount without PF_RING, e1000e", 1, &[544.0]),
    ("pfcount -a, igb", 1, &[650.0, 686.0, 761.0]),
    ("pfcount, igb", 1, &[586.0, 613.0, 672.0]),
    ("pcount on PF_RING, igb", 1, &[613.0, 644.0, 711.0]),
    ("pfcount -a, igb", 2, &[600.0, 621.0, 673.0]),
    ("pfcount, igb", 2, &[534.0, 562.0, 609.0]),
    ("pcount on PF_RING, igb", 2, &[566.0, 591.0, 654.0]),
    ("pfcount -a, igb with TNAPI", 2, &[261.0, 267.0, 269.0]),
    ("pfcount, igb with TNAPI", 2, &[1130.0, 1130.0, 1460.0]),
];

fn published() -> Vec<Published> {
    let rows = PUBLISHED.iter().flat_map(|&(series, queues, rates)| {
        rates
            .iter()
            .enumerate()
            .map(move |(mode, rate)| (format!("{series}, mode {mode}"), queues, rate / 1e3))
    });
    let unclear = ("pcount, igb with TNAPI, mode unclear".to_owned(), 2, 1.48);
    rows.chain([unclear])
        .map(|(series, queues, value)| Published::new(series, "rate", Some(f64::from(queues)), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_table_is_whole() {
        let published = published();
        assert_eq!(published.len(), 11 * 3 + 2);
        let of = |series: &str| published.iter().find(|row| row.series == series).map(|row| row.value);
        assert_eq!(of("pcount without PF_RING, e1000e, mode 0"), Some(0.544));
        assert_eq!(of("pfcount, igb with TNAPI, mode 2"), Some(1.46));
    }
}
