//! Threads of `--handlers`, each with work of its own, and what is left when a capture ends.

use std::ops::ControlFlow;
use std::thread::JoinHandle;
use std::time::Duration;

use weir::{Capture, Next, Plan, Share};

use crate::failure::Failure;

/// What a thread does with packets.
pub(crate) trait Work: Send + 'static {
    /// Takes packets.
    fn take(&mut self, share: Share);
}

/// The threads.
#[derive(Debug)]
pub(crate) struct Workers<W>(Vec<JoinHandle<Result<W, weir::Error>>>);

impl<W: Work> Workers<W> {
    /// Starts a thread for each handler of `plan`.
    pub(crate) fn start(
        capture: &mut Capture,
        plan: &Plan,
        mut work: impl FnMut() -> Result<W, Failure>,
    ) -> Result<Self, Failure> {
        let mut threads = Vec::new();
        for handler in capture.handlers(plan)? {
            let mut work = work()?;
            let name = format!("weir-handler-{}", handler.number());
            let thread = weir_sys::thread::spawn_deaf(&name, move || {
                handler.run(|share| {
                    work.take(share);
                    ControlFlow::Continue(())
                })?;
                Ok(work)
            });
            let failed = |error| Failure::new(format_args!("cannot start a thread for --handlers: {error}"));
            threads.push(thread.map_err(failed)?);
        }
        Ok(Self(threads))
    }

    /// Waits until all remaining packets are taken. Returns the work, and the first error.
    fn join(self) -> (Vec<W>, Result<(), Failure>) {
        let (mut done, mut result) = (Vec::new(), Ok(()));
        for (number, thread) in self.0.into_iter().enumerate() {
            match thread.join() {
                Ok(Ok(work)) => done.push(work),
                Ok(Err(error)) => result = result.and_then(|()| Err(error.into())),
                Err(_) => {
                    let what =
                        Failure::new(format_args!("handler {number} panicked: its results are missing"));
                    result = result.and(Err(what));
                }
            }
        }
        (done, result)
    }
}

/// Stops a capture, and takes what is left: the threads do, if there are any, else `own`. Returns the work of the threads.
pub(crate) fn drain<W: Work>(
    capture: &mut Capture,
    workers: Option<Workers<W>>,
    own: &mut W,
) -> (Vec<W>, Result<(), Failure>) {
    let stopped = capture.stop().map_err(Failure::from);
    let (done, joined) = workers.map_or((Vec::new(), Ok(())), Workers::join);
    let rest = loop {
        match capture.next(Duration::ZERO) {
            Ok(Next::Taken(chunk)) => own.take(chunk.into()),
            Ok(Next::NotYet) => {}
            Ok(Next::Over) => break Ok(()),
            Err(error) => break Err(error.into()),
        }
    };
    (done, stopped.and(joined).and(rest))
}
