//! The lives of sockets.

use crate::{Counts, News, Owner, Question, Settings, Side};

/// What is known of a host's sockets: tells whose a packet is.
#[derive(Debug)]
pub struct Register {
    settings: Settings,
}

impl Register {
    /// Returns an empty register.
    pub fn new(settings: &Settings) -> Self {
        Self { settings: *settings }
    }

    /// Takes news in. They may come out of order by milliseconds, since each processor reports by itself.
    pub fn learn(&mut self, news: &News) {
        todo!()
    }

    /// Returns whose packet it is, at one end.
    pub fn owner(&self, question: &Question<'_>, side: Side) -> Owner {
        todo!()
    }

    /// Returns whether there is a socket that may be the packet's, but whose port nobody has told yet: UDP that is connected before
    /// it has a port. A look at the kernel's table of sockets finds it.
    pub fn is_unsettled(&self, question: &Question<'_>) -> bool {
        todo!()
    }

    /// Returns what it has seen and forgotten.
    pub fn counts(&self) -> Counts {
        todo!()
    }
}
