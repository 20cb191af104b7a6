//! Waiting until every program that runs now has returned: a grace period of the kernel's RCU.

use std::os::fd::AsRawFd as _;

use super::map::{Map, MapKind};
use crate::CallError;

/// Waits for grace periods. It is made with `CAP_BPF`, and waits without any privilege.
///
/// Who changes a map of maps returns from the call once no program can be using the map that was in it before
/// (`maybe_wait_bpf_programs` in the kernel's kernel/bpf/syscall.c). `membarrier(2)` waits for the same, but refuses to where
/// the kernel has `nohz_full` processors, so it is only for who may not make maps.
#[derive(Debug)]
pub struct Grace(Option<Maps>);

#[derive(Debug)]
struct Maps {
    outer: Map,
    inner: Map,
}

impl Grace {
    /// Makes the maps; without `CAP_BPF`, or memory, there are none.
    pub fn new() -> Self {
        Self(Maps::new().ok())
    }

    /// Whether it waits on every kernel, `nohz_full` or not.
    pub fn is_sure(&self) -> bool {
        self.0.is_some()
    }

    /// Waits until every program that runs now has returned: some milliseconds.
    ///
    /// # Errors
    ///
    /// What the call says: none where it [is sure](Self::is_sure), elsewhere `EINVAL` on a kernel with `nohz_full` processors.
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
