//! Files that are closed temporarily and continued later, so that there can be more files than descriptors.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use super::broker::Purpose;
use super::files::{Files, OutFile};
use super::open::{go_on, refusal};
use super::resume_point::ResumePoint;
use super::write_request::{Data, WriteRequest};
use super::{Output, WriteError, Writer, Written};

/// Stands in for the output of a closed file.
struct Resting {
    state: ResumePoint,
    /// Device and inode.
    file: (u64, u64),
}

impl Output for Resting {
    fn put(&mut self, _: WriteRequest) -> io::Result<()> {
        Err(io::Error::other("the file is closed"))
    }

    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn written(&self) -> &Written {
        &self.state.written
    }

    fn buffer(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn resting(&mut self) -> Option<(&mut ResumePoint, (u64, u64))> {
        Some((&mut self.state, self.file))
    }
}

impl Writer {
    /// Closes the file until the next write, so that it takes no descriptor and hardly any memory.
    ///
    /// Single packets are still gathered in memory. A pipe stays open.
    ///
    /// # Errors
    ///
    /// See [`write`](Self::write).
    pub fn suspend(&mut self) -> Result<(), WriteError> {
        self.usable()?;
        let rested = self.file.as_mut().map_or(Ok(()), rest);
        if let Data::Bytes(bytes) = &mut self.batch.data {
            bytes.shrink_to_fit();
        }
        rested.or_else(|source| self.fail_write(source))
    }

    /// Returns whether the file is open.
    pub fn is_open(&self) -> bool {
        self.file.as_ref().is_some_and(|file| !file.is_resting)
    }

    /// Returns the number of bytes of single packets gathered in memory.
    pub fn buffered(&self) -> usize {
        self.batch.data.as_ref().len()
    }

    /// Reopens a file closed by [`suspend`](Self::suspend).
    pub(super) fn wake(&mut self) -> Result<(), WriteError> {
        match &mut self.file {
            Some(file) if file.is_resting => match self.files.wake(file) {
                Ok(()) => Ok(()),
                Err(error) => self.fail(error),
            },
            _ => Ok(()),
        }
    }
}

fn rest(file: &mut OutFile) -> io::Result<()> {
    let Some(regular) = file.regular.as_ref().filter(|_| !file.is_resting) else { return Ok(()) };
    let there = regular.metadata()?;
    let Some(state) = file.output.pause()? else { return Ok(()) };
    file.output = Box::new(Resting { state, file: (there.dev(), there.ino()) });
    (file.regular, file.is_resting) = (None, true);
    Ok(())
}

impl Files {
    /// Reopens a file and continues where it ended.
    fn wake(&self, file: &mut OutFile) -> Result<(), WriteError> {
        let Some((state, place)) = file.output.resting() else { return Ok(()) };
        let path = &file.path;
        let changed = || WriteError::Changed { path: path.clone() };
        let handed = self.broker.open(path, Purpose::Any).map_err(|refused| refusal(path, refused))?;
        if handed.created {
            self.discard(path);
            return Err(changed());
        }
        let there = handed.file.metadata().map_err(|error| refusal(path, error.into()))?;
        if (there.dev(), there.ino()) != place || there.len() != state.written.bytes {
            return Err(changed());
        }
        let regular = Arc::new(handed.file);
        let output = go_on(Arc::clone(&regular), path, &self.options, std::mem::take(state))?;
        (file.output, file.regular, file.is_resting) = (output, Some(regular), false);
        Ok(())
    }
}
