//! A connection to a collector, which nobody waits for without end.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, retry_on_intr, write};

use super::line::Ending;

/// How long a connection may take to be made.
const TO_CONNECT: Duration = Duration::from_secs(10);
/// How long a collector may take nothing.
const TO_WRITE: Duration = Duration::from_secs(30);
/// The same once the run ends.
const AT_THE_END: Duration = Duration::from_secs(3);
/// Between two looks whether the run ends.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// How long something may take.
struct Patience<'a> {
    since: Instant,
    longest: Duration,
    ending: &'a Ending,
}

impl<'a> Patience<'a> {
    fn new(longest: Duration, ending: &'a Ending) -> Self {
        Self { since: Instant::now(), longest, ending }
    }

    /// There was some progress.
    fn renew(&mut self) {
        self.since = Instant::now();
    }

    fn is_over(&self) -> bool {
        let at_the_end = self.ending.since().map(|end| end.max(self.since) + AT_THE_END);
        let until = (self.since + self.longest).min(at_the_end.unwrap_or(self.since + self.longest));
        Instant::now() >= until
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    socket: OwnedFd,
}

impl Link {
    /// Waits until the socket is connected.
    pub(super) fn connected(socket: OwnedFd, ending: &Ending) -> io::Result<Self> {
        let link = Self { socket };
        let ready = link.wait(PollFlags::OUT, &Patience::new(TO_CONNECT, ending))?;
        if ready.intersects(PollFlags::ERR | PollFlags::HUP) {
            // Reading says why.
            read(&link.socket, &mut [0; 1])?;
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(link)
    }

    fn wait(&self, what: PollFlags, patience: &Patience<'_>) -> io::Result<PollFlags> {
        loop {
            let mut one = [PollFd::new(&self.socket, what)];
            match poll(&mut one, Some(&LOOK)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(one[0].revents()),
                Err(error) => return Err(error.into()),
            }
            if patience.is_over() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Looks whether the collector has closed the connection, or what it says otherwise, which is of no interest.
    pub(super) fn look(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        match retry_on_intr(|| read(&self.socket, &mut buffer)) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the collector has closed it")),
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands a message to the kernel.
    pub(super) fn write(&mut self, message: &[u8], ending: &Ending) -> io::Result<()> {
        self.put(message, &mut Patience::new(TO_WRITE, ending))
    }

    fn put(&self, mut bytes: &[u8], patience: &mut Patience<'_>) -> io::Result<()> {
        while !bytes.is_empty() {
            match write(&self.socket, bytes) {
                Ok(written) => {
                    bytes = &bytes[written..];
                    patience.renew();
                }
                Err(Errno::AGAIN) => {
                    self.wait(PollFlags::OUT, patience)?;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn pair() -> (Link, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let ours = TcpStream::connect(listener.local_addr().expect("an address")).expect("the loopback");
        ours.set_nonblocking(true).expect("a socket");
        let theirs = listener.accept().expect("a connection").0;
        (Link::connected(ours.into(), &Ending::default()).expect("a connection"), theirs)
    }

    #[test]
    fn a_message_waits_for_a_slow_reader_and_breaks_with_one_that_is_gone() {
        // More than both sockets hold.
        let message = vec![7; 32 << 20];
        let ending = Ending::default();
        let (mut link, mut theirs) = pair();
        link.look().expect("it is open");
        let reader = std::thread::spawn(move || {
            let mut first = vec![0; 1000];
            theirs.read_exact(&mut first).expect("something");
            std::thread::sleep(Duration::from_millis(50));
            let mut rest = Vec::new();
            theirs.read_to_end(&mut rest).expect("the rest");
            first.len() + rest.len()
        });
        link.write(&message, &ending).expect("all of it");
        drop(link);
        assert_eq!(reader.join().expect("it reads"), message.len());

        let (mut link, mut theirs) = pair();
        let reader = std::thread::spawn(move || theirs.read_exact(&mut [0; 1000]).expect("something"));
        link.write(&message, &ending).expect_err("nobody reads it");
        reader.join().expect("it reads");

        let (mut link, theirs) = pair();
        drop(theirs);
        let closed = loop {
            match link.look() {
                Ok(()) => std::thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert_eq!(closed.to_string(), "the collector has closed it");
    }
}
