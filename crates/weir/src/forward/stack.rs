//! Returns packets from a handler to this host's stack.
//!
//! A packet received through a socket has left the driver. To give it to the stack, the kernel has to receive it again
//! as if from the same interface. That takes privileges that handler threads lack, so a separate thread does it, one
//! packet at a time.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use weir_bpf::stack::Receive;
use weir_sys::CallError;

use super::counters::Counters;
use super::endpoint::Endpoint;
use crate::Error;

/// Maximum number of waiting packets.
const MOST_WAITING: usize = 1024;

/// The thread for one interface. It ends when the last [`Door`] is dropped.
#[derive(Debug)]
pub(super) struct Stack {
    door: Option<Door>,
    thread: Option<JoinHandle<()>>,
}

/// A handle for giving packets to the thread.
#[derive(Clone, Debug)]
pub(super) struct Door(SyncSender<Letter>);

/// A packet, and the counters for it.
#[derive(Debug)]
struct Letter {
    packet: Vec<u8>,
    counters: Arc<Counters>,
}

impl Stack {
    /// Starts the thread in the namespace of the receiving interface.
    pub(super) fn start(from: &Endpoint) -> Result<Self, Error> {
        let (sender, letters) = sync_channel(MOST_WAITING);
        let index = from.index();
        let thread = thread::Builder::new().name("weir-stack".to_owned());
        let thread = from.inside(|| thread.spawn(move || receive(&letters, index)))?;
        let thread = thread
            .map_err(|error| CallError::new("start a thread that passes packets to the stack", error))?;
        Ok(Self { door: Some(Door(sender)), thread: Some(thread) })
    }

    pub(super) fn door(&self) -> Door {
        self.door.clone().expect("it is open until this is dropped")
    }
}

impl Drop for Stack {
    /// Waiting packets are still given to the stack.
    fn drop(&mut self) {
        self.door = None;
        let _panicked = self.thread.take().map(JoinHandle::join);
    }
}

impl Door {
    /// Queues a packet for the stack; its counters record the result.
    pub(super) fn give(&self, packet: &[u8], counters: &Arc<Counters>) {
        match self.0.try_send(Letter { packet: packet.to_vec(), counters: Arc::clone(counters) }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => Counters::add(&counters.no_room, 1),
            Err(TrySendError::Disconnected(_)) => Counters::add(&counters.unable, 1),
        }
    }
}

/// Runs the thread. The program is loaded with the first packet, since most handlers never send one.
fn receive(letters: &Receiver<Letter>, interface: u32) {
    let mut program = None;
    for Letter { packet, counters } in letters {
        let program = program.get_or_insert_with(Receive::load);
        let given = program.as_ref().is_ok_and(|program| program.frame(&packet, interface).is_ok());
        Counters::add(if given { &counters.passed } else { &counters.errors }, 1);
    }
}
