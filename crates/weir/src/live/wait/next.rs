//! The answer to a request for packets.

/// What [`Capture::next`](crate::Capture::next) and [`Handler::next`](crate::Handler::next) answer: packets, none yet, or no
/// more.
#[derive(Debug)]
#[must_use = "it may hold packets, which count as delivered"]
pub enum Next<T> {
    /// The next packets.
    Taken(T),
    /// There are none yet: the time is up, a signal arrived, or something happened to an interface. Ask again.
    NotYet,
    /// The capture was stopped, and everything that it captured was taken; for a handler: nothing is left for it. Nothing
    /// follows.
    Over,
}

impl<T> Next<T> {
    /// Returns the packets, for whoever treats "none yet" and "no more" alike.
    pub fn taken(self) -> Option<T> {
        match self {
            Self::Taken(taken) => Some(taken),
            Self::NotYet | Self::Over => None,
        }
    }
}
