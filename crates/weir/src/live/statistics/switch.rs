//! Statistics that are switched off and on while packets flow. Each link gets another program: one that does nothing, or the
//! one that counts. Nothing is attached or detached, so a confined process can do it.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_sys::CallError;

use crate::live::filter_control::Toggle;
use crate::live::source::programmed::Attachment;
use crate::live::source::tc::Hold;
use crate::{Error, Unsupported};

/// Switches the statistics of one interface off and on, from any thread. What was counted stays.
#[derive(Clone, Debug)]
pub struct Switch(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    name: String,
    /// `None`: it was stopped.
    hold: Option<Hold>,
    /// Those that count, in the order of the hold.
    counting: Vec<OwnedFd>,
    idle: OwnedFd,
    on: bool,
}

impl Switch {
    /// Makes a switch for programs that are attached by `hold`; `idle` is to take their place.
    pub(super) fn new(name: &str, hold: Hold, counting: Vec<OwnedFd>, idle: OwnedFd) -> Self {
        let name = name.to_owned();
        Self(Arc::new(Mutex::new(State { name, hold: Some(hold), counting, idle, on: true })))
    }

    /// Switches counting on or off. A packet that a CPU is just processing may still meet the previous program. Once
    /// counting was stopped for good, this does nothing.
    ///
    /// # Errors
    ///
    /// The kernel has no tcx (before Linux 6.6).
    pub fn turn(&self, on: bool) -> Result<(), Error> {
        let mut state = self.state();
        let Some(hold) = state.hold.as_ref().filter(|_| state.on != on) else { return Ok(()) };
        if let Hold::Filters(_) = hold {
            return Err(Error::Unsupported {
                name: state.name.clone(),
                cause: Unsupported::Switch,
                sources: &[],
                otherwise: "",
            });
        }
        let program = |counting| if on { counting } else { &state.idle };
        let programs: Vec<_> = state.counting.iter().map(program).map(OwnedFd::as_fd).collect();
        hold.exchange(&programs)?;
        state.on = on;
        Ok(())
    }

    /// Returns whether packets are counted.
    pub fn is_on(&self) -> bool {
        let state = self.state();
        state.on && state.hold.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Toggle for Switch {
    fn turn(&self, on: bool) -> Result<(), Error> {
        Self::turn(self, on)
    }
}

impl Attachment for Switch {
    fn detach(&mut self) -> Result<(), CallError> {
        self.state().hold.take().map_or(Ok(()), |mut hold| hold.detach())
    }
}
