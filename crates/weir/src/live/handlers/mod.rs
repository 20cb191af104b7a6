//! Handlers: several threads that take packets from one capture, each with its own state.
//!
//! ```text
//!   queue 0 --- claim --> handler 0        basic: queue q belongs to handler q modulo the number of handlers
//!   queue 1 --- claim --> handler 1        advanced: an idle handler takes from the fullest queue of its group, once
//!      \________ claim _____^                that is filled beyond the threshold
//! ```
//!
//! Work is pulled, not pushed. The closed chunks that nobody has read yet form the capture queue, and an idle handler
//! of the group claims the next one. A claim is a single compare-and-exchange, and nobody waits for one. A chunk goes
//! back when it is dropped, as always. A thread of the library watches the notifiers and wakes sleeping handlers. While any
//! handler is awake, it also checks all queues every millisecond, so that a handler that is held up gets help too.

mod handler;
mod layout;
mod plan;
mod share;
mod split;
#[cfg(test)]
mod tests;
mod watch;
mod work_queue;
mod worker;
mod worker_group;

pub use self::handler::Handler;
pub use self::plan::{DEFAULT_THRESHOLD, Order, Plan};
pub use self::share::{Share, SharePackets};
pub(crate) use self::watch::Watcher;
pub(crate) use self::worker_group::WorkerGroup;
