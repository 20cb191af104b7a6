//! `weir-bench rules-changes`: exact rules are added and removed while packets are dropped at full rate, and each packet has to be
//! counted once.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weir::guard::{ExactFlow, ExactRule, Fate, Reading, Rules};
use weir::{Direction, Filter, Guard, SourceChoice};
use weir_lab::{Generator, Network, SendReport, Traffic, Veth};

use super::FLOWS;
use crate::experiment::{About, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::files::SIZE;
use crate::process::pin;
use crate::program::READER_CPU;
use crate::sample::GENERATOR_CPU;
use crate::wanted::Wanted;

const ALONE: &str = "no changes";
const CHANGING: &str = "10,000 changes a second";
/// How many that is.
const CHANGES: f64 = 10_000.0;
/// Rules in force: of half of the flows.
const IN_FORCE: usize = FLOWS as usize / 2;

const RATE: &str = "rate";
const DONE: &str = "changes";
const LOST: &str = "lost";
const TWICE: &str = "twice";

struct Changes {
    network: Network,
    traffic: Traffic,
    flows: Vec<ExactFlow>,
    time: Duration,
}

/// Makes the network.
pub(in super::super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let network = settings.network("rules-changes", Veth::default())?;
    let traffic = Traffic::new(SIZE as usize).and_then(|traffic| traffic.flows(FLOWS));
    let traffic = traffic.map_err(failed("describe frames"))?.between(network.pair());
    let flows = traffic.frames(0..FLOWS.into()).iter().map(|frame| flow(frame)).collect();
    let traffic = traffic.scattered();
    Ok(Box::new(Changes { network, traffic, flows, time: settings.time(60_000) }))
}

/// The flow of a frame of the lab: UDP over IPv4 without options.
fn flow(frame: &[u8]) -> ExactFlow {
    let end = |address: usize, port: usize| {
        let address: [u8; 4] = std::array::from_fn(|byte| frame[address + byte]);
        SocketAddr::from((Ipv4Addr::from(address), u16::from_be_bytes([frame[port], frame[port + 1]])))
    };
    ExactFlow::new(17, end(26, 34), end(30, 36))
}

impl Experiment for Changes {
    fn about(&self) -> About {
        About {
            name: "rules-changes".to_owned(),
            title: "Exact rules that change at full rate".to_owned(),
            method: "Frames of 10,000 flows, in random order, are blocked by native XDP: by a rule for all of them, or by one of 5,000 exact \
                     rules. Meanwhile a thread on the other processor removes the oldest exact rule and adds one for another flow. In the \
                     end each frame that the interface has accepted has to be in one count."
                .to_owned(),
            measures: vec![
                Measure::higher(RATE, "packets blocked", "Mpps"),
                Measure::higher(DONE, "changes", "a second"),
                Measure::lower(LOST, "packets in no count", "packets"),
                Measure::lower(TWICE, "packets in two counts", "packets"),
            ],
            series: [ALONE, CHANGING].map(|name| Series::new(name, name, Role::Ours)).to_vec(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        [ALONE, CHANGING].map(|series| Turn::of(series, None)).to_vec()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let mut guard = self.guard()?;
        let mut in_force: VecDeque<ExactFlow> = self.flows[..IN_FORCE].iter().copied().collect();
        in_force.iter().try_for_each(|&flow| add(&mut guard, flow))?;
        let over = AtomicBool::new(false);
        let (sent, done) = thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let sent = self.send();
                over.store(true, Ordering::Release);
                sent
            });
            let done = match turn.series == CHANGING {
                true => self.change(&mut guard, &mut in_force, &over),
                false => Ok(0),
            };
            let sent = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok::<_, Failure>((sent?, done?))
        })?;
        guard.stop().map_err(failed("stop the guard"))?;
        let reading = guard.read().map_err(failed("read the guard's counters"))?;
        Ok(taken(turn, &sent, done, &reading))
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let of = |measure| outcome.values_of(CHANGING, measure, None);
        vec![
            // What a sleep is late by is made up for, but for the last one.
            Judged::new("changes", Wanted::AtLeast(0.99 * CHANGES), "a second", of(DONE)),
            Judged::worst("packets in no count", 0.0, "packets", of(LOST)),
            Judged::worst("packets in two counts", 0.0, "packets", of(TWICE)),
        ]
    }
}

impl Changes {
    fn guard(&self) -> Result<Guard, Failure> {
        let rules = Rules::new().rule("all", Filter::new("udp"), Fate::Block);
        let builder = Guard::on(&self.network.pair().rx.name).source(SourceChoice::Xdp);
        let builder = builder.direction(Direction::In).exact(FLOWS).rules(rules);
        self.network.rx().run(|| builder.start()).map_err(failed("start a guard"))
    }

    fn send(&self) -> Result<SendReport, Failure> {
        let generator = Generator::new(self.network.pair(), &self.traffic).map_err(failed("make frames"))?;
        generator.cpu(GENERATOR_CPU).send_for(self.time).map_err(failed("send frames"))
    }

    /// Changes rules until all is sent; returns how many times.
    fn change(
        &self,
        guard: &mut Guard,
        in_force: &mut VecDeque<ExactFlow>,
        over: &AtomicBool,
    ) -> Result<u64, Failure> {
        const STEP: Duration = Duration::from_millis(1);
        pin(READER_CPU)?;
        let (began, mut done, mut next) = (Instant::now(), 0_u64, IN_FORCE);
        while !over.load(Ordering::Acquire) {
            while (done as f64) < CHANGES * began.elapsed().as_secs_f64() && !over.load(Ordering::Acquire) {
                if let Some(oldest) = in_force.pop_front() {
                    guard.remove_exact(&oldest).map_err(failed("remove an exact rule"))?;
                }
                let flow = self.flows[next % self.flows.len()];
                add(guard, flow)?;
                in_force.push_back(flow);
                next += 1;
                done += 2;
            }
            thread::sleep(STEP);
        }
        Ok(done)
    }
}

fn add(guard: &mut Guard, flow: ExactFlow) -> Result<(), Failure> {
    guard.add_exact(&ExactRule::new(flow, Fate::Block, None)).map_err(failed("add an exact rule"))
}

/// The values, and what is wrong with them.
fn taken(turn: &Turn, sent: &SendReport, done: u64, reading: &Reading) -> Taken {
    let (all, seconds) = (reading.total(), sent.elapsed.as_secs_f64());
    let mut taken = Taken::default();
    taken.add(turn, RATE, all.packets as f64 / seconds / 1e6);
    taken.add(turn, DONE, done as f64 / seconds);
    taken.add(turn, LOST, sent.accepted.saturating_sub(all.packets) as f64);
    taken.add(turn, TWICE, all.packets.saturating_sub(sent.accepted) as f64);
    if all.packets != sent.accepted || all.bytes != sent.accepted * u64::from(SIZE) {
        taken.problems.push(format!(
            "{} of {} packets are counted, with {} bytes",
            all.packets, sent.accepted, all.bytes
        ));
    }
    // By the rule for all, by exact rules, or by both alike.
    let by = [reading.rules[0].count.packets, reading.exact.packets];
    if by.contains(&0) {
        taken.problems.push(format!("{by:?} packets by the rule for all and by exact ones"));
    }
    taken
}
