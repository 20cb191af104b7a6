//! Many threads take from one capture, each with a state of its own: *handlers*.
//!
//! ```text
//!   queue 0 --- claim --> handler 0        basic: queue q goes to handler q modulo their number
//!   queue 1 --- claim --> handler 1        advanced: whoever is idle takes from the fullest queue of its group, once
//!      \________ claim _____^                that holds more than the threshold
//! ```
//!
//! Work is *taken*, not pushed: the chunks that are closed and not yet read are the capture queue, and an idle buddy
//! claims the next of them. A claim is one compare-and-exchange, and nobody waits for one; the chunk goes home when it is
//! dropped, as every chunk does. A thread of the library watches the bells, wakes handlers that sleep, and looks at all
//! queues each millisecond while a handler is awake, so that one that is held up is relieved as well.

mod desk;
mod flow;
mod handler;
mod plan;
mod seat;
mod share;
mod split;
mod team;
#[cfg(test)]
mod tests;
mod watch;

pub use self::handler::Handler;
pub use self::plan::{DEFAULT_THRESHOLD, Order, Plan};
pub use self::seat::HandlerState;
pub use self::share::{Share, SharePackets};
pub(crate) use self::team::Team;
pub(crate) use self::watch::Watcher;
