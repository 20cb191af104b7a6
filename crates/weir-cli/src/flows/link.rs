//! A connection to a collector, which nobody waits for without end.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustls::ClientConnection;

use super::line::Ending;
use super::tls;

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
    tls: Option<Box<ClientConnection>>,
    /// What TLS makes of a message.
    sealed: Vec<u8>,
}

/// What is read at a look, at most.
const ROUNDS: usize = 16;

impl Link {
    /// Waits until the socket is connected, and for TLS, if there is any.
    pub(super) fn connected(
        socket: OwnedFd,
        tls: Option<ClientConnection>,
        ending: &Ending,
    ) -> io::Result<Self> {
        let mut link = Self { socket, tls: tls.map(Box::new), sealed: Vec::new() };
        let mut patience = Patience::new(TO_CONNECT, ending);
        let ready = link.wait(PollFlags::OUT, &patience)?;
        if ready.intersects(PollFlags::ERR | PollFlags::HUP) {
            // Reading says why.
            read(&link.socket, &mut [0; 1])?;
            return Err(io::ErrorKind::NotConnected.into());
        }
        link.seal(&mut patience)?;
        while link.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
            link.wait(PollFlags::IN, &patience)?;
            let heard = link.hear();
            // A certificate that is refused is told to the collector.
            link.seal(&mut patience)?;
            heard?;
        }
        Ok(link)
    }

    /// Writes what TLS has to say.
    fn seal(&mut self, patience: &mut Patience<'_>) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        self.sealed.clear();
        while tls.wants_write() {
            tls.write_tls(&mut self.sealed)?;
        }
        let sealed = std::mem::take(&mut self.sealed);
        let put = self.put(&sealed, patience);
        self.sealed = sealed;
        put
    }

    /// Reads what is there.
    fn hear(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        for _ in 0..ROUNDS {
            let length = match &mut self.tls {
                None => Raw(&self.socket).read(&mut buffer),
                Some(tls) => tls.read_tls(&mut Raw(&self.socket)),
            };
            match length {
                Ok(0) => return Err(closed()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            if let Some(tls) = &mut self.tls {
                let state = tls.process_new_packets().map_err(tls::failed)?;
                while tls.reader().read(&mut buffer).is_ok_and(|length| length > 0) {}
                if state.peer_has_closed() {
                    return Err(closed());
                }
            }
        }
        Ok(())
    }

    fn wait(&self, what: PollFlags, patience: &Patience<'_>) -> io::Result<PollFlags> {
        loop {
            let mut one = [PollFd::new(&self.socket, what)];
            match poll(&mut one, Some(&LOOK)) {
                Ok(0) => {}
                Ok(_) => return Ok(one[0].revents()),
                // A signal, which only the thread gets that makes the first connection: the run may be over.
                Err(error) => return Err(error.into()),
            }
            if patience.is_over() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Looks whether the collector has closed the connection, or what it says otherwise, which is of no interest.
    pub(super) fn look(&mut self, ending: &Ending) -> io::Result<()> {
        self.hear()?;
        self.seal(&mut Patience::new(TO_WRITE, ending))
    }

    /// Hands a message to the kernel.
    pub(super) fn write(&mut self, message: &[u8], ending: &Ending) -> io::Result<()> {
        let mut patience = Patience::new(TO_WRITE, ending);
        match &mut self.tls {
            None => self.put(message, &mut patience),
            Some(tls) => {
                tls.writer().write_all(message)?;
                self.seal(&mut patience)
            }
        }
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

/// That the collector has closed the connection.
fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the collector has closed it")
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(tls) = &mut self.tls else { return };
        tls.send_close_notify();
        // If it does not go at once, it does not go.
        let _gone = tls.write_tls(&mut Raw(&self.socket));
    }
}

/// The socket below TLS.
struct Raw<'a>(&'a OwnedFd);

impl Read for Raw<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| read(self.0, &mut *buffer))?)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| write(self.0, bytes))?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn pair() -> (Link, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let ours = TcpStream::connect(listener.local_addr().expect("an address")).expect("the loopback");
        ours.set_nonblocking(true).expect("a socket");
        let theirs = listener.accept().expect("a connection").0;
        (Link::connected(ours.into(), None, &Ending::default()).expect("a connection"), theirs)
    }

    #[test]
    fn a_message_waits_for_a_slow_reader_and_breaks_with_one_that_is_gone() {
        // More than both sockets hold.
        let message = vec![7; 32 << 20];
        let ending = Ending::default();
        let (mut link, mut theirs) = pair();
        link.look(&ending).expect("it is open");
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
            match link.look(&ending) {
                Ok(()) => std::thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert_eq!(closed.to_string(), "the collector has closed it");
    }
}
