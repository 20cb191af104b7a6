//! Standard output, whoever else has it.

use std::io::{self, StdoutLock, Write};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::failure::{self, Failure};

/// Returns standard output. Where another process has set it to non-blocking mode, which is the mode of all that share it,
/// writing waits all the same.
pub(crate) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

/// Prints all of `bytes` on standard output. That its reader has closed it is no failure.
///
/// It flushes: std keeps the lines that a short write left, and ignores errors when it writes them at exit.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = stdout();
    failure::printed(output.write_all(bytes).and_then(|()| output.flush()))
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
