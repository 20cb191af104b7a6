//! Writes to files through io_uring, several in flight.
//!
//! The ring accepts only writes (`IORING_REGISTER_RESTRICTIONS`): an attacker who controls the process cannot use it to
//! open files, connect sockets, or do anything else that a system call filter would not see.
//!
//! A buffer being written belongs to the [`DiskRing`], and is returned with its completion. This makes the calls safe
//! without requirements on the buffer's type: the ring puts the buffer where nothing moves it, gets its bytes once, and
//! neither accesses nor drops it until the kernel is done. The borrow of those bytes is therefore alive all the time,
//! and any safe `AsRef` implementation must keep them valid and unchanged. Needs Linux 5.10.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;

use io_uring::register::Restriction;
use io_uring::{IoUring, Probe, cqueue, opcode, types};

/// Most bytes per write, as everywhere in Linux (`MAX_RW_COUNT`). A longer buffer is written in part.
const MAX_WRITE: usize = 0x7fff_f000;

/// An io_uring for writes to files. Dropping it waits for writes in flight.
pub struct DiskRing<B: AsRef<[u8]> + 'static> {
    ring: IoUring,
    /// Writes in flight, by their `user_data`.
    slots: Box<[Option<Flight<B>>]>,
    in_flight: usize,
}

/// A write that was submitted to the kernel.
struct Flight<B> {
    /// From `Box::leak`; only a completion may take it back.
    buffer: NonNull<B>,
    offset: u64,
    /// Keeps the file open until it is written.
    _file: Arc<File>,
}

// SAFETY: A flight owns its buffer as a `Box` does. The kernel only reads the buffer's bytes, from any thread.
unsafe impl<B: Send> Send for Flight<B> {}

/// Checks whether a [`DiskRing`] can be created.
///
/// # Errors
///
/// The errors of [`DiskRing::new`].
pub fn available() -> io::Result<()> {
    ring(1).map(drop)
}

fn ring(depth: u16) -> io::Result<IoUring> {
    let ring = IoUring::builder().setup_r_disabled().build(depth.max(1).into())?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    if !probe.is_supported(opcode::Write::CODE) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    ring.submitter().register_restrictions(&mut [Restriction::sqe_op(opcode::Write::CODE)])?;
    ring.submitter().register_enable_rings()?;
    Ok(ring)
}

/// A finished write.
#[derive(Debug)]
pub struct Completion<B> {
    /// The buffer passed to [`DiskRing::write_at`].
    pub buffer: B,
    /// The offset passed to [`DiskRing::write_at`].
    pub offset: u64,
    /// Number of bytes written, from the start of the buffer; may be fewer than all.
    pub result: io::Result<usize>,
}

impl<B: AsRef<[u8]> + 'static> DiskRing<B> {
    /// Creates a ring for up to `depth` writes at a time.
    ///
    /// # Errors
    ///
    /// Any error means that io_uring is not available: the kernel was built without it (`ENOSYS`), a sandbox or
    /// `kernel.io_uring_disabled` forbids it (`EPERM`), or memory is short. Use plain writes instead.
    pub fn new(depth: u16) -> io::Result<Self> {
        let ring = ring(depth)?;
        let slots = (0..depth.max(1)).map(|_| None).collect();
        Ok(Self { ring, slots, in_flight: 0 })
    }

    /// Returns the number of writes in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns whether another write must wait for a completion.
    pub fn is_full(&self) -> bool {
        self.in_flight == self.slots.len()
    }

    /// Starts to write `buffer` at `offset` of `file`. [`completions`](Self::completions) returns the result, including
    /// errors.
    ///
    /// # Errors
    ///
    /// Returns the buffer if the ring [is full](Self::is_full).
    pub fn write_at(&mut self, file: &Arc<File>, buffer: B, offset: u64) -> Result<(), B> {
        let Some(slot) = self.slots.iter().position(Option::is_none) else {
            return Err(buffer);
        };
        let buffer = NonNull::from(Box::leak(Box::new(buffer)));
        // SAFETY: The box was created in the line above; from now on it is only read until its completion.
        let bytes = unsafe { buffer.as_ref() }.as_ref();
        let len = u32::try_from(bytes.len().min(MAX_WRITE)).expect("MAX_WRITE fits");
        let entry = opcode::Write::new(types::Fd(file.as_raw_fd()), bytes.as_ptr(), len)
            .offset(offset)
            .build()
            .user_data(slot as u64);
        // SAFETY: `bytes` stays valid and unchanged until the completion (see the module's documentation), and the
        // flight keeps the file open.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the submission queue has an entry for each slot");
        self.slots[slot] = Some(Flight { buffer, offset, _file: Arc::clone(file) });
        self.in_flight += 1;
        // An entry that the kernel does not accept now (EINTR, EAGAIN, EBUSY) stays queued until the next call.
        let _ = self.ring.submit();
        Ok(())
    }

    /// Waits until `wait` writes in flight, or all if there are fewer, have finished, and takes all finished ones. With
    /// 0, it does not wait.
    ///
    /// # Errors
    ///
    /// The ring itself is broken. Writes in flight then remain in flight.
    pub fn completions(
        &mut self,
        wait: usize,
    ) -> io::Result<impl Iterator<Item = Completion<B>> + use<'_, B>> {
        let wait = wait.min(self.in_flight);
        while !self.ring.submission().is_empty() || self.ring.completion().len() < wait {
            match self.ring.submit_and_wait(wait) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        let Self { ring, slots, in_flight, .. } = self;
        Ok(ring.completion().filter_map(move |entry| {
            let flight =
                usize::try_from(entry.user_data()).ok().and_then(|slot| slots.get_mut(slot)?.take())?;
            *in_flight -= 1;
            Some(flight.land(&entry))
        }))
    }
}

impl<B> Flight<B> {
    /// Takes the buffer back once the kernel is done with it.
    fn land(self, entry: &cqueue::Entry) -> Completion<B> {
        // SAFETY: The pointer is from `Box::leak`. The kernel posts one completion per write, after its last access to
        // the bytes, and a flight is taken out of its slot once.
        let buffer = unsafe { Box::from_raw(self.buffer.as_ptr()) };
        let result =
            usize::try_from(entry.result()).map_err(|_| io::Error::from_raw_os_error(-entry.result()));
        Completion { buffer: *buffer, offset: self.offset, result }
    }
}

impl<B: AsRef<[u8]> + 'static> Drop for DiskRing<B> {
    /// If waiting fails, this leaks the buffers: the kernel may still read them.
    fn drop(&mut self) {
        while self.in_flight > 0 {
            match self.completions(self.in_flight) {
                Ok(completions) => completions.for_each(drop),
                Err(_) => return,
            }
        }
    }
}

impl<B: AsRef<[u8]> + 'static> std::fmt::Debug for DiskRing<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskRing")
            .field("depth", &self.slots.len())
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_does_nothing_but_write() {
        let Ok(mut ring) = ring(2) else { return };
        // SAFETY: this operation refers to no memory.
        unsafe { ring.submission().push(&opcode::Nop::new().build()) }.expect("room");
        ring.submit_and_wait(1).expect("an answer");
        assert_eq!(ring.completion().next().expect("one").result(), -libc::EACCES);
        let refused = ring.submitter().register_eventfd(0).expect_err("nothing more is registered");
        assert_eq!(refused.raw_os_error(), Some(libc::EACCES));
    }
}
