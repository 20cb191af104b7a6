//! How long it takes to exchange the filter of a capture at full rate, and that no packet is lost or doubled meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use weir::filter::{Exchange, Place};
use weir::{Capture, Error, Filter, SourceChoice};
use weir_lab::{Generator, Network, SequenceCheck, Traffic, Veth};

use super::FilterArgs;
use crate::bench::bars::{Bar, Wanted};
use crate::bench::spread::Spread;
use crate::failure::Failure;
use crate::style;

/// Both want all of the traffic: what is missing was lost in an exchange.
const TEXTS: [&str; 2] = ["udp", "ip and not tcp port 443"];
/// Between two exchanges.
const PAUSE: Duration = Duration::from_millis(1);

/// One exchange. Times in microseconds.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    source: &'static str,
    /// To compile and load the filter.
    made: f64,
    /// From then on until it is in force.
    put: f64,
}

/// All exchanges; empty without the privilege to make a network.
pub(super) fn measure(args: &FilterArgs) -> Result<Vec<Sample>, Failure> {
    let frames = if args.quick { 100_000 } else { 400_000 };
    let mut samples = Vec::new();
    for (name, source) in [("tc", SourceChoice::Tc), ("xdp", SourceChoice::Xdp)] {
        let network = match Network::new(Veth::default()) {
            Ok(network) => network,
            Err(error) => {
                style::say(format_args!("exchange: {}", style::stderr().yellow(error)));
                return Ok(samples);
            }
        };
        let traffic = Traffic::new(60).map_err(Failure::new)?.between(network.pair());
        let generator = Generator::new(network.pair(), &traffic).map_err(Failure::new)?.cpu(1);
        let found = network.rx().run(|| under_load(source, name, generator, &traffic, frames))?;
        samples.extend(found);
    }
    Ok(samples)
}

/// Exchanges the filter of a capture for as long as `frames` frames are sent.
fn under_load(
    source: SourceChoice,
    name: &'static str,
    mut generator: Generator,
    traffic: &Traffic,
    frames: u64,
) -> Result<Vec<Sample>, Failure> {
    let builder = Capture::builder().interface("rx0").source(source).filter(Filter::new(TEXTS[0]));
    let mut capture = builder.open()?;
    let (exchange, done) = (capture.exchange(), AtomicBool::new(false));
    let mut check = SequenceCheck::new(traffic, 0..frames);
    let samples = thread::scope(|scope| {
        let changing = scope.spawn(|| change(&exchange, name, &done));
        let sending = scope.spawn(move || generator.send(frames));
        let taken = take(&mut capture, || sending.is_finished(), &mut check);
        done.store(true, Ordering::Relaxed);
        let sent = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let samples = changing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent.map_err(Failure::new)?;
        taken?;
        Ok::<_, Failure>(samples?)
    })?;
    capture.stop()?;
    take(&mut capture, || true, &mut check)?;
    let (report, total) = (check.finish().total, capture.account()?.total());
    style::say(format_args!(
        "exchange, {name}: {} times while {frames} packets came: {} missing, {} doubled, {} lost by the pool",
        samples.len(),
        report.lost,
        report.duplicated,
        total.lost
    ));
    if report.duplicated > 0 || report.lost != total.lost {
        return Err(Failure::new("packets were lost or doubled when the filter was exchanged"));
    }
    Ok(samples)
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

fn change(exchange: &Exchange, source: &'static str, done: &AtomicBool) -> Result<Vec<Sample>, Error> {
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
        samples.push(Sample { source, made: microseconds(made), put: microseconds(put) });
        thread::sleep(PAUSE);
    }
    Ok(samples)
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub(super) fn bars(samples: &[Sample]) -> [Bar; 2] {
    let wanted = Wanted::AtMost(1000.0);
    [
        Bar::new(
            "exchange: in force",
            None,
            wanted,
            "us",
            Spread::of(samples.iter().map(|sample| sample.put)),
        ),
        Bar::new(
            "exchange: compiled, loaded and in force",
            None,
            wanted,
            "us",
            Spread::of(samples.iter().map(|sample| sample.made + sample.put)),
        ),
    ]
}
