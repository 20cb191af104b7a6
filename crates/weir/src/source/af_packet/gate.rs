//! Where the filter of a packet socket is exchanged.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use weir_bpf::filter::Refusals;
use weir_sys::CallError;
use weir_sys::packet::{self, FilterPlace};

use super::shared::Shared;
use super::sieve::Sieve;
use crate::Error;
use crate::filter::{Form, Gate, Labelled, LiveSets, PlaceKind, Program, checked, for_the_kernel};

/// The filter's place in the kernel or in the pump, whichever the capture has begun with.
#[derive(Debug)]
pub(super) struct SocketGate {
    pub(super) name: String,
    pub(super) socket: FilterPlace,
    pub(super) shared: Arc<Shared>,
    pub(super) snap_len: u32,
    /// What the kernel's filter has refused; `None`: it cannot be counted.
    pub(super) refusals: Option<Refusals>,
    /// The pump asks.
    pub(super) in_pump: bool,
    /// Of the filter in force, if the kernel looks into them.
    pub(super) sets: LiveSets,
}

impl SocketGate {
    /// Packets that the kernel's filter has refused; `None`: the count cannot be read.
    pub(super) fn refused_in_kernel(&self) -> Option<u64> {
        self.refusals.as_ref().map_or(Some(0), |refusals| refusals.count().ok())
    }

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

    fn put_in_kernel(&self, form: &Form, descriptors: &[OwnedFd]) -> Result<(), Error> {
        match form {
            Form::All => self.socket.put(packet::Program::All)?,
            Form::Programs => {
                let [program] = descriptors else { return Err(self.refused("one program is needed")) };
                self.socket.put(packet::Program::Extended(program.as_fd()))?;
            }
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
    fn place(&self) -> Result<Option<(PlaceKind, Vec<OwnedFd>)>, Error> {
        if self.in_pump {
            return Ok(Some((PlaceKind::Process, Vec::new())));
        }
        let refusals = self.refusals.iter().map(|refusals| refusals.as_fd().try_clone_to_owned());
        let refusals = refusals.collect::<io::Result<_>>();
        let refusals = refusals.map_err(|error| CallError::new("duplicate a descriptor", error))?;
        Ok(Some((PlaceKind::Socket { snap_len: self.snap_len }, refusals)))
    }

    fn put(&self, program: &Program) -> Result<(), Error> {
        if self.in_pump {
            self.put_in_pump(&program.form)
        } else {
            let maps = program.labelled()?;
            self.put_in_kernel(&program.form, program.programs())?;
            self.sets.put(maps);
            Ok(())
        }
    }

    fn sets(&self) -> Result<Vec<Labelled>, Error> {
        self.sets.labelled()
    }
}
