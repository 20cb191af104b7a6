//! What clients order and the loop does: it has the privileges for that, and the threads that answer clients have none.

use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir::guard::PortableRules;

use super::exact::{ExactDone, ExactOrder};

/// Longest wait for the loop. Loading large rule sets takes seconds.
const PATIENCE: Duration = Duration::from_secs(25);

/// What a client orders.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Keep the rules in force, whose time for confirmation runs.
    Confirm,
    /// Put these rules in force instead.
    Rules(PortableRules),
    /// Change or list exact rules.
    Exact(ExactOrder),
}

/// What became of an order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obeyed {
    /// It is done.
    Done,
    /// This became of exact rules.
    Exact(ExactDone),
}

impl From<ExactDone> for Obeyed {
    fn from(done: ExactDone) -> Self {
        Self::Exact(done)
    }
}

/// Orders that wait for the loop.
#[derive(Debug, Default)]
pub(super) struct Orders(Mutex<VecDeque<(Order, Answer)>>);

/// Where the answer to an order goes.
#[derive(Debug)]
pub(crate) struct Answer(SyncSender<Result<Obeyed, String>>);

impl Answer {
    /// Answers; `Err`: why it was not done.
    pub(crate) fn give(self, result: Result<Obeyed, String>) {
        let _client_has_gone = self.0.send(result);
    }
}

impl Orders {
    /// Returns the next order.
    pub(super) fn next(&self) -> Option<(Order, Answer)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Gives an order to the loop, and waits until it is done; `Err`: why it was not.
    pub(super) fn give(&self, order: Order) -> Result<Obeyed, String> {
        let (to, from) = sync_channel(1);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back((order, Answer(to)));
        match from.recv_timeout(PATIENCE) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("it did not answer within {} seconds, and may still do it", PATIENCE.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => Err("it has just ended".to_owned()),
        }
    }
}
