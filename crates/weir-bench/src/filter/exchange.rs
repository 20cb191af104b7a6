//! How long it takes to exchange the filter of a capture, by this process at full rate and by `weir ctl`; and that no packet
//! is lost or doubled by it.
//!
//! Packets show when a filter is in force: two filters with opposite answers replace each other, and the first packet that only the
//! new one wants has a timestamp. The call that puts it in place may return later.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir::filter_control::FilterControl;
use weir::parts::FilterSlot;
use weir::{Capture, CaptureStats, Error, Filter, Packet, SourceChoice};
use weir_lab::{Generator, Network, SendReport, SequenceCheck, Traffic, Veth};

use super::ctl;
use crate::experiment::{self, Judged, Outcome, Taken};
use crate::failure::Failure;
use crate::process::thread_time;
use crate::spread::Spread;
use crate::wanted::Wanted;

/// Both want all of the traffic: what is missing was lost in an exchange.
const SAME: [&str; 2] = ["udp", "ip and not tcp port 443"];
/// Each wants the frames with a number that the other does not want: even ones, and odd ones.
const TURNS: [&str; 2] = ["ether[51] & 1 = 0", "ether[51] & 1 = 1"];
/// Where the last byte of a frame's number is, as in [`TURNS`].
const NUMBER: usize = 51;
/// Between two exchanges. The clock of packets and that of this process differ by much less.
const PAUSE: Duration = Duration::from_millis(1);

/// Captures by these sources.
pub(super) const SOURCES: [(&str, SourceChoice); 2] =
    [("exchange, tc", SourceChoice::Tc), ("exchange, xdp", SourceChoice::Xdp)];

/// Captures at full rate by one source.
struct Run {
    exchanges: Vec<Sample>,
    /// Frames that found no room in the pool, and are told to be lost.
    lost_by_pool: u64,
    /// Frames that are missing but not reported as lost, or reported and received.
    lost: u64,
    doubled: u64,
    /// Frames that came behind the first that met a newer filter, and met the one before.
    late: u64,
}

/// One exchange by this process. Times in microseconds.
#[derive(Debug)]
struct Sample {
    /// Since the Unix epoch, in nanoseconds: when the program was made, and was put in place.
    begun: u64,
    /// To compile it and to load it.
    made: f64,
    /// To put it in place, by the call's return.
    put: f64,
    /// The same until a packet has met it, where packets can tell.
    met: Option<f64>,
    /// From the call's return until no packet is in the program before.
    settled: f64,
    /// Processor time to make it and to put it in place.
    busy: f64,
}

/// By this process, and by `weir ctl`.
pub(super) fn measure(source: SourceChoice, quick: bool, turn: &experiment::Turn) -> Result<Taken, Failure> {
    let frames = if quick { 100_000 } else { 400_000 };
    let network = Network::new(Veth::default()).map_err(Failure::new)?;
    let traffic = Traffic::new(60).map_err(Failure::new)?.between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).map_err(Failure::new)?.cpu(1);
    let run = network.rx().run(|| by_one(source, &mut generator, &traffic, frames))?;
    let name = if matches!(source, SourceChoice::Tc) { "tc" } else { "xdp" };
    let process = ctl::measure(&network, name, if quick { 2 } else { 20 })?;
    let mut taken = Taken::default();
    let Run { lost, doubled, late, .. } = run;
    let median = |time: fn(&Sample) -> Option<f64>| {
        Spread::of(run.exchanges.iter().filter_map(time)).map(|spread| spread.median)
    };
    for (measure, value) in [
        ("first_packet", median(|sample| sample.met)),
        ("loading", median(|sample| Some(sample.made + sample.put))),
        ("loading_cpu", median(|sample| Some(sample.busy))),
        ("old_drained", median(|sample| Some(sample.settled))),
        ("command", Some(process)),
        ("wrong", Some((lost + doubled + late) as f64)),
        ("exchanges", Some(run.exchanges.len() as f64)),
        ("lost", Some(run.lost_by_pool as f64)),
    ] {
        if let Some(value) = value {
            taken.add(turn, measure, value);
        }
    }
    if lost + doubled + late > 0 {
        taken.problems.push(format!("{lost} lost, {doubled} duplicated, {late} late"));
    }
    Ok(taken)
}

/// Both captures with one source.
fn by_one(
    source: SourceChoice,
    generator: &mut Generator,
    traffic: &Traffic,
    frames: u64,
) -> Result<Run, Failure> {
    let mut check = SequenceCheck::new(traffic, 0..frames);
    let (same, sent, account) =
        under_load(source, SAME, generator, frames, |_, packet| check.frame(packet.data))?;
    let (report, total) = (check.finish().total, account.total());
    let mut stretches = Stretches::default();
    let each = |queue, packet: &Packet<'_>| stretches.packet(queue, packet);
    let (mut exchanges, ..) = under_load(source, TURNS, generator, frames, each)?;
    let late = stretches.tell(&mut exchanges);
    exchanges.extend(same);
    Ok(Run {
        exchanges,
        lost_by_pool: total.lost,
        lost: report.lost.abs_diff(total.lost + sent.refused),
        doubled: report.duplicated,
        late,
    })
}

/// Exchanges the filters of a capture for one another for as long as `frames` frames are sent.
fn under_load(
    source: SourceChoice,
    texts: [&str; 2],
    generator: &mut Generator,
    frames: u64,
    mut each: impl FnMut(u32, &Packet<'_>),
) -> Result<(Vec<Sample>, SendReport, CaptureStats), Failure> {
    let filters = texts.map(Filter::new);
    let builder = Capture::builder().interface("rx0").source(source).filter(filters[0].clone());
    let mut capture = builder.open()?;
    let (exchange, done) = (capture.filter_control(), AtomicBool::new(false));
    let (exchanges, sent) = thread::scope(|scope| {
        let changing = scope.spawn(|| change(&exchange, &filters, &done));
        let sending = scope.spawn(move || generator.send(frames));
        let taken = take(&mut capture, || sending.is_finished(), &mut each);
        done.store(true, Ordering::Relaxed);
        let sent = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let exchanges = changing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        taken?;
        Ok::<_, Failure>((exchanges?, sent.map_err(Failure::new)?))
    })?;
    capture.stop()?;
    take(&mut capture, || true, &mut each)?;
    Ok((exchanges, sent, capture.stats()?))
}

/// Takes packets until `ended`, and then what is left.
fn take(
    capture: &mut Capture,
    ended: impl Fn() -> bool,
    each: &mut impl FnMut(u32, &Packet<'_>),
) -> Result<(), Failure> {
    loop {
        match capture.next(Duration::from_millis(20))?.taken() {
            Some(chunk) => chunk.packets().for_each(|packet| each(chunk.queue(), &packet)),
            None if ended() => return Ok(()),
            None => {}
        }
    }
}

fn change(exchange: &FilterControl, filters: &[Filter; 2], done: &AtomicBool) -> Result<Vec<Sample>, Error> {
    let mut samples = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let filter = &filters[(samples.len() + 1) % 2];
        let places = exchange.slots()?;
        let (start, busy) = (Instant::now(), thread_time());
        let make = |place: &FilterSlot| place.make(Some(filter));
        let programs = places.iter().map(make).collect::<Result<Vec<_>, Error>>()?;
        let made = start.elapsed();
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = Instant::now();
        exchange.put(&programs)?;
        let (put, busy) = (start.elapsed(), thread_time().saturating_sub(busy));
        let start = Instant::now();
        exchange.settle()?;
        samples.push(Sample {
            begun: u64::try_from(begun.as_nanos()).unwrap_or(u64::MAX),
            made: microseconds(made),
            put: microseconds(put),
            met: None,
            settled: microseconds(start.elapsed()),
            busy: microseconds(busy),
        });
        thread::sleep(PAUSE);
    }
    Ok(samples)
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Packets of one queue that follow one another and met the same filter.
#[derive(Debug)]
struct Stretch {
    odd: bool,
    /// Timestamp of the first.
    first: u64,
    packets: u64,
}

/// What packets tell of [`TURNS`], by queue: the kernel may move the generator's to another processor, and so to another queue.
#[derive(Debug, Default)]
struct Stretches(BTreeMap<u32, Vec<Stretch>>);

impl Stretches {
    fn packet(&mut self, queue: u32, packet: &Packet<'_>) {
        let Some(number) = packet.data.get(NUMBER) else { return };
        let odd = number & 1 == 1;
        let stretches = self.0.entry(queue).or_default();
        match stretches.last_mut().filter(|stretch| stretch.odd == odd) {
            Some(stretch) => stretch.packets += 1,
            None => stretches.push(Stretch { odd, first: packet.timestamp, packets: 1 }),
        }
    }

    /// Tells the exchanges when they were met, of which the first is one to odd numbers. How many packets met a filter that was
    /// not in force any more.
    fn tell(&self, exchanges: &mut [Sample]) -> u64 {
        self.0.values().map(|stretches| tell_of_queue(stretches, exchanges)).sum()
    }
}

fn tell_of_queue(stretches: &[Stretch], exchanges: &mut [Sample]) -> u64 {
    let mut late = 0;
    let mut stretches = stretches.iter().peekable();
    let pause = u64::from(PAUSE.subsec_nanos());
    for index in 0..exchanges.len() {
        let end = exchanges.get(index + 1).map_or(u64::MAX, |next| next.begun.saturating_sub(pause));
        let (sample, odd) = (&mut exchanges[index], index % 2 == 0);
        let mut met = None;
        while let Some(stretch) = stretches.next_if(|stretch| stretch.first < end) {
            if stretch.odd != odd {
                late += if met.is_some() { stretch.packets } else { 0 };
            } else {
                met = met.or_else(|| Some(stretch.first.saturating_sub(sample.begun) as f64 / 1e3));
            }
        }
        sample.met = [sample.met, met].into_iter().flatten().reduce(f64::min);
    }
    late
}

pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let of = |measure| SOURCES.map(|(series, _)| outcome.values_of(series, measure, None)).concat();
    let time = |name, measure| Judged::new(name, Wanted::AtMost(1000.0), "us", of(measure));
    vec![
        time("exchange: in force, by the packets", "first_packet"),
        time("exchange: compiled, loaded and put in place", "loading").by_cpu_time(of("loading_cpu")),
        time("exchange: all of `weir ctl filter`", "command"),
        Judged::worst("exchange at full rate: lost, doubled or late", 0.0, "packets", of("wrong")),
    ]
}

#[cfg(test)]
mod tests {
    use weir_filter::interpret::Interpreter;

    use super::*;

    #[test]
    fn filters_want_frames_by_the_byte_that_is_looked_at() {
        let traffic = Traffic::new(60).expect("traffic");
        for number in [0, 1, 100, 0x1_0000, 0x1_0001] {
            let frame = traffic.frame(number);
            let odd = number & 1 == 1;
            assert_eq!(frame[NUMBER] & 1 == 1, odd, "{number}");
            let packet = weir_filter::interpret::Packet { data: &frame, length: 60, ..Default::default() };
            let wanted = TURNS.map(|text| {
                let filter = super::super::compile(text, weir_filter::Dialect::Weir, 1).expect("a filter");
                Interpreter::new(&filter.graph, &filter.ast.sets).run(&packet) != 0
            });
            assert_eq!(wanted, [!odd, odd], "{number}");
        }
    }

    #[test]
    fn packets_tell_when_they_met_a_filter() {
        // Times in units of 10 us, so that a pause has 100 of them.
        const UNIT: u64 = 10_000;
        let sample =
            |begun| Sample { begun: begun * UNIT, made: 0.0, put: 0.0, met: None, settled: 0.0, busy: 0.0 };
        let stretch = |odd, first| Stretch { odd, first: first * UNIT, packets: 10 };
        let all = |queues: &[&[(bool, u64)]]| {
            let of = |stretches: &&[(bool, u64)]| {
                stretches.iter().map(|&(odd, first)| stretch(odd, first)).collect()
            };
            let stretches = Stretches((0..).zip(queues.iter().map(of)).collect());
            let mut samples = [sample(1000), sample(9000)];
            let late = stretches.tell(&mut samples);
            (late, samples.map(|sample| sample.met))
        };
        let met = |stretches: &[(bool, u64)]| all(&[stretches]);
        let (first, second) = (Some(20_000.0), Some(5_000.0));
        assert_eq!(met(&[(false, 10), (true, 3000), (false, 9500)]), (0, [first, second]));
        assert_eq!(met(&[(false, 10), (true, 3000)]), (0, [first, None]));
        let flickers = [(false, 10), (true, 3000), (false, 3001), (true, 3002), (false, 9500)];
        assert_eq!(met(&flickers), (10, [first, second]));
        // The clock of packets may be a little behind ours.
        assert_eq!(met(&[(false, 10), (true, 3000), (false, 8990)]), (0, [first, Some(0.0)]));
        // The chunks of one queue may be taken after later ones of another.
        let [one, other] = [&[(false, 10), (true, 3000)], &[(false, 2500), (true, 2900)]];
        assert_eq!(all(&[one, other]), (0, [Some(19_000.0), None]));
    }
}
