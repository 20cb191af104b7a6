//! Waiting until all currently running programs have returned: an RCU grace period in the kernel.

use std::os::fd::AsRawFd as _;

use super::map::{Map, MapKind};
use crate::CallError;

/// A way to wait for grace periods. Creating it needs `CAP_BPF`, waiting needs no privileges.
///
/// A call that changes a map of maps returns once no program can be using the map that it replaced
/// (`maybe_wait_bpf_programs` in the kernel's kernel/bpf/syscall.c). `membarrier(2)` waits for the same, but fails on
/// kernels with `nohz_full` processors, so it is only the fallback for processes that may not create maps.
#[derive(Debug)]
pub struct Grace(Option<Maps>);

#[derive(Debug)]
struct Maps {
    outer: Map,
    inner: Map,
}

impl Grace {
    /// Creates the maps. Without `CAP_BPF` or memory, there are none.
    pub fn new() -> Self {
        Self(Maps::new().ok())
    }

    /// Returns whether waiting works on every kernel, with `nohz_full` or not.
    pub fn is_sure(&self) -> bool {
        self.0.is_some()
    }

    /// Waits until all currently running programs have returned: some milliseconds.
    ///
    /// # Errors
    ///
    /// None if it [is sure](Self::is_sure); otherwise `EINVAL` on a kernel with `nohz_full` processors.
    pub fn wait(&self) -> Result<(), CallError> {
        match &self.0 {
            Some(maps) => maps.exchange(),
            None => membarrier(),
        }
    }
}

impl Default for Grace {
    fn default() -> Self {
        Self::new()
    }
}

impl Maps {
    fn new() -> Result<Self, CallError> {
        let inner = Map::new(MapKind::Array, 4, 4, 1)?;
        Ok(Self { outer: Map::of_maps(&inner)?, inner })
    }

    fn exchange(&self) -> Result<(), CallError> {
        let exchanged = self.outer.update(&[0; 4], &self.inner.as_raw_fd().to_ne_bytes());
        exchanged.map_err(|error| CallError::new("wait until no eBPF program runs", error.source))
    }
}

fn membarrier() -> Result<(), CallError> {
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: no pointers are passed.
    match unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) } {
        0 => Ok(()),
        _ => Err(CallError::last("wait until no eBPF program runs: membarrier")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_make_maps_waits_by_them_and_others_by_the_call() {
        let grace = Grace::new();
        assert_eq!(grace.is_sure(), Map::new(MapKind::Array, 4, 4, 1).is_ok());
        grace.wait().expect("it waits");
        grace.wait().expect("it waits again");
        Grace(None).wait().expect("no nohz_full processors");
    }
}
