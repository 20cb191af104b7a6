//! The place where the filter of a packet socket is replaced.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use weir_bpf::filter::Refusals;
use weir_sys::CallError;
use weir_sys::packet::{self, FilterPlace, Instruction};

use super::pump_filter::PumpFilter;
use super::shared::Shared;
use crate::live::error::command;
use crate::live::filter_control::sets::{InForce, Labelled};
use crate::live::filter_control::{
    CompiledFilter, CompiledForm, FilterSlotKind, Gate, Undo, checked, for_the_kernel,
};
use crate::{DEFAULT_SNAP_LEN, Error};

/// The filter's place: in the kernel or in the pump, depending on how the capture started.
#[derive(Debug)]
pub(super) struct SocketGate {
    pub(super) name: String,
    pub(super) socket: FilterPlace,
    pub(super) shared: Arc<Shared>,
    pub(super) snap_len: u32,
    /// Packets rejected by the kernel's filter; `None` if they cannot be counted.
    pub(super) refusals: Option<Refusals>,
    /// Whether the filter runs in the pump. Once it does, it stays there.
    pub(super) in_pump: AtomicBool,
    /// The filter that the kernel runs.
    pub(super) in_force: InForce<InKernel>,
}

/// A filter that the kernel runs.
#[derive(Debug, Default)]
pub(super) enum InKernel {
    /// No filter.
    #[default]
    All,
    /// eBPF, which counts the packets that it rejects.
    Counting(OwnedFd),
    Classic(Vec<Instruction>),
}

impl InKernel {
    pub(super) fn program(&self) -> packet::SocketFilter<'_> {
        match self {
            Self::All => packet::SocketFilter::All,
            Self::Counting(program) => packet::SocketFilter::Extended(program.as_fd()),
            Self::Classic(instructions) => packet::SocketFilter::Classic(instructions),
        }
    }
}

impl SocketGate {
    /// Returns how many packets the kernel's filter has rejected; `None` if the count cannot be read.
    pub(super) fn refused_in_kernel(&self) -> Option<u64> {
        self.refusals.as_ref().map_or(Some(0), |refusals| refusals.count().ok())
    }

    fn refused(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::FilterRefused { name: self.name.clone(), source: source.into() }
    }

    fn put_in_pump(&self, form: &CompiledForm) -> Result<Undo<'_>, Error> {
        let filter = match form {
            CompiledForm::All => None,
            CompiledForm::Programs => return Err(self.refused("classic BPF is needed here")),
            CompiledForm::Classic(instructions) => {
                Some(PumpFilter::classic(checked(instructions).map_err(|flaw| self.refused(flaw))?))
            }
        };
        // The kernel no longer cuts packets, since a filter must see them whole.
        self.socket.open_to(DEFAULT_SNAP_LEN)?;
        let before = self.shared.exchange(filter);
        Ok(Box::new(move || {
            if let Some(filter) = before {
                self.shared.exchange(filter);
            }
            Ok(())
        }))
    }

    /// Moves the filter to the pump, because the kernel has no room for it. While both filters run, a packet is
    /// captured if it matches both. A packet that is rejected was rejected by the old filter or by the new one, and
    /// neither filter runs on it twice.
    fn move_to_pump(&self, instructions: &[[u32; 4]]) -> Result<Undo<'_>, Error> {
        let program = checked(instructions).map_err(|flaw| self.refused(flaw))?;
        // `None`: the pump has ended, and nothing more arrives.
        let _none_before = self.shared.exchange(Some(PumpFilter::classic(program).behind(self.snap_len)));
        if let Err(error) = self.socket.open_to(DEFAULT_SNAP_LEN) {
            self.shared.exchange(None);
            return Err(error.into());
        }
        self.in_pump.store(true, Ordering::Relaxed);
        let before = self.in_force.replace((InKernel::All, Vec::new()));
        Ok(Box::new(move || {
            self.put_in_kernel(before)?;
            self.in_pump.store(false, Ordering::Relaxed);
            self.shared.exchange(None);
            Ok(())
        }))
    }

    /// Relaxed: exchanges happen one at a time ([`crate::live::filter_control::UpdateLock`]).
    fn is_in_pump(&self) -> bool {
        self.in_pump.load(Ordering::Relaxed)
    }

    /// Returns the filter in the form that the kernel runs.
    fn for_kernel(&self, program: &CompiledFilter) -> Result<InKernel, Error> {
        match (&program.form, program.programs()) {
            (CompiledForm::All, _) => Ok(InKernel::All),
            (CompiledForm::Programs, [program]) => {
                let program = program.try_clone();
                Ok(InKernel::Counting(program.map_err(|error| CallError::new(DUPLICATE, error))?))
            }
            (CompiledForm::Programs, _) => Err(self.refused("one program is needed")),
            (CompiledForm::Classic(instructions), _) => {
                let program = checked(instructions).map_err(|flaw| self.refused(flaw))?;
                Ok(InKernel::Classic(for_the_kernel(&program)))
            }
        }
    }

    fn put_in_kernel(&self, filter: (InKernel, Vec<Labelled>)) -> Result<(InKernel, Vec<Labelled>), Error> {
        // Do this before the first packet is rejected.
        let counted = matches!(filter.0, InKernel::Classic(_)) && self.shared.stop_counting();
        if let Err(error) = self.socket.put(filter.0.program()) {
            if counted {
                self.shared.go_on_counting();
            }
            return Err(error.into());
        }
        Ok(self.in_force.replace(filter))
    }
}

/// Says why a socket on the interface `name` does not accept a filter, and how to fix it.
pub(super) fn no_room(name: &str) -> String {
    let most = packet::filter_room().map_or_else(String::new, |most| format!(" = {most}"));
    let (inside, _) = command::place(name);
    format!(
        "it does not fit into a packet socket (net.core.optmem_max{most}); to make room: {inside}sysctl -w net.core.optmem_max=131072"
    )
}

pub(super) const ENOMEM: i32 = Errno::NOMEM.raw_os_error();

const DUPLICATE: &str = "duplicate a descriptor";

impl Gate for SocketGate {
    fn slot(&self) -> Result<Option<(FilterSlotKind, Vec<OwnedFd>)>, Error> {
        if self.is_in_pump() {
            return Ok(Some((FilterSlotKind::Process, Vec::new())));
        }
        // If there is no room for two filters of this size, there is none for the next filter.
        let roomy = self.in_force.ask(|filter| match filter {
            InKernel::Counting(program) => packet::has_room_for_two(program.as_fd()),
            _ => true,
        });
        let refusals =
            self.refusals.iter().filter(|_| roomy).map(|refusals| refusals.as_fd().try_clone_to_owned());
        let refusals = refusals.collect::<io::Result<_>>();
        let refusals = refusals.map_err(|error| CallError::new(DUPLICATE, error))?;
        Ok(Some((FilterSlotKind::Socket { snap_len: self.snap_len }, refusals)))
    }

    fn put(&self, program: &CompiledFilter) -> Result<Undo<'_>, Error> {
        if self.is_in_pump() {
            return self.put_in_pump(&program.form);
        }
        match (self.put_in_kernel((self.for_kernel(program)?, program.labelled()?)), &program.form) {
            (Ok(before), _) => Ok(Box::new(move || self.put_in_kernel(before).map(drop))),
            (Err(Error::Call(error)), CompiledForm::Classic(instructions)) if error.errno() == ENOMEM => {
                self.move_to_pump(instructions)
            }
            (Err(Error::Call(error)), _) if error.errno() == ENOMEM => Err(self.refused(no_room(&self.name))),
            (Err(error), _) => Err(error),
        }
    }

    fn sets(&self) -> Result<Vec<Labelled>, Error> {
        self.in_force.sets()
    }
}
