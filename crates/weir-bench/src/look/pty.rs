//! A terminal that shows nothing: the other end of a pseudo-terminal, read as fast as it can be, or not at all.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::process::pin;
use crate::program::READER_CPU;

/// Time between checks whether to read on.
const LOOK: Duration = Duration::from_millis(5);

/// What the terminal showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) bytes: u64,
    /// Lines of packets.
    pub(super) lines: u64,
    /// Packets that marks stand for: `[1,204 not printed]`.
    pub(super) not_printed: u64,
}

/// Reads what a program prints, in a thread of its own, while it is not stopped.
#[derive(Debug)]
pub(super) struct Terminal {
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<Shown>,
}

impl Terminal {
    /// Opens a terminal; gives the end for the program, too.
    pub(super) fn open() -> io::Result<(Self, File)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = open(Path::new(name.to_str().map_err(io::Error::other)?), flags, Mode::empty())?;
        // Relaxed: it says nothing about other memory.
        let stopped = Arc::<AtomicBool>::default();
        let thread = thread::spawn({
            let stopped = Arc::clone(&stopped);
            move || {
                // On the program's processor: the other processor makes packets, whoever prints.
                let _anywhere = pin(READER_CPU);
                read(File::from(ours), &stopped)
            }
        });
        Ok((Self { stopped, thread }, File::from(theirs)))
    }

    /// Stops the output, as Ctrl-S does, or lets it go on.
    pub(super) fn stop(&self, stopped: bool) {
        self.stopped.store(stopped, Relaxed);
    }

    /// Everything, once no program has the other end any more.
    pub(super) fn finish(self) -> Shown {
        self.stop(false);
        self.thread.join().expect("the thread only reads")
    }
}

fn read(mut terminal: impl Read, stopped: &AtomicBool) -> Shown {
    let (mut shown, mut line, mut bytes) = (Shown::default(), Vec::new(), vec![0; 64 << 10]);
    loop {
        while stopped.load(Relaxed) {
            thread::sleep(LOOK);
        }
        // An error is the end of a pseudo-terminal.
        let Ok(read @ 1..) = terminal.read(&mut bytes) else { return shown };
        shown.bytes += read as u64;
        for part in bytes[..read].split_inclusive(|&byte| byte == b'\n') {
            line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                match not_printed(&line) {
                    Some(packets) => shown.not_printed += packets,
                    None => shown.lines += 1,
                }
                line.clear();
            }
        }
    }
}

/// Of a mark, the number of packets.
fn not_printed(line: &[u8]) -> Option<u64> {
    let number = line.trim_ascii().strip_prefix(b"[")?.strip_suffix(b" not printed]")?;
    std::str::from_utf8(number).ok()?.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_and_marks_are_told_apart() {
        let (terminal, mut program) = Terminal::open().expect("a terminal");
        terminal.stop(true);
        program.write_all(b"10:00:00.000001 IP a > b\n[1,204 not printed]\n").expect("room");
        terminal.stop(false);
        program.write_all(b"[IP] is no mark\n").expect("room");
        drop(program);
        let shown = terminal.finish();
        // On a terminal each line feed comes with a carriage return.
        assert_eq!(shown, Shown { bytes: 61 + 3, lines: 2, not_printed: 1204 });
    }
}
