//! Answers scrapes: one thread, a few connections at a time, each for a few seconds. Who is slower than that, sends more
//! than a request, or comes while all places are taken by others costs them nothing but the oldest place.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Latest;
use super::address::{Listener, Stream};
use super::http::{self, LONGEST, Request};

/// Connections at a time; the next one takes the place of the oldest.
const PLACES: usize = 16;
/// How long a connection may last.
const PATIENCE: Duration = Duration::from_secs(5);
/// After an error of `accept` that may last, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

struct Client {
    stream: Box<dyn Stream>,
    request: Vec<u8>,
    /// What is to be sent, and how much of it is. `None`: the request is not complete.
    answer: Option<(Arc<[u8]>, usize)>,
    until: Instant,
}

/// Answers until the process ends.
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

/// Waits until somebody wants to connect, or one of the clients can go on, or `longest` is over.
fn wait(listener: &Listener, clients: &VecDeque<Client>, longest: Option<Duration>) -> (bool, Vec<bool>) {
    let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
    fds.extend(clients.iter().map(|client| {
        let sending = client.answer.as_ref().is_some_and(|(answer, sent)| *sent < answer.len());
        PollFd::from_borrowed_fd(client.stream.as_fd(), if sending { PollFlags::OUT } else { PollFlags::IN })
    }));
    // A little more, or it would wake just before the time is over.
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
            clients.push_back(Client { stream, request: Vec::new(), answer: None, until });
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => {}
        Err(_) => thread::sleep(PAUSE),
    }
}

impl Client {
    /// Receives or sends what can be without waiting. Whether there is more to come.
    fn go_on(&mut self, latest: &Latest) -> bool {
        match &mut self.answer {
            None => self.receive(latest),
            Some((answer, sent)) if *sent < answer.len() => match self.stream.write(&answer[*sent..]) {
                Ok(0) => false,
                Ok(bytes) => {
                    *sent += bytes;
                    if *sent == answer.len() {
                        // Closing it while the other side still sends would take the answer back.
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
                self.answer = Request::parse(&self.request).map(|request| (answer(&request, latest), 0));
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
        Request::Metrics { form, body } => latest.get().answer(*form, *body),
        Request::Other { status, text, body } => {
            http::answer(status, "text/plain; charset=utf-8", text, *body).into()
        }
    }
}
