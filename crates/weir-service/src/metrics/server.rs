//! Answers scrapes: one thread, a few connections at a time, each for a few seconds. A client that is slower, sends
//! more than a request, or arrives when all slots are taken costs the others at most the oldest slot.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Latest;
use super::address::{Listener, Stream};
use super::http::{self, LONGEST, Request};

/// Most connections at a time; the next one replaces the oldest.
const PLACES: usize = 16;
/// Longest duration of a connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause after an error of `accept` that may persist, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

struct Client {
    stream: Box<dyn Stream>,
    /// It came by a Unix socket, so it may call this host anything.
    any_host: bool,
    request: Vec<u8>,
    /// The response, and the number of bytes sent. `None`: the request is incomplete.
    answer: Option<(Arc<[u8]>, usize)>,
    until: Instant,
}

/// Serves clients until the process ends.
pub(super) fn run(listener: &Listener, latest: &Latest) {
    let mut clients: VecDeque<Client> = VecDeque::new();
    loop {
        let next = clients.front().map(|client| client.until.saturating_duration_since(Instant::now()));
        let (somebody, ready) = wait(listener, &clients, next);
        let now = Instant::now();
        let mut ready = ready.into_iter();
        clients.retain_mut(|client| {
            let goes_on = !ready.next().unwrap_or(false) || client.go_on(latest);
            goes_on && now < client.until
        });
        if somebody {
            accept(listener, &mut clients);
        }
    }
}

/// Waits until a client wants to connect, an existing one can continue, or `longest` has elapsed.
fn wait(listener: &Listener, clients: &VecDeque<Client>, longest: Option<Duration>) -> (bool, Vec<bool>) {
    let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
    fds.extend(clients.iter().map(|client| {
        let sending = client.answer.as_ref().is_some_and(|(answer, sent)| *sent < answer.len());
        PollFd::from_borrowed_fd(client.stream.as_fd(), if sending { PollFlags::OUT } else { PollFlags::IN })
    }));
    // Rounded up, or it would wake just before the time has elapsed.
    let longest = longest.and_then(|longest| Timespec::try_from(longest + Duration::from_millis(1)).ok());
    if poll(&mut fds, longest.as_ref()).is_err() {
        thread::sleep(PAUSE);
    }
    let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
    (ready.next().unwrap_or(false), ready.collect())
}

fn accept(listener: &Listener, clients: &mut VecDeque<Client>) {
    match listener.accept() {
        Ok(stream) => {
            if clients.len() == PLACES {
                clients.pop_front();
            }
            let until = Instant::now() + PATIENCE;
            let any_host = matches!(listener, Listener::Unix(..));
            clients.push_back(Client { stream, any_host, request: Vec::new(), answer: None, until });
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => {}
        Err(_) => thread::sleep(PAUSE),
    }
}

impl Client {
    /// Receives or sends without blocking. Returns whether the connection continues.
    fn go_on(&mut self, latest: &Latest) -> bool {
        match &mut self.answer {
            None => self.receive(latest),
            Some((answer, sent)) if *sent < answer.len() => match self.stream.write(&answer[*sent..]) {
                Ok(0) => false,
                Ok(bytes) => {
                    *sent += bytes;
                    if *sent == answer.len() {
                        // Closing the connection while the peer is sending would discard the response.
                        self.stream.end();
                    }
                    true
                }
                Err(error) => lasts(&error),
            },
            Some(_) => match self.stream.read(&mut [0; 1024]) {
                Ok(0) => false,
                Ok(_) => true,
                Err(error) => lasts(&error),
            },
        }
    }

    fn receive(&mut self, latest: &Latest) -> bool {
        let mut buffer = [0; 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(bytes) => {
                self.request.extend_from_slice(&buffer[..bytes]);
                debug_assert!(self.request.len() < LONGEST + buffer.len());
                let request = Request::parse(&self.request, self.any_host);
                self.answer = request.map(|request| (answer(&request, latest), 0));
                true
            }
            Err(error) => lasts(&error),
        }
    }
}

fn lasts(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn answer(request: &Request, latest: &Latest) -> Arc<[u8]> {
    match request {
        Request::Metrics { format, body } => latest.get().answer(*format, *body),
        Request::Other { status, text, body } => {
            http::answer(status, "text/plain; charset=utf-8", text, *body).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Mutex;

    use super::super::Snapshot;
    use super::*;
    use crate::page::ExpositionFormat;
    use crate::summary::Summary;

    /// A connection ends when the peer has closed it, and not when all is sent.
    #[test]
    fn a_client_is_answered_in_pieces_and_closes_itself() {
        let summary = Summary::new(&[], &weir::CaptureStats::default(), None);
        let latest = Latest(Mutex::new(Arc::new(Snapshot::of(Box::new(summary)))));
        let (mut theirs, ours) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("a socket");
        let (request, until) = (Vec::new(), Instant::now() + PATIENCE);
        let mut client = Client { stream: Box::new(ours), any_host: true, request, answer: None, until };
        assert!(client.go_on(&latest), "nothing was sent yet");
        for piece in ["GET /met", "rics HTTP/1.1\r\n\r"] {
            theirs.write_all(piece.as_bytes()).expect("room");
            assert!(client.go_on(&latest) && client.answer.is_none(), "the request is not complete");
        }
        theirs.write_all(b"\n").expect("room");
        assert!(client.go_on(&latest));
        let page = latest.get().answer(ExpositionFormat::Prometheus, true);
        assert_eq!(client.answer.as_ref().map(|(answer, sent)| (&**answer, *sent)), Some((&*page, 0)));
        assert!(client.go_on(&latest));
        let mut received = Vec::new();
        theirs.read_to_end(&mut received).expect("the answer has an end");
        assert_eq!(received, *page);
        assert!(client.go_on(&latest), "the peer has not closed it");
        theirs.write_all(b"more").expect("room");
        assert!(client.go_on(&latest) && client.go_on(&latest), "what comes late is not read");
        drop(theirs);
        assert!(!client.go_on(&latest));
    }
}
