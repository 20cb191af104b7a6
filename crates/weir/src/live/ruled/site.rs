//! Where programs of rules are.

use std::fmt::Debug;

use weir_bpf::rules;
use weir_sys::CallError;

use super::loader::{Loaded, Loader};
use crate::Error;

/// A place for programs, of which one set is there at a time.
pub(crate) trait Site: Debug + Send {
    /// Returns whether programs cannot be replaced.
    fn is_fixed(&self) -> bool {
        false
    }

    /// Puts programs in the place of those that are there. Some may be there if this fails.
    fn put(&self, programs: &rules::Rules) -> Result<(), CallError>;

    /// Replaces the programs `old` by `new`. If one is refused, the old ones are in force.
    fn exchange(&self, new: &rules::Rules, old: &rules::Rules) -> Result<(), CallError> {
        self.put(new).inspect_err(|_| {
            // What was not replaced yet stays as it is.
            let _first_error_counts = self.put(old);
        })
    }

    /// Accepts rules that were on trial.
    fn accept(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns whether the rules stay in force without the process.
    fn stay(&self) -> bool {
        false
    }

    /// Takes the programs off, as far as they are still there, unless they stay. `gone`: the interface is.
    fn end(&mut self, gone: bool) -> Result<(), CallError>;
}

/// Rules in their place, and what later ones are loaded for.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) site: Box<dyn Site>,
    pub(crate) loaded: Loaded,
    pub(crate) loader: Loader,
}
