//! `weir-bench forward --check TIME`: both ways at once at full rate, and every byte of every frame looked at where it comes out.
//!
//! ```text
//!  processor 1: generator -> tx0 -> rx0 ==========> rx1 -> tx1: each frame is checked, and dropped
//!  processor 0: each frame is checked, and dropped: tx0 <- rx0 <========== rx1 <- tx1 <- generator
//! ```

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use weir::Forward;
use weir::forward::ForwardCounters;
use weir_lab::{Checked, FrameCheck, Generator, Network, SendReport, Traffic, Veth};

use super::{SIZE, pass};
use crate::failure::{Failure, failed};
use crate::{style, units};

/// Flows of each way: their addresses differ, too.
const FLOWS: u32 = 70_000;

/// After so long nothing is on its way any more.
const ON_THEIR_WAY: Duration = Duration::from_millis(100);

/// How often it says where it is.
const PERIOD: Duration = Duration::from_secs(10);

/// What became of the frames of one way.
#[derive(Debug, Serialize)]
struct DirectionReport {
    contestant: &'static str,
    from: String,
    /// Frames that the interface took.
    accepted: u64,
    /// Frames that came out at the other end.
    arrived: u64,
    /// Of these, those that are not as they were sent.
    wrong: u64,
    /// Of these, those that came behind a later one, or twice.
    backward: u64,
    /// What weir says.
    account: ForwardCounters,
}

impl DirectionReport {
    /// Each frame arrived as it was and in its turn, or is in the account.
    fn is_right(&self) -> bool {
        let Self { account, .. } = self;
        (self.wrong, self.backward, account.in_flight()) == (0, 0, 0)
            && self.arrived > 0
            && account.seen == self.accepted
            && account.forwarded == self.arrived
            && account.seen == account.forwarded + account.lost()
    }
}

/// Checks forwarding in the kernel, and with a handler. Gives the report as JSON.
pub(super) fn run(time: Duration) -> Result<String, Failure> {
    let open = || Forward::between("rx0", "rx1").both(true);
    let mut reports = check("in the kernel", time, || open().open())?;
    reports.extend(check("with a handler", time, || open().open_with(|_| pass))?);
    let wrong = reports.iter().filter(|report| !report.is_right()).count();
    let json = serde_json::to_string_pretty(&reports).map_err(failed("make JSON"))?;
    let mut stdout = io::stdout().lock();
    for report in &reports {
        let lost = units::grouped(report.account.lost());
        writeln!(
            stdout,
            "{:<15} from {}: {} frames, {} arrived, {lost} lost and counted, {} wrong, {} out of order{}",
            report.contestant,
            report.from,
            units::grouped(report.accepted),
            units::grouped(report.arrived),
            units::grouped(report.wrong),
            units::grouped(report.backward),
            if report.is_right() { "" } else { ": WRONG" },
        )
        .map_err(failed("write to standard output"))?;
    }
    if wrong > 0 {
        return Err(Failure::new(format_args!("wrong measurements: {wrong}; see above")));
    }
    Ok(json)
}

fn check(
    contestant: &'static str,
    time: Duration,
    open: impl FnOnce() -> Result<Forward, weir::Error> + Send,
) -> Result<Vec<DirectionReport>, Failure> {
    let cannot = |error| failed::<weir_lab::Error>(contestant)(error);
    let mut network = Network::new(Veth::default()).map_err(cannot)?;
    network.connect(Veth::default()).map_err(cannot)?;
    let pairs = [0, 1].map(|number| &network.pairs()[number]);
    let mut senders = Vec::new();
    for (cpu, (here, there)) in (0..).zip([(pairs[1], pairs[0]), (pairs[0], pairs[1])]) {
        let traffic = Traffic::new(SIZE).and_then(|traffic| traffic.flows(FLOWS)).map_err(cannot)?;
        let traffic = traffic.between(here);
        let generator = Generator::new(here, &traffic).map_err(cannot)?.cpu(cpu);
        let check = FrameCheck::attach(&there.tx, &traffic).map_err(cannot)?;
        senders.push((here.rx.name.clone(), generator, check));
    }
    let mut forward = network.rx().run(open)?;
    let mut sent = send(contestant, time, &mut senders).map_err(cannot)?;
    thread::sleep(ON_THEIR_WAY);
    forward.stop()?;
    thread::sleep(ON_THEIR_WAY);
    let account = forward.stats()?;
    let mut reports = Vec::new();
    for (from, _, check) in &senders {
        let Checked { packets, wrong, backward } = check.checked();
        let direction = account.directions.iter().find(|direction| direction.from == *from);
        let account = direction.map(weir::forward::DirectionStats::total).unwrap_or_default();
        let accepted = sent.remove(0).accepted;
        reports.push(DirectionReport {
            contestant,
            from: from.clone(),
            accepted,
            arrived: packets,
            wrong,
            backward,
            account,
        });
    }
    Ok(reports)
}

/// All send at once; says how far they are from time to time.
fn send(
    contestant: &str,
    time: Duration,
    senders: &mut [(String, Generator, FrameCheck)],
) -> Result<Vec<SendReport>, weir_lab::Error> {
    thread::scope(|scope| {
        let (mut threads, mut checks) = (Vec::new(), Vec::new());
        for (_, generator, check) in senders {
            threads.push(scope.spawn(move || generator.send_for(time)));
            checks.push(&*check);
        }
        let began = std::time::Instant::now();
        while threads.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(ON_THEIR_WAY);
            let elapsed = began.elapsed();
            if elapsed.as_secs().is_multiple_of(PERIOD.as_secs()) && elapsed.subsec_millis() < 100 {
                let arrived: u64 = checks.iter().map(|check| check.checked().packets).sum();
                let elapsed = units::elapsed(elapsed);
                style::say(format_args!(
                    "{contestant}: {} frames checked after {elapsed}",
                    units::grouped(arrived)
                ));
            }
        }
        threads.into_iter().map(|thread| thread.join().expect("a generator does not panic")).collect()
    })
}
