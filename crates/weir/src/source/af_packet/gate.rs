//! Where the filter of a packet socket is exchanged.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use weir_sys::packet::{self, FilterPlace};

use super::shared::Shared;
use super::sieve::Sieve;
use crate::Error;
use crate::filter::{Form, Gate, PlaceKind, Program, checked, for_the_kernel};

/// The filter's place in the kernel or in the pump, whichever the capture has begun with.
#[derive(Debug)]
pub(super) struct SocketGate {
    pub(super) name: String,
    pub(super) socket: FilterPlace,
    pub(super) shared: Arc<Shared>,
    /// The pump asks.
    pub(super) in_pump: bool,
}

impl SocketGate {
    fn refused(&self, what: impl ToString) -> Error {
        Error::FilterRefused { name: self.name.clone(), what: what.to_string() }
    }

    fn put_in_pump(&self, form: &Form) -> Result<(), Error> {
        let sieve = match form {
            Form::All => None,
            Form::Programs => return Err(self.refused("classic BPF is needed here")),
            Form::Classic(instructions) => {
                Some(Sieve::classic(checked(instructions).map_err(|flaw| self.refused(flaw))?))
            }
        };
        // The kernel cuts no more: a filter looks at packets before they are cut.
        self.socket.put(packet::Program::All)?;
        self.shared.exchange(sieve);
        Ok(())
    }

    fn put_in_kernel(&self, form: &Form) -> Result<(), Error> {
        match form {
            Form::All => self.socket.put(packet::Program::All)?,
            Form::Programs => return Err(self.refused("classic BPF is needed here")),
            Form::Classic(instructions) => {
                let program = checked(instructions).map_err(|flaw| self.refused(flaw))?;
                self.shared.stop_counting();
                self.socket.put(packet::Program::Classic(&for_the_kernel(&program)))?;
            }
        }
        Ok(())
    }
}

impl Gate for SocketGate {
    fn place(&self) -> Result<(PlaceKind, Vec<OwnedFd>), Error> {
        Ok((if self.in_pump { PlaceKind::Process } else { PlaceKind::Socket }, Vec::new()))
    }

    fn put(&self, program: &Program) -> Result<(), Error> {
        if self.in_pump { self.put_in_pump(&program.form) } else { self.put_in_kernel(&program.form) }
    }
}
