//! The loop of a session, and what a program decides in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::broker::Helpers;
use crate::control::{Account, Change, Control, Obeyed, Order};
use crate::metrics::Metrics;
use crate::{Error, Stop, Until};

/// What a program does with packets, when it stops, and what it does in between.
pub trait Policy: Sized {
    /// What a run has counted, and how it ended.
    type Summary: Account + 'static;
    /// What can go wrong.
    type Error: From<Error>;

    /// Returns the summary so far, for metrics and clients.
    ///
    /// # Errors
    ///
    /// If the counters cannot be read.
    fn summary(&mut self) -> Result<Self::Summary, Self::Error>;

    /// Shows the account so far to the user, who asked by SIGUSR1.
    ///
    /// # Errors
    ///
    /// If the counters cannot be read.
    fn report(&mut self) -> Result<(), Self::Error>;

    /// Writes everything captured so far, which the user asked for by SIGUSR2.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    fn flush(&mut self, _until: &Until) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Reads the configuration again, which the user asked for by SIGHUP; only if the session
    /// [reloads](super::Settings::reloads).
    ///
    /// # Errors
    ///
    /// If the run cannot go on.
    fn reload(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Does what a client orders.
    ///
    /// # Errors
    ///
    /// Why it is not done, for the client.
    fn obey(&mut self, _order: Order) -> Result<Obeyed, String> {
        Err("it has no rules".to_owned())
    }

    /// Takes note of filters and sets that clients have changed. Called in every round, mostly without changes.
    ///
    /// # Errors
    ///
    /// If they cannot be marked in the file.
    fn changed(&mut self, changes: Vec<Change>) -> Result<(), Self::Error>;

    /// Does what is due, and returns a reason to stop, if there is one. Called in every round.
    ///
    /// # Errors
    ///
    /// Any.
    fn tick(&mut self, now: Instant) -> Result<Option<Stop>, Self::Error>;

    /// Returns when [`tick`](Self::tick) has work again.
    fn due(&self) -> Option<Instant>;

    /// Waits for packets for at most this time, or until a signal, and takes some.
    ///
    /// # Errors
    ///
    /// Any.
    fn receive(&mut self, longest: Duration) -> Result<(), Self::Error>;

    /// Ends the run: stops the engine, takes the rest, and reports the result. `changes` returns those that clients know
    /// of and [`changed`](Self::changed) does not.
    ///
    /// # Errors
    ///
    /// The reason for the end, if it was an error; or what went wrong since.
    fn finish(
        self,
        end: Result<Stop, Self::Error>,
        changes: impl FnOnce() -> Vec<Change>,
    ) -> Result<(), Self::Error>;
}

/// What runs beside a policy.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) until: Until,
    pub(super) metrics: Option<Metrics>,
    pub(super) control: Option<Control>,
    /// Last, because dropping it removes the sockets of the fields above.
    pub(super) _helpers: Option<Arc<Helpers>>,
}

impl Service {
    /// Receives packets until there is a reason to stop.
    pub(super) fn until_stopped<P: Policy>(&mut self, policy: &mut P) -> Result<Stop, P::Error> {
        loop {
            let now = Instant::now();
            if let Some(stop) = self.until.reached(now) {
                return Ok(stop);
            }
            if self.until.signals.take_account() {
                policy.report()?;
            }
            if self.until.signals.take_flush() {
                policy.flush(&self.until)?;
            }
            if self.until.signals.take_reload() {
                policy.reload()?;
            }
            while let Some((order, answer)) = self.control.as_ref().and_then(Control::order) {
                answer.give(policy.obey(order));
            }
            if let Some(metrics) = self.metrics.as_mut().filter(|metrics| now >= metrics.due())
                && let Some(measured) = policy.summary()?.into_metrics()
            {
                metrics.publish(now, measured);
            }
            policy.changed(self.control.as_ref().map(Control::changes).unwrap_or_default())?;
            if let Some(control) = &mut self.control
                && control.is_due(now)
            {
                control.publish(now, policy.summary()?);
            }
            if let Some(stop) = policy.tick(now)? {
                return Ok(stop);
            }
            let (metrics, control) = (self.metrics.as_ref(), self.control.as_ref());
            let due = [policy.due(), metrics.map(Metrics::due), control.map(Control::due)];
            policy.receive(self.until.wait(now, due.into_iter().flatten().min()))?;
        }
    }

    /// Returns the changes since the last round, including every change that a client knows of.
    pub(super) fn last_changes(&self) -> Vec<Change> {
        let Some(control) = &self.control else { return Vec::new() };
        control.settle();
        control.changes()
    }
}
