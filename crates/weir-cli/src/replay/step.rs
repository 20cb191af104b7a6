//! One packet after the other, as the user says.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::failure::Failure;
use crate::{style, units};

/// How long standard input is waited for before a look at the flag that a signal sets: it may have come before the wait.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Waits for Enter before each packet.
#[derive(Debug)]
pub(super) struct Step {
    stop: Arc<AtomicBool>,
    number: u64,
    /// Enter need no longer be pressed.
    runs: bool,
}

impl Step {
    pub(super) fn new(stop: Arc<AtomicBool>) -> Self {
        Self { stop, number: 0, runs: false }
    }

    /// Asks for a packet of so many bytes; returns whether it is to be sent.
    pub(super) fn ask(&mut self, bytes: usize) -> Result<bool, Failure> {
        self.number += 1;
        if self.runs {
            return Ok(true);
        }
        let (number, bytes) = (units::grouped(self.number), units::grouped(bytes as u64));
        style::print(&format!(
            "packet {number}, {bytes} bytes: Enter sends it, c sends it and the rest, q quits\n"
        ));
        let answer = self.line().map_err(|error| {
            Failure::new(format_args!("cannot read from standard input: {error}")).hint("leave out --step")
        })?;
        self.runs = answer.as_deref() == Some(b"c");
        Ok(matches!(answer.as_deref(), Some(b"" | b"c")))
    }

    /// Returns the next line that means something; `None`: standard input has ended, or a signal came.
    fn line(&self) -> io::Result<Option<Vec<u8>>> {
        let stdin = rustix::stdio::stdin();
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&NAP)) {
                Ok(0) | Err(Errno::INTR) => continue,
                other => other?,
            };
            match rustix::io::read(stdin, &mut byte)? {
                0 => return Ok(None),
                _ if byte != *b"\n" => line.extend(byte),
                _ => match line.trim_ascii() {
                    word @ (b"" | b"c" | b"q") => return Ok(Some(word.to_vec())),
                    _ => {
                        line.clear();
                        style::print("press Enter, or type c or q\n");
                    }
                },
            }
        }
    }
}
