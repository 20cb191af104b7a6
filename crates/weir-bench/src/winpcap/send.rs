//! How fast packets of 88 to 1514 bytes are sent.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use weir_lab::{Action, Hook, Network, Veth};

use super::DIFFERS;
use crate::experiment::{About, Axis, Better, Experiment, Measure, Role, Series, Settings, Taken, Turn};
use crate::failed;
use crate::failure::Failure;
use crate::libpcap::both::{Both, Library, PACKET, SYSTEM};
use crate::libpcap::counter::compile_source;
use crate::sample::GENERATOR_CPU;
use crate::send::{Contestant as Sender, Lab, PATIENCE, SendLimits, watched};

/// Bytes of a frame. The study's sender was fastest with the first.
const SIZES: [u64; 5] = [88, 200, 400, 800, 1514];
const QUICK: [u64; 2] = [88, 1514];

const SOURCE: &str = include_str!("inject.c");
const NAME: &str = "inject";

/// Who sends.
struct Contestant {
    name: &'static str,
    title: &'static str,
    role: Role,
    kind: SenderKind,
}

enum SenderKind {
    /// A contestant of `weir-bench send`.
    Sender(Sender),
    /// The C program: one call of a function per packet, on a library.
    Call(&'static str, &'static Library),
}

const ALL: [Contestant; 8] = {
    const fn row(name: &'static str, title: &'static str, role: Role, kind: SenderKind) -> Contestant {
        Contestant { name, title, role, kind }
    }
    [
        row("limit", "live frames, bare loop: the limit", Role::Limit, SenderKind::Sender(Sender::Bare)),
        row("weir-live", "weir, live frames", Role::Ours, SenderKind::Sender(Sender::Live)),
        row("weir-ring", "weir, ring", Role::Ours, SenderKind::Sender(Sender::Ring)),
        row("weir-sendmmsg", "weir, sendmmsg", Role::Ours, SenderKind::Sender(Sender::Plain)),
        row("weir-inject", "pcap_inject on weir", Role::Ours, SenderKind::Call("pcap", &PACKET)),
        row("libpcap-inject", "pcap_inject on libpcap", Role::Peer, SenderKind::Call("pcap", &SYSTEM)),
        row("sendto", "sendto", Role::Peer, SenderKind::Call("sendto", &SYSTEM)),
        row("tcpreplay", "tcpreplay --topspeed", Role::Peer, SenderKind::Sender(Sender::Tcpreplay)),
    ]
};

const VERSUS: [[&str; 2]; 4] = [
    ["weir-inject", "libpcap-inject"],
    ["weir-sendmmsg", "tcpreplay"],
    ["weir-ring", "tcpreplay"],
    ["weir-sendmmsg", "sendto"],
];

struct Send {
    network: Network,
    sizes: &'static [u64],
    time: Duration,
    quick: bool,
    /// Both libraries, and the C program in their folder; or why there are none.
    calls: Result<(Both, PathBuf), String>,
}

/// The output of the C program.
#[derive(Debug, Deserialize)]
struct Injected {
    sent: u64,
    failed: u64,
}

/// Compiles the C program and makes the network.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let network = settings.network("winpcap-send", Veth::default())?;
    let compile = || {
        let both = Both::find(None)?;
        let program = compile_source(both.dir(), NAME, SOURCE)?;
        // Checks that each library is the intended one.
        both.versions(&program, "version")?;
        Ok((both, program))
    };
    let calls = compile().map_err(|failure: Failure| failure.message().to_owned());
    let time = settings.time(500).max(Duration::from_millis(50));
    let sizes: &[u64] = if settings.quick { &QUICK } else { &SIZES };
    Ok(Box::new(Send { network, sizes, time, quick: settings.quick, calls }))
}

impl Send {
    fn missing(&self, contestant: &Contestant) -> Option<String> {
        match contestant.kind {
            SenderKind::Sender(sender) => sender.missing(),
            SenderKind::Call(..) => self.calls.as_ref().err().cloned(),
        }
    }

    /// Runs the C program. Returns packets sent, packets arrived, and arrivals per second.
    fn call(&self, lab: &Lab<'_>, function: &str, library: &Library) -> Result<(u64, u64, f64), Failure> {
        let (both, program) = self.calls.as_ref().expect("turns are of those who are present");
        let file = lab.file("frame");
        fs::write(&file, lab.frame()).map_err(failed("write a frame"))?;
        let mut command = Command::new("taskset");
        command.args(["-c", &GENERATOR_CPU.to_string()]).arg(program).args([function, "tx0"]).arg(file);
        command.arg(self.time.as_millis().to_string()).envs(both.environment(library));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let hook = Hook::attach(&self.network.pair().rx, Action::Drop).map_err(failed("count packets"))?;
        let (sent, rate) = watched(&hook, || {
            let output = self.network.tx().run(|| command.output()).map_err(failed("run inject"))?;
            let said = String::from_utf8_lossy(&output.stdout);
            match serde_json::from_str(&said) {
                Ok(Injected { sent, failed: 0 }) if output.status.success() => Ok(sent),
                _ => {
                    let why = String::from_utf8_lossy(&output.stderr);
                    Err(Failure::new(format_args!("inject ended ({}): {said}{why}", output.status)))
                }
            }
        })?;
        Ok((sent, hook.wait_for(sent, PATIENCE), rate))
    }
}

impl Experiment for Send {
    fn about(&self) -> About {
        let series = ALL.iter().map(|contestant| Series {
            name: contestant.name.to_owned(),
            title: contestant.title.to_owned(),
            role: contestant.role,
        });
        let missing = ALL
            .iter()
            .filter_map(|contestant| Some([contestant.title.to_owned(), self.missing(contestant)?]));
        About {
            name: "winpcap-send".to_owned(),
            title: "Packets sent, by size (WinPcap)".to_owned(),
            method: "One processor sends as fast as it can; at the other end of the pair an XDP program counts packets and drops \
                     them. All packets sent must arrive. The rate is that of arrivals. sendto and pcap_inject send one packet per \
                     call; weir and tcpreplay may send several."
                .to_owned(),
            differs: vec![
                DIFFERS.to_owned(),
                "On a wire the rate falls with the size and, above some size, is the wire's. Here it is the \
                 processor's for any size."
                    .to_owned(),
            ],
            axis: Some(Axis::frame()),
            measures: vec![
                Measure::new("rate", "packets that arrived", "Mpps", Better::Higher),
                Measure::new("bits", "bits of frames that arrived", "Gbit/s", Better::Higher),
                Measure::new("sent", "packets sent", "packets", Better::Neither),
                Measure::new("arrived", "packets that arrived", "packets", Better::Neither),
            ],
            series: series.collect(),
            missing: missing.collect(),
            versus: VERSUS.map(|pair| pair.map(str::to_owned)).to_vec(),
            published: Vec::new(),
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let present: Vec<_> = ALL.iter().filter(|contestant| self.missing(contestant).is_none()).collect();
        let of = |size: &u64| {
            let size = *size;
            present.iter().map(move |contestant| Turn::of(contestant.name, Some(size))).collect::<Vec<_>>()
        };
        self.sizes.iter().flat_map(of).collect()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let contestant = ALL.iter().find(|contestant| contestant.name == turn.series);
        let size = u16::try_from(turn.at.expect("turns have a size")).expect("frames are short");
        let lab = Lab::new(&self.network, size)?;
        let (sent, arrived, rate) = match contestant.expect("turns are of contestants").kind {
            SenderKind::Sender(sender) => {
                let limits = SendLimits { duration: self.time, quick: self.quick };
                let sample = lab.sample(sender, limits)?;
                (sample.sent, sample.arrived, sample.rate)
            }
            SenderKind::Call(function, library) => self.call(&lab, function, library)?,
        };
        let mut taken = Taken::default();
        taken.add(turn, "rate", rate / 1e6);
        taken.add(turn, "bits", rate * f64::from(size) * 8.0 / 1e9);
        taken.add(turn, "sent", sent as f64);
        taken.add(turn, "arrived", arrived as f64);
        if sent != arrived {
            taken.problems.push(format!("{sent} packets sent, {arrived} arrived"));
        }
        Ok(taken)
    }
}
