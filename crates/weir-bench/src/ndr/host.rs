//! The highest rate without loss beside a busy host: the packets are for an application of the captured host, which
//! reads each of them from a UDP socket. It competes with the capture for the processors, as the network stack does.

use weir_lab::{Network, Port, StackCounters, Traffic, UdpSink, Veth};

use super::contestant::{self, Contestant, To};
use super::search::{LEAST_BEHIND, Sending, duration, measures, search, steps, trial};
use crate::experiment::{About, Axis, Experiment, Measure, Role, Series, Settings, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::peers;
use crate::sample::QUEUES;

const SIZES: [u64; 2] = [60, 1514];
/// Where the application listens.
const PORT: u16 = 4000;
/// What is added to the name of a series whose host works.
const BESIDE: &str = "-beside";

fn contestants() -> Vec<Contestant> {
    let weir = |name, title, source| Contestant::weir(name, title, To::Nowhere, &["--source", source]);
    let peer = |name, title, program| Contestant::peer(name, title, To::Nowhere, program);
    vec![
        weir("weir-xdp", "weir xdp", "xdp"),
        weir("weir-tc", "weir tc", "tc"),
        weir("weir-af-packet", "weir af_packet", "af_packet"),
        peer("tcpdump", "tcpdump", peers::tcpdump_with("65536", "/dev/null")),
        peer("netsniff-ng", "netsniff-ng", peers::netsniff_ng_with("64MiB")),
    ]
}

struct Host {
    network: Network,
    contestants: Vec<Contestant>,
    sizes: &'static [u64],
    steps: u32,
    duration: std::time::Duration,
}

/// Makes the network.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    // Frames that are not for this host have other addresses than the ends of the pair.
    let ends = Veth::default().queues(QUEUES).ipv4().macs([2, 0x77, 1, 0, 0, 1], [2, 0x77, 1, 0, 0, 2]);
    Ok(Box::new(Host {
        network: settings.network("ndr-host", ends)?,
        contestants: contestants(),
        sizes: if settings.quick { &SIZES[..1] } else { &SIZES },
        steps: steps(settings),
        duration: duration(settings) / if settings.quick { 1 } else { 2 },
    }))
}

impl Host {
    /// Every contestant that is there, alone and beside a busy host.
    fn present(&self) -> impl Iterator<Item = (&Contestant, bool)> {
        let present = self.contestants.iter().filter(|contestant| contestant.is_present());
        present.flat_map(|contestant| [(contestant, false), (contestant, true)])
    }
}

fn series(contestant: &Contestant, beside: bool) -> String {
    contestant.name.to_owned() + if beside { BESIDE } else { "" }
}

impl Experiment for Host {
    fn about(&self) -> About {
        let both = self.contestants.iter().flat_map(|contestant| [(contestant, false), (contestant, true)]);
        let of = |(contestant, beside): (&Contestant, bool)| Series {
            name: series(contestant, beside),
            title: contestant.title.to_owned() + if beside { ", beside a busy host" } else { ", alone" },
            ..contestant.series()
        };
        let ours = self.contestants.iter().filter(|contestant| contestant.role == Role::Ours);
        let versus = ours.flat_map(|contestant| {
            [false, true].map(|beside| {
                [series(contestant, beside), "tcpdump".to_owned() + if beside { BESIDE } else { "" }]
            })
        });
        About {
            name: "ndr-host".to_owned(),
            title: "The highest rate without loss beside a busy host".to_owned(),
            method: format!(
                "Trials of {} ms as in ndr, to /dev/null, with 64 MiB for packets. Alone: the packets are for others, and the \
                 stack drops them at once. Beside a host: they are for an application of this host, which reads each from a \
                 UDP socket in one thread of its own. It runs on whatever processor the kernel gives it, and may lose what it is \
                 too slow for: only the capture has to get every packet, and to be done within {} ms.",
                self.duration.as_millis(),
                LEAST_BEHIND.as_millis()
            ),
            differs: vec!["RFC 2544 has no host: its device only forwards.".to_owned()],
            axis: Some(Axis::frame()),
            measures: [
                measures(),
                vec![Measure::fact("served", "packets that the application read at that rate", "%")],
            ]
            .concat(),
            series: both.map(of).collect(),
            missing: contestant::missing(&self.contestants),
            versus: versus.collect(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let present = self.present().map(|(contestant, beside)| series(contestant, beside));
        Turn::each(self.sizes.iter().copied(), present)
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let named = |(contestant, beside): &(&Contestant, bool)| series(contestant, *beside) == turn.series;
        let (contestant, beside) = self.present().find(named).expect("turns are of contestants");
        let pair = self.network.pair();
        let size = usize::try_from(turn.at.unwrap_or_default()).unwrap_or_default();
        let mut traffic = Traffic::new(size).map_err(failed("describe frames"))?;
        if beside {
            traffic = traffic.between(pair).to(pair.rx.ipv4.expect("the pair has addresses"), PORT);
        }
        let (mut problems, mut served) = (Vec::new(), None);
        let found = search(self.steps, |rate| {
            let application = beside.then(|| Application::start(&pair.rx)).transpose()?;
            let reader = contestant.program.start(&pair.rx, None)?;
            let sending = Sending { rate, duration: self.duration, most: f64::MAX };
            let trial = trial(pair, reader, &traffic, &sending, &mut problems)?;
            let read = application.map(|application| application.end(trial.accepted, &mut problems));
            if trial.kept_up {
                served = read.transpose()?.map(|read| 100.0 * read as f64 / trial.accepted.max(1) as f64);
            }
            Ok(trial)
        })?;
        let mut taken = Taken { problems, ..Taken::default() };
        found.add_to(&mut taken, turn);
        if let Some(served) = served {
            taken.add(turn, "served", served);
        }
        Ok(taken)
    }
}

/// What the host runs for its users.
struct Application<'a> {
    port: &'a Port,
    sink: UdpSink,
    /// Datagrams that sockets had no room for, before it began.
    refused: u64,
}

impl<'a> Application<'a> {
    fn start(port: &'a Port) -> Result<Self, Failure> {
        let refused = refused(port)?;
        let sink = UdpSink::start(port, PORT, |_, _| {}).map_err(failed("start an application"))?;
        Ok(Self { port, sink, refused })
    }

    /// Gives the datagrams that it has read. What it has not read, its socket had no room for.
    fn end(self, accepted: u64, problems: &mut Vec<String>) -> Result<u64, Failure> {
        let read = self.sink.stop();
        let refused = refused(self.port)? - self.refused;
        if read + refused != accepted {
            problems
                .push(format!("of {accepted} packets the host's application read {read} and lost {refused}"));
        }
        Ok(read)
    }
}

fn refused(port: &Port) -> Result<u64, Failure> {
    let counters = StackCounters::read(&port.netns).map_err(failed("read the stack's counters"))?;
    Ok(counters.get("UdpInErrors"))
}
