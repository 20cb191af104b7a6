//! `weir guard`: rules below the network stack, which block packets of an interface or let them pass.

mod args;
mod confirmation;
mod exact;
mod left;
mod log;
mod metrics;
mod report;
mod summary;

use std::io;
use std::time::{Duration, Instant};

use weir::guard::{Reading, Rules};
use weir::{Change as Happened, Direction, Guard};
use weir_render::json;
use weir_service::Stop;
use weir_service::control::{Change, Obeyed, Order};
use weir_service::session::{Policy, Prepared};

pub(crate) use self::args::GuardArgs;
use self::confirmation::Confirmation;
use self::log::Log;
use self::summary::{Interval, LogCount, Summary};
use crate::failure::{self, Failure};
use crate::rules::{self, LiveRules, Shown, lifeline, table};
use crate::{grant, out, style};

/// Runs the command.
pub(crate) fn run(args: &GuardArgs) -> Result<(), Failure> {
    if args.list {
        return left::list(args.json);
    }
    if args.end {
        return left::end(args);
    }
    args.check()?;
    grant::more_than_capture("guard an interface")?;
    let rules = LiveRules::read(args.rules(), &args.sets)?;
    let chosen = args.chosen()?;
    let builder = args.builder(&chosen)?.rules(rules.rules().clone());
    if !args.dry_run && !args.force {
        lifeline::check_login(&rules, &chosen, args.direction())?;
    }
    lifeline::warn_of_neighbours(&rules, &chosen, args.direction())?;
    warn_of_no_rules(rules.count());
    if args.direction() == Direction::In {
        rules.warn_of_sent(&style::visible(args.interface()), "only received packets meet the rules");
    }
    if rules.captures() && !args.quiet {
        rules::note(rules::GUARD_CAPTURES);
    }
    if rules.logs() && args.log.is_none() && !args.quiet {
        rules::note("`log` writes nothing without --log FILE");
    }
    let prepared = Prepared::new(args.settings(), None)?;
    let (guard, opened) = prepared.open(|_| builder.start().map_err(Failure::from))?;
    let log = args.log.as_ref().map(|file| Log::begin(file, &guard, args.dry_run)).transpose()?;
    style::print(&report::opened(guard.info(), rules.count(), args.quiet, style::stderr()));
    style::print(&crate::report::service(&opened, args.quiet, false));
    style::print(&crate::report::control(&opened, args.quiet));
    if !args.quiet {
        let took_over = guard.info().took_over;
        style::print(&report::on_exit(args.stays(), args.confirm.is_some(), took_over, args.interface()));
    }
    let next = args.interval.map(|interval| Instant::now() + interval);
    let confirmation = args.confirm.map(Confirmation::begin);
    opened.serve(Run { args, guard, log, next, confirmation })?.run()
}

fn table_of(summary: &Summary) -> String {
    let counted = &summary.counted;
    table(&Shown::of(&counted.rules, summary.dry_run, counted.log_lost), style::stderr())
}

/// Says so if rules are none, as of a file that was truncated.
fn warn_of_no_rules(count: usize) {
    if count == 0 {
        let warning = style::stderr().yellow("warning");
        style::say(format_args!("{warning}: there are no rules: every packet passes"));
    }
}

/// A guard that is being watched.
struct Run<'a> {
    args: &'a GuardArgs,
    guard: Guard,
    log: Option<Log>,
    /// End of the interval.
    next: Option<Instant>,
    /// `None`: the rules are confirmed, or need not be.
    confirmation: Option<Confirmation>,
}

impl Policy for Run<'_> {
    type Summary = Summary;
    type Error = Failure;

    fn summary(&mut self) -> Result<Summary, Failure> {
        let (reading, log) = self.read()?;
        let mut summary = Summary::new(self.guard.info(), self.guard.is_gone(), reading, log);
        summary.stays_in_force = self.guard.rules_stay();
        summary.confirm_within = self.confirmation.as_ref().map(|due| due.left().as_secs_f64());
        Ok(summary)
    }

    fn report(&mut self) -> Result<(), Failure> {
        if self.is_confirmed()? {
            return Ok(());
        }
        let summary = self.summary()?;
        style::print(&format!("\n{}", table_of(&summary)));
        Ok(())
    }

    fn reload(&mut self) -> Result<(), Failure> {
        let done = self.read_again();
        if let Err(failure) = done {
            failure.report();
            style::say(format_args!("{}: the rules stay as they were", style::stderr().yellow("notice")));
        }
        Ok(())
    }

    fn obey(&mut self, order: Order) -> Result<Obeyed, String> {
        match order {
            Order::Confirm => match self.is_confirmed() {
                Ok(true) => Ok(Obeyed::Done),
                Ok(false) => Err("nothing waits for confirmation".to_owned()),
                Err(failure) => Err(failure.message().to_owned()),
            },
            Order::Rules(rules) => {
                let rules = Rules::from(rules);
                let put = self.put(&rules).map_err(|failure| failure.message().to_owned());
                put.map(|()| Obeyed::Done)
            }
            Order::Exact(order) => exact::obey(&mut self.guard, order).map(Obeyed::from),
        }
    }

    fn changed(&mut self, _changes: Vec<Change>) -> Result<(), Failure> {
        Ok(())
    }

    fn tick(&mut self, now: Instant) -> Result<Option<Stop>, Failure> {
        if let Some(confirmation) = &mut self.confirmation {
            if confirmation.is_given() {
                self.is_confirmed()?;
            } else if confirmation.is_over(now) {
                return Ok(Some(Stop::Unconfirmed));
            }
        }
        let (Some(every), Some(next)) = (self.args.interval, self.next) else { return Ok(None) };
        if now < next {
            return Ok(None);
        }
        // Intervals follow the schedule, so that they do not drift; missed ones are skipped.
        self.next = Some(if now < next + every { next + every } else { now + every });
        match self.print_interval() {
            Ok(()) => Ok(None),
            Err(Unprinted::Failure(failure)) => Err(failure),
            Err(Unprinted::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(Some(Stop::Pipe))
            }
            Err(Unprinted::Output(error)) => Err(failure::unprinted(&error)),
        }
    }

    fn due(&self) -> Option<Instant> {
        let confirmation = self.confirmation.as_ref().map(Confirmation::due);
        self.next.into_iter().chain(confirmation).min()
    }

    fn receive(&mut self, mut longest: Duration) -> Result<(), Failure> {
        if let Some(log) = &mut self.log
            && log.advance(&mut self.guard)?
        {
            Log::nap(longest);
            longest = Duration::ZERO;
        }
        for event in self.guard.wait(longest)? {
            // That it is gone ends the run, with that message.
            if event.change != Happened::Gone {
                style::say(format_args!("{}: {event}", style::stderr().yellow("notice")));
            }
        }
        Ok(())
    }

    fn finish(
        mut self,
        end: Result<Stop, Failure>,
        _changes: impl FnOnce() -> Vec<Change>,
    ) -> Result<(), Failure> {
        let piped = matches!(end, Ok(Stop::Pipe));
        let stopped = self.guard.stop().map_err(Failure::from);
        let confirmed = match end {
            Ok(Stop::Unconfirmed) => {
                Err(confirmation::missing(self.args.confirm, self.guard.info().took_over))
            }
            _ => Ok(()),
        };
        let logged = self.log.as_mut().map_or(Ok(()), |log| log.finish(&mut self.guard));
        let result = failure::ended(end, [stopped, confirmed]);
        let only_log = result.is_ok() && logged.is_err();
        let result = result.and_then(|stop| logged.map(|()| stop));
        let mut summary = match self.summary() {
            Ok(summary) => summary,
            Err(error) => return failure::ended(result, [Err(error)]).map(|_| ()),
        };
        summary.close(result.as_ref().copied().map_err(Failure::message));
        if !self.args.quiet {
            style::print(&format!("\n{}", table_of(&summary)));
            if summary.stays_in_force {
                style::print(&report::stays(self.args.interface()));
            }
        }
        let printed = if self.args.json && !piped { json::line(out::stdout(), &summary) } else { Ok(()) };
        // Why it has failed was said when it did.
        let result = if only_log { Err(Failure::new("the log is not complete")) } else { result };
        result.and_then(|_| failure::printed(printed))
    }
}

/// Why an interval is not printed.
enum Unprinted {
    Failure(Failure),
    Output(io::Error),
}

impl Run<'_> {
    /// Returns what was counted so far.
    fn read(&mut self) -> Result<(Reading, LogCount), Failure> {
        let reading = self.guard.read()?;
        let log = self.log.as_ref().map(|log| log.count(reading.log_lost)).unwrap_or_default();
        Ok((reading, log))
    }

    /// Confirms the rules, if that is waited for. Returns whether it was.
    fn is_confirmed(&mut self) -> Result<bool, Failure> {
        if self.confirmation.is_none() {
            return Ok(false);
        }
        self.guard.accept()?;
        self.confirmation = None;
        if !self.args.quiet {
            style::say(format_args!("confirmed: the rules stay in force"));
        }
        Ok(true)
    }

    /// Reads the file of the rules again, and puts them in force.
    fn read_again(&mut self) -> Result<(), Failure> {
        if self.args.rules().as_os_str() == "-" {
            let failure = Failure::new("cannot read the rules again: they came from standard input");
            return Err(failure.hint("to replace them: weir ctl rules replace FILE"));
        }
        let rules = LiveRules::read(self.args.rules(), &self.args.sets)?;
        if !self.args.dry_run && !self.args.force {
            lifeline::check_login(&rules, &self.args.chosen()?, self.args.direction())?;
        }
        self.put(rules.rules())
    }

    /// Replaces the rules in force.
    fn put(&mut self, rules: &Rules) -> Result<(), Failure> {
        self.guard.replace(rules)?;
        warn_of_no_rules(self.guard.rules().len());
        if !self.args.quiet {
            style::say(format_args!(
                "{}: {} in force",
                self.guard.info().name,
                report::rules(self.guard.rules().len())
            ));
        }
        Ok(())
    }

    fn print_interval(&mut self) -> Result<(), Unprinted> {
        let (reading, log) = self.read().map_err(Unprinted::Failure)?;
        let interval = Interval::new(reading, log);
        if self.args.json {
            return json::line(out::stdout(), &interval).map_err(Unprinted::Output);
        }
        if self.args.quiet {
            return Ok(());
        }
        let counted = interval.counted();
        let shown = Shown::of(&counted.rules, self.args.dry_run, counted.log_lost);
        let table = table(&shown, style::stderr());
        style::print(&format!("\nafter {:.1} s\n{table}", counted.rules.elapsed_seconds));
        Ok(())
    }
}
