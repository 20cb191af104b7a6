//! Packets that the kernel sends by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir::filter::FileFilter;
use weir::send::{Due, LiveReport, SenderBuilder, Sent};
use weir_service::stop_on_signals;

use super::args::ReplayArgs;
use super::report::Summary;
use super::source::Source;
use super::survey::Survey;
use super::{Packets, end};
use crate::failure::Failure;
use crate::read::Progress;
use crate::sending::{all_taken, failure, sent};
use crate::{grant, units};

/// Reads everything into memory, hands it to the kernel, and has it sent.
pub(super) fn run(
    args: &ReplayArgs,
    builder: &SenderBuilder,
    filter: Option<FileFilter>,
) -> Result<(), Failure> {
    grant::more_than_capture("send packets")?;
    let destination = builder.find()?;
    let editor = args.rewriting.editor(&destination)?;
    if !args.quiet {
        args.rewriting.say_odd();
    }
    let mut packets = Packets { source: Source::open(args, filter, editor)?, queue: None };
    let mut survey = Survey::new(&destination, args);
    // Nothing was sent yet: a signal may end the process.
    packets.survey(&mut survey, usize::MAX)?;
    survey.refusal()?;
    let queue = packets.queue.take().unwrap_or_default();
    if queue.is_empty() {
        let summary = Summary::new(&destination.name, Sent::default(), None);
        return end(args, summary, Ok(()), packets.source.damage);
    }
    let mut live = builder.live_queue(&queue)?;
    drop(queue);
    let signals = stop_on_signals(&live.stop_flag());
    signals.map_err(|error| Failure::new(format_args!("cannot handle signals: {error}")))?;

    let total = survey.planned.packets.saturating_mul(args.rounds());
    let passed = Arc::new(AtomicU64::new(0));
    let position = Arc::clone(&passed);
    let known = !args.quiet && args.rounds() < u64::MAX;
    let position = move || position.load(Ordering::Relaxed);
    let mut progress = Progress::of(position, known.then_some(total), false, units::packets);
    let ran = live.run(0, |made, _| {
        passed.store(made, Ordering::Relaxed);
        if made < total { Due::Now(total - made) } else { Due::Over }
    });
    progress.clear();
    let (report, result) = match ran {
        Ok(report) => (report, all_taken(&destination.name, &report, true)),
        Err(error) => (LiveReport::of(error.sent), Err(failure(error))),
    };
    let mut summary = Summary::new(&destination.name, sent(&report), Some(report.elapsed));
    summary.backend = Some("live frames".to_owned());
    summary.surveyed(&survey);
    summary.refused = report.made.packets - report.sent;
    summary.stopped = report.stopped;
    summary.error = result.as_ref().err().map(|failure: &Failure| failure.message().to_owned());
    end(args, summary, result, packets.source.damage)
}
