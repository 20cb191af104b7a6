//! How long it takes to exchange the filter of a capture, by this process at full rate and by `weir ctl`; and that no packet
//! is lost or doubled by it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use weir::filter::{Exchange, Place};
use weir::{Capture, Error, Filter, SourceChoice};
use weir_lab::{Generator, Network, SequenceCheck, Traffic, Veth};

use super::FilterArgs;
use super::ctl::{self, Ctl};
use crate::bench::bars::{Bar, Wanted};
use crate::bench::spread::Spread;
use crate::failure::Failure;
use crate::style;

/// Both want all of the traffic: what is missing was lost in an exchange.
const TEXTS: [&str; 2] = ["udp", "ip and not tcp port 443"];
/// Between two exchanges.
const PAUSE: Duration = Duration::from_millis(1);

/// All exchanges.
#[derive(Debug, Default, Serialize)]
pub(super) struct Exchanges {
    runs: Vec<Run>,
    ctl: Vec<Ctl>,
}

/// One capture at full rate.
#[derive(Debug, Serialize)]
struct Run {
    source: &'static str,
    frames: u64,
    /// Frames a second.
    rate: f64,
    exchanges: Vec<Sample>,
    /// Frames that found no room in the pool, and are told to be lost.
    lost_by_pool: u64,
    /// Frames that are missing without being told, or are told lost and came.
    lost: u64,
    doubled: u64,
}

/// One exchange by this process. Times in microseconds.
#[derive(Debug, Serialize)]
struct Sample {
    /// To compile and load the filter.
    made: f64,
    /// From then on until it is in force.
    put: f64,
}

/// Nothing without the privilege to make a network.
pub(super) fn measure(args: &FilterArgs) -> Result<Exchanges, Failure> {
    let frames = if args.quick { 100_000 } else { 400_000 };
    let mut exchanges = Exchanges::default();
    for (name, source) in [("tc", SourceChoice::Tc), ("xdp", SourceChoice::Xdp)] {
        let network = match Network::new(Veth::default()) {
            Ok(network) => network,
            Err(error) => {
                style::say(format_args!("exchange: {}", style::stderr().yellow(error)));
                return Ok(exchanges);
            }
        };
        let traffic = Traffic::new(60).map_err(Failure::new)?.between(network.pair());
        let generator = Generator::new(network.pair(), &traffic).map_err(Failure::new)?.cpu(1);
        let run = network.rx().run(|| under_load(source, name, generator, &traffic, frames))?;
        exchanges.runs.push(run);
        exchanges.ctl.extend(ctl::measure(&network, name, if args.quick { 2 } else { 20 })?);
    }
    Ok(exchanges)
}

/// Exchanges the filter of a capture for as long as `frames` frames are sent.
fn under_load(
    source: SourceChoice,
    name: &'static str,
    mut generator: Generator,
    traffic: &Traffic,
    frames: u64,
) -> Result<Run, Failure> {
    let builder = Capture::builder().interface("rx0").source(source).filter(Filter::new(TEXTS[0]));
    let mut capture = builder.open()?;
    let (exchange, done) = (capture.exchange(), AtomicBool::new(false));
    let mut check = SequenceCheck::new(traffic, 0..frames);
    let (exchanges, sent) = thread::scope(|scope| {
        let changing = scope.spawn(|| change(&exchange, &done));
        let sending = scope.spawn(move || generator.send(frames));
        let taken = take(&mut capture, || sending.is_finished(), &mut check);
        done.store(true, Ordering::Relaxed);
        let sent = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let exchanges = changing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        taken?;
        Ok::<_, Failure>((exchanges?, sent.map_err(Failure::new)?))
    })?;
    capture.stop()?;
    take(&mut capture, || true, &mut check)?;
    let (report, total) = (check.finish().total, capture.account()?.total());
    let run = Run {
        source: name,
        frames,
        rate: sent.accepted as f64 / sent.elapsed.as_secs_f64(),
        exchanges,
        lost_by_pool: total.lost,
        lost: report.lost.abs_diff(total.lost + sent.refused),
        doubled: report.duplicated,
    };
    style::say(format_args!(
        "exchange, {name}: {} times while {frames} packets came, {:.2} million a second: {} lost, {} doubled; {} found no room",
        run.exchanges.len(),
        run.rate / 1e6,
        run.lost,
        run.doubled,
        run.lost_by_pool
    ));
    Ok(run)
}

/// Takes packets until `ended`, and then what is left.
fn take(capture: &mut Capture, ended: impl Fn() -> bool, check: &mut SequenceCheck) -> Result<(), Failure> {
    loop {
        match capture.next(Duration::from_millis(20))? {
            Some(chunk) => chunk.packets().for_each(|packet| check.frame(packet.data)),
            None if ended() => return Ok(()),
            None => {}
        }
    }
}

fn change(exchange: &Exchange, done: &AtomicBool) -> Result<Vec<Sample>, Error> {
    let filters = TEXTS.map(Filter::new);
    let mut samples = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let filter = &filters[(samples.len() + 1) % 2];
        let begun = Instant::now();
        let make = |place: Place| place.make(Some(filter));
        let programs = exchange.places()?.into_iter().map(make).collect::<Result<Vec<_>, Error>>()?;
        let made = begun.elapsed();
        exchange.put(&programs)?;
        let put = begun.elapsed() - made;
        samples.push(Sample { made: microseconds(made), put: microseconds(put) });
        thread::sleep(PAUSE);
    }
    Ok(samples)
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

impl Exchanges {
    pub(super) fn bars(&self) -> [Bar; 4] {
        let samples = || self.runs.iter().flat_map(|run| &run.exchanges);
        let time = |name, times| Bar::new(name, None, Wanted::AtMost(1000.0), "us", times);
        let wrong = self.runs.iter().map(|run| (run.lost + run.doubled) as f64);
        [
            time("exchange: in force", Spread::of(samples().map(|sample| sample.put))),
            time(
                "exchange: compiled, loaded and in force",
                Spread::of(samples().map(|sample| sample.made + sample.put)),
            ),
            time("exchange: all of `weir ctl filter`", Spread::of(self.ctl.iter().map(|ctl| ctl.process))),
            Bar::worst("exchange at full rate: lost or doubled", None, 0.0, "packets", Spread::of(wrong)),
        ]
    }

    /// Captures in which an exchange lost or doubled a packet.
    pub(super) fn wrong(&self) -> usize {
        self.runs.iter().filter(|run| run.lost + run.doubled > 0).count()
    }
}
