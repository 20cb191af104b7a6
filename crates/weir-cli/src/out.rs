//! Standard output, whoever else has it.

use std::io::{self, StdoutLock, Write};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Returns standard output. Where another process has set it to non-blocking mode, which is the mode of all that share it,
/// writing waits all the same.
pub(crate) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

pub(crate) struct Stdout(StdoutLock<'static>);

impl Stdout {
    fn patiently<T>(
        &mut self,
        mut work: impl FnMut(&mut StdoutLock<'static>) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match work(&mut self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            match poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(|stdout| stdout.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.patiently(Write::flush)
    }
}
