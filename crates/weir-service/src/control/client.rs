//! The side of the client: finds running captures, asks them, and replaces their filters.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use serde_json::value::RawValue;
use weir::filter::PortableFilter;
use weir::filter_control::{Changed, FilterTarget, PortableMembers, SetChange, SetLabel};
use weir::parts::{CompiledFilter, FilterSlot};

use super::exact::{ExactDone, ExactOrder};
pub use super::message::About;
use super::message::{Answer, Ask, Request, SentProgram, SentSlot, VERSION};
use super::order::{Obeyed, Order};
use super::{socket, wire};
use crate::{ClientError, Error};

/// Longest time for a capture to answer, or to compile a filter or change a large set.
const PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE_FOR_CHANGE: Duration = Duration::from_secs(30);
/// For what a guard does between two looks at its interface: 10,000 exact rules take less than a second.
const PATIENCE_FOR_ORDER: Duration = Duration::from_secs(10);

/// A connection to a running capture.
#[derive(Debug)]
pub struct Running {
    stream: UnixStream,
    path: PathBuf,
}

/// Filters that have been replaced.
#[derive(Debug)]
pub struct Done {
    /// Time that the capture took to put all of them in force, in nanoseconds.
    pub nanoseconds: u64,
    /// Sets that had been changed and are back to the members in the filter.
    pub forgotten: Vec<String>,
}

impl Running {
    /// Returns all captures that answer.
    pub fn all() -> Vec<Self> {
        let directories = socket::directories();
        directories.iter().for_each(|directory| socket::sweep(directory));
        let paths = directories.iter().flat_map(|directory| socket::sockets(directory));
        paths.filter_map(|path| Self::connect(&path).ok()).collect()
    }

    /// Connects to the only capture that is running.
    ///
    /// # Errors
    ///
    /// If there is none, or more than one.
    pub fn the_only_one() -> Result<Self, ClientError> {
        let mut running = Self::all();
        match (running.pop(), running.len()) {
            (None, _) => Err(ClientError::NoneRuns),
            (Some(capture), 0) => Ok(capture),
            (Some(_), others) => Err(ClientError::SeveralRun(others + 1)),
        }
    }

    /// Connects to the capture of this process.
    ///
    /// # Errors
    ///
    /// If it has no socket, or does not answer.
    pub fn of_process(process: u32) -> Result<Self, ClientError> {
        let directories = socket::directories();
        let mut paths = directories.iter().map(|directory| socket::of_process(directory, process));
        let path = paths.find(|path| path.exists()).ok_or(ClientError::NoProcess(process))?;
        Self::at(&path)
    }

    /// Connects to the capture that listens at `path`.
    ///
    /// # Errors
    ///
    /// If none listens there.
    pub fn at(path: &Path) -> Result<Self, ClientError> {
        Self::connect(path).map_err(|error| ClientError::Connect { path: path.to_owned(), error })
    }

    fn connect(path: &Path) -> io::Result<Self> {
        let stream = socket::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, path: path.to_owned() })
    }

    /// Returns the path of its socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks the capture to describe itself.
    ///
    /// # Errors
    ///
    /// If it does not answer, or refuses.
    pub fn about(&self) -> Result<About, ClientError> {
        match self.ask(Ask::About)? {
            Answer::About(about) => Ok(about),
            other => Err(unexpected(other)),
        }
    }

    /// Asks for the account so far, as JSON.
    ///
    /// # Errors
    ///
    /// If the capture does not answer, or refuses.
    pub fn status(&self) -> Result<Box<RawValue>, ClientError> {
        match self.ask(Ask::Status)? {
            Answer::Status(account) => Ok(account),
            other => Err(unexpected(other)),
        }
    }

    /// Returns where the filters are, and whether the capture compiles their programs. It does for all but root, and no
    /// descriptor of a program goes to a process of another user than root, whatever it claims.
    ///
    /// # Errors
    ///
    /// If the capture does not answer, or refuses.
    pub fn slots(&self) -> Result<(Vec<FilterSlot>, bool), Error> {
        self.send(Ask::Slots, &[])?;
        match self.receive()? {
            (Answer::Slots { slots, made_here }, descriptors) => {
                let is_of_root = socket_peercred(&self.stream).is_ok_and(|peer| peer.uid.is_root());
                Ok((SentSlot::received(slots, descriptors)?, made_here || !is_of_root))
            }
            (other, _) => Err(unexpected(other).into()),
        }
    }

    /// Sends `filter` for the capture to compile; `None`: no filter.
    ///
    /// # Errors
    ///
    /// If the capture does not answer, or cannot compile the filter, or an interface rejects it.
    pub fn say_filter(&self, filter: Option<PortableFilter>) -> Result<Done, ClientError> {
        self.replace(Ask::Filter(filter.map(Box::new)), &[])
    }

    /// Sends the programs of a filter, which is described by `label`; `None`: no filter.
    ///
    /// # Errors
    ///
    /// If the capture does not answer, or an interface rejects its program.
    pub fn put(&self, label: Option<String>, programs: &[CompiledFilter]) -> Result<Done, ClientError> {
        let sent = programs.iter().map(SentProgram::of).collect();
        let beside = programs.iter().flat_map(|program| &program.descriptors).map(OwnedFd::as_fd);
        self.replace(Ask::Put { filter: label, programs: sent }, &beside.collect::<Vec<_>>())
    }

    fn replace(&self, ask: Ask, beside: &[BorrowedFd<'_>]) -> Result<Done, ClientError> {
        self.stream.set_read_timeout(Some(PATIENCE_FOR_CHANGE)).map_err(ClientError::Receive)?;
        self.send(ask, beside)?;
        match self.receive()?.0 {
            Answer::Done { nanoseconds, forgotten } => Ok(Done { nanoseconds, forgotten }),
            other => Err(unexpected(other)),
        }
    }

    /// Returns each interface with the sets of its filter that can be changed.
    ///
    /// # Errors
    ///
    /// If the capture does not answer, or refuses.
    pub fn sets(&self) -> Result<Vec<(FilterTarget, Vec<SetLabel>)>, ClientError> {
        match self.ask(Ask::Sets)? {
            Answer::Sets(targets) => Ok(targets),
            other => Err(unexpected(other)),
        }
    }

    /// Changes this set, and returns what changed.
    ///
    /// # Errors
    ///
    /// If the capture does not answer, or has no such set; [`ClientError::PartlyChanged`].
    pub fn change_set(
        &self,
        name: &str,
        change: SetChange,
        members: PortableMembers,
    ) -> Result<Changed, ClientError> {
        let (name, members) = (name.to_owned(), Box::new(members));
        self.stream.set_read_timeout(Some(PATIENCE_FOR_CHANGE)).map_err(ClientError::Receive)?;
        match self.ask(Ask::ChangeSet { name, change, members })? {
            Answer::Changed { added, removed } => Ok(Changed { added, removed }),
            Answer::ChangedInPart { why } => Err(ClientError::PartlyChanged(why)),
            other => Err(unexpected(other)),
        }
    }

    /// Switches the statistics beside the capture on or off.
    ///
    /// # Errors
    ///
    /// If the capture does not answer, or has none.
    pub fn count(&self, on: bool) -> Result<(), ClientError> {
        match self.ask(Ask::Count { on })? {
            Answer::Noted => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Has a guard do something.
    ///
    /// # Errors
    ///
    /// If it does not answer, or refuses.
    pub fn order(&self, order: Order) -> Result<Obeyed, ClientError> {
        let patience = match &order {
            Order::Rules(_) => PATIENCE_FOR_CHANGE,
            Order::Exact(_) | Order::Confirm => PATIENCE_FOR_ORDER,
        };
        self.stream.set_read_timeout(Some(patience)).map_err(ClientError::Receive)?;
        match self.ask(Ask::Order(Box::new(order)))? {
            Answer::Obeyed(done) => Ok(done),
            other => Err(unexpected(other)),
        }
    }

    /// Has a guard change or list exact rules.
    ///
    /// # Errors
    ///
    /// If it does not answer, or refuses.
    pub fn exact(&self, order: ExactOrder) -> Result<ExactDone, ClientError> {
        match self.order(Order::Exact(order))? {
            Obeyed::Exact(done) => Ok(done),
            Obeyed::Done => Err(ClientError::Unexpected("done".to_owned())),
        }
    }

    fn ask(&self, ask: Ask) -> Result<Answer, ClientError> {
        self.send(ask, &[])?;
        Ok(self.receive()?.0)
    }

    fn send(&self, ask: Ask, beside: &[BorrowedFd<'_>]) -> Result<(), ClientError> {
        wire::send(&self.stream, &Request { version: VERSION, ask }, beside).map_err(ClientError::Send)
    }

    fn receive(&self) -> Result<(Answer, Vec<OwnedFd>), ClientError> {
        let received = wire::receive(&self.stream).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let waited = self.stream.read_timeout().ok().flatten();
                ClientError::Late(waited.unwrap_or(PATIENCE))
            }
            _ => ClientError::Receive(error),
        })?;
        received.ok_or(ClientError::Closed)
    }
}

fn unexpected(answer: Answer) -> ClientError {
    match answer {
        Answer::Refused { why } => ClientError::Refused(why),
        other => ClientError::Unexpected(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// What a client makes of an answer, and what it has asked, by name.
    fn asked<T: Send>(
        answer: Answer,
        ask: impl FnOnce(&Running) -> Result<T, ClientError> + Send,
    ) -> (Result<T, ClientError>, String) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let running = Running { stream: ours, path: PathBuf::from("socket") };
        thread::scope(|scope| {
            let told = scope.spawn(move || ask(&running));
            let (request, _) =
                wire::receive::<Request<serde_json::Value>>(&theirs).expect("a message").expect("a request");
            assert_eq!(request.version, VERSION);
            wire::send(&theirs, &answer, &[]).expect("room");
            (told.join().expect("no panic"), request.ask.to_string())
        })
    }

    fn members() -> PortableMembers {
        PortableMembers::new("53", &[], weir::filter::SystemNames::new()).expect("a port")
    }

    #[test]
    fn each_question_has_its_answer() {
        let about = || About {
            process: 7,
            command: "count".to_owned(),
            interfaces: vec!["eth0".to_owned()],
            filter: None,
            file: Some("file".to_owned()),
        };
        let (told, ask) = asked(Answer::About(about()), Running::about);
        let told = told.expect("an answer");
        assert_eq!((told.process, told.command, ask.as_str()), (7, "count".to_owned(), r#""about""#));
        let account = serde_json::value::to_raw_value(&[1, 2]).expect("JSON");
        let (told, ask) = asked(Answer::Status(account), Running::status);
        assert_eq!((told.expect("an answer").get(), ask.as_str()), ("[1,2]", r#""status""#));
        for (on, wanted) in [(true, r#"{"count":{"on":true}}"#), (false, r#"{"count":{"on":false}}"#)] {
            let (told, ask) = asked(Answer::Noted, |running| running.count(on));
            told.expect("an answer");
            assert_eq!(ask, wanted);
        }
        let done = Answer::Done { nanoseconds: 5, forgotten: vec!["bad".to_owned()] };
        let (told, ask) = asked(done, |running| running.say_filter(None));
        let told = told.expect("an answer");
        assert_eq!(
            (told.nanoseconds, told.forgotten, ask.as_str()),
            (5, vec!["bad".to_owned()], r#"{"filter":null}"#)
        );
        let change = |running: &Running| running.change_set("bad", SetChange::Remove, members());
        let (told, ask) = asked(Answer::Changed { added: 2, removed: 3 }, change);
        let told = told.expect("an answer");
        assert_eq!((told.added, told.removed), (2, 3));
        assert!(ask.contains(r#""change":"remove""#) && ask.contains(r#""name":"bad""#), "{ask}");
        let (told, _) = asked(Answer::ChangedInPart { why: "full".to_owned() }, change);
        assert!(matches!(told, Err(ClientError::PartlyChanged(why)) if why == "full"));
        let (told, ask) = asked(Answer::Sets(vec![]), Running::sets);
        assert_eq!((told.expect("an answer").len(), ask.as_str()), (0, r#""sets""#));
    }

    #[test]
    fn a_refusal_and_another_answer_are_errors() {
        let refused = || Answer::Refused { why: "no".to_owned() };
        let is_refusal =
            |told: Result<(), ClientError>| matches!(told, Err(ClientError::Refused(why)) if why == "no");
        assert!(is_refusal(asked(refused(), |running| running.about().map(drop)).0));
        assert!(is_refusal(asked(refused(), |running| running.status().map(drop)).0));
        assert!(is_refusal(asked(refused(), |running| running.sets().map(drop)).0));
        assert!(is_refusal(asked(refused(), |running| running.count(true)).0));
        assert!(is_refusal(asked(refused(), |running| running.say_filter(None).map(drop)).0));
        assert!(is_refusal(asked(refused(), |running| running.put(None, &[]).map(drop)).0));
        let change = |running: &Running| running.change_set("bad", SetChange::Add, members()).map(drop);
        assert!(is_refusal(asked(refused(), change).0));
        let other = asked(Answer::Noted, |running| running.sets().map(drop)).0;
        assert!(matches!(other, Err(ClientError::Unexpected(_))));
    }
}
