//! Answers clients: root and the owner on one thread, members of the group on another, one client at a time.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::Uid;
use serde_json::value::RawValue;
use weir::Filter;
use weir::filter::PortableFilter;
use weir::filter_control::{Changed, FilterControl, PortableMembers, SetChange};
use weir::parts::CompiledFilter;

use super::maker::Maker;
use super::message::{About, Answer, Ask, Request, SentProgram, SentSlot, VERSION, borrowed};
use super::order::Orders;
use super::{Account, Change, What, wire};
use crate::Error;

/// Longest time for a client to start a request, or to send or receive part of a message. Clients of a busy host may not get a
/// processor for a while.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest duration of a connection, and of one from a member, since other members wait for it.
const LONGEST: Duration = Duration::from_secs(60);
const LONGEST_OF_MEMBER: Duration = Duration::from_secs(10);
/// Time between two changes by members: each adds a line to the log and the file.
const PACE: Duration = Duration::from_millis(100);
/// Most members that wait for an answer; others are turned away.
pub(super) const WAITING: usize = 32;
/// Longest wait for an account that is newer than the request. The loop takes at most a quarter of a second per round
/// unless it is delayed; clients wait for five seconds.
const FRESH: Duration = Duration::from_secs(2);
/// Replaces waiting for programs to finish, if that is not possible: far longer than a packet spends in a program.
const UNSETTLED: Duration = Duration::from_millis(20);
/// Longest text from a client that is copied to logs, files and accounts, in bytes. The label of any genuine filter is
/// shorter.
const LONGEST_WORD: usize = 8 << 10;
/// Pause after an error of `accept` that may persist, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// State shared with the loop that receives packets. Locks are held only to move a pointer.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) command: &'static str,
    pub(super) file: Option<String>,
    pub(super) filter_control: FilterControl,
    /// User who may connect besides root.
    pub(super) owner: Uid,
    /// Builds filters for a capture that takes no [programs](Shared::takes_programs_of).
    pub(super) maker: Option<Maker>,
    /// Builds filters for members of a group; `None`: members may not connect.
    pub(super) members_maker: Option<Maker>,
    /// Held while changing filters or sets, but not while a client is waited for.
    pub(super) turn: Mutex<()>,
    pub(super) latest: Mutex<Latest>,
    /// Notified when there is a new account.
    pub(super) published: Condvar,
    /// Number of requests for the account.
    pub(super) asked: AtomicU64,
    /// Changes that are not marked in the file yet.
    pub(super) changes: Mutex<Vec<Change>>,
    /// Held while a client has been told of a change that is not in `changes` yet.
    pub(super) settling: Mutex<()>,
    /// The filter in force.
    pub(super) filter: Mutex<Option<String>>,
    /// Orders for the loop.
    pub(super) orders: Orders,
    /// Its sets whose members differ from those in the filter.
    pub(super) touched: Mutex<BTreeSet<String>>,
}

/// The last copy of the account.
#[derive(Debug)]
pub(super) struct Latest {
    pub(super) account: Arc<dyn Account>,
    /// Number of requests made before it was taken.
    pub(super) answered: u64,
}

/// Serves root and the owner until the process ends. Other clients are passed to `members`, as long as it has room.
pub(super) fn run(listener: &UnixListener, shared: &Shared, members: Option<&SyncSender<(UnixStream, Uid)>>) {
    loop {
        match listener.accept() {
            // Errors on a connection concern only its client.
            Ok((stream, _)) => drop(take(stream, shared, members)),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

fn take(
    stream: UnixStream,
    shared: &Shared,
    members: Option<&SyncSender<(UnixStream, Uid)>>,
) -> io::Result<()> {
    let peer = socket_peercred(&stream)?.uid;
    if peer.is_root() || peer == shared.owner {
        return serve(stream, shared, peer, None);
    }
    // Whoever can connect is a member, because the socket's mode excludes all others.
    let _too_many = members.map(|members| members.try_send((stream, peer)));
    Ok(())
}

/// Serves members until the process ends.
pub(super) fn run_for_members(members: &Receiver<(UnixStream, Uid)>, shared: &Shared) {
    for (stream, peer) in members {
        let _for_that_one_to_see = serve(stream, shared, peer, Some(peer));
    }
}

fn serve(stream: UnixStream, shared: &Shared, peer: Uid, member: Option<Uid>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let supplies = shared.takes_programs_of(peer);
    Talk { stream, shared, supplies, member }.until_ended()
}

/// Returns the request, or the reason why it cannot be decoded.
fn understood(Request { version, ask }: Request<Box<RawValue>>) -> Result<Ask, String> {
    if version != VERSION {
        let process = std::process::id();
        return Err(format!(
            "it uses protocol version {VERSION}, the request version {version}: use the program that \
             captures, /proc/{process}/exe ctl"
        ));
    }
    serde_json::from_str(ask.get()).map_err(|error| format!("unknown request: {error}"))
}

/// Shortens a text from a client to one line of limited length. A second line could pass for weir's own, and control
/// characters could change how others look.
fn in_one_line(word: &str) -> String {
    let mut word = word.replace(char::is_control, " ");
    if word.len() > LONGEST_WORD {
        word.truncate(word.floor_char_boundary(LONGEST_WORD));
        word.push_str("...");
    }
    word
}

/// Waits until the client says more, or has ended. `false`: it did neither within `patience`.
fn is_heard_within(stream: &UnixStream, patience: Duration) -> io::Result<bool> {
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    Ok(poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&patience))? > 0)
}

/// A conversation with a client.
struct Talk<'a> {
    stream: UnixStream,
    shared: &'a Shared,
    /// Whether the client builds programs and has the descriptors for that, or sends expressions.
    supplies: bool,
    /// The client, unless it is root or the capture's user.
    member: Option<Uid>,
}

impl Talk<'_> {
    fn until_ended(&self) -> io::Result<()> {
        let longest = if self.member.is_some() { LONGEST_OF_MEMBER } else { LONGEST };
        let until = Instant::now() + longest;
        let mut patience = PATIENCE;
        while is_heard_within(&self.stream, patience)? {
            let Some((request, descriptors)) = wire::receive::<Request<Box<RawValue>>>(&self.stream)? else {
                return Ok(());
            };
            match understood(request) {
                Ok(ask) => self.answer(ask, descriptors)?,
                Err(why) => return self.say(&Answer::Refused { why }),
            }
            // Building a program for a long filter, or changing a large set, takes time.
            patience = until.saturating_duration_since(Instant::now());
        }
        Ok(())
    }

    /// Records a change, as [`Shared::changed`] does.
    fn changed<T>(&self, what: What, told: impl FnOnce() -> T) -> T {
        let told = self.shared.changed(what, self.member, told);
        if self.member.is_some() {
            thread::sleep(PACE);
        }
        told
    }

    fn say(&self, answer: &Answer) -> io::Result<()> {
        wire::send(&self.stream, answer, &[])
    }

    fn answer(&self, ask: Ask, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let shared = self.shared;
        let refused = |error: Error| Answer::Refused { why: error.to_string() };
        let mut change = None;
        let answer = match ask {
            Ask::About => Answer::About(shared.about()),
            Ask::Status => Answer::Status(shared.fresh().json()?),
            Ask::Slots => match shared.filter_control.slots() {
                Ok(slots) if !self.supplies => {
                    Answer::Slots { slots: slots.iter().map(SentSlot::described).collect(), made_here: true }
                }
                Ok(slots) => {
                    let sent = slots.iter().map(SentSlot::of).collect();
                    let answer = Answer::Slots { slots: sent, made_here: false };
                    let beside = borrowed(slots.iter().map(|slot| &slot.descriptors));
                    return wire::send(&self.stream, &answer, &beside);
                }
                Err(error) => refused(error.into()),
            },
            Ask::Put { .. } if !self.supplies => Answer::Refused {
                why: "only root may send programs, to captures of root; send an expression".to_owned(),
            },
            Ask::Filter(filter) => {
                let (answer, put) = self.filter(filter);
                change = put;
                answer.unwrap_or_else(refused)
            }
            Ask::Put { filter, programs } => match SentProgram::received(programs, descriptors) {
                Ok(programs) => {
                    let filter = filter.as_deref().map(in_one_line);
                    let (answer, put) = self.put(filter, &programs);
                    change = put;
                    answer.unwrap_or_else(refused)
                }
                Err(error) => refused(error),
            },
            Ask::Count { .. } if self.member.is_some() => {
                Answer::Refused { why: "only root and the capture's user may switch statistics".to_owned() }
            }
            Ask::Count { on } => {
                let _turn = shared.turn();
                match shared.filter_control.count(on) {
                    Ok(()) => {
                        change = Some(What::Counting(on));
                        Answer::Noted
                    }
                    Err(error) => refused(error.into()),
                }
            }
            Ask::Order(_) if self.member.is_some() => {
                Answer::Refused { why: "only root and the guard's user may change its rules".to_owned() }
            }
            Ask::Order(order) => match shared.orders.give(*order) {
                Ok(done) => Answer::Obeyed(done),
                Err(why) => Answer::Refused { why },
            },
            Ask::Sets => {
                shared.filter_control.sets().map_or_else(|error| refused(error.into()), Answer::Sets)
            }
            Ask::ChangeSet { name, change: how, members } => {
                let (answer, changed) = self.change_set(name, how, &members);
                change = changed;
                answer.unwrap_or_else(refused)
            }
        };
        let told = || self.say(&answer);
        match change {
            Some(what) => self.changed(what, told),
            None => told(),
        }
    }

    fn maker(&self) -> Option<&Maker> {
        let Shared { maker, members_maker, .. } = self.shared;
        if self.member.is_some() { members_maker.as_ref() } else { maker.as_ref() }
    }

    /// Builds the programs of `filter` and installs them.
    fn filter(&self, filter: Option<Box<PortableFilter>>) -> (Result<Answer, Error>, Option<What>) {
        let made = match &filter {
            None => self
                .shared
                .filter_control
                .slots()
                .and_then(|slots| slots.iter().map(|slot| slot.make(None)).collect::<Result<Vec<_>, _>>())
                .map_err(Error::from),
            Some(filter) => match self.maker() {
                Some(maker) => maker.make(filter).map_err(Error::Filter),
                None => Err(Error::Filter(
                    "cannot build a filter here; send programs, as weir ctl does as root".to_owned(),
                )),
            },
        };
        match made {
            Ok(programs) => self.put(filter.map(|filter| Filter::from(*filter).label()), &programs),
            Err(error) => (Err(error), None),
        }
    }

    /// Installs programs. Also returns the resulting change, if there is one.
    fn put(
        &self,
        filter: Option<String>,
        programs: &[CompiledFilter],
    ) -> (Result<Answer, Error>, Option<What>) {
        let shared = self.shared;
        let _turn = shared.turn();
        let begun = Instant::now();
        match shared.filter_control.put(programs) {
            Ok(()) => {
                let nanoseconds = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let sets = programs.iter().flat_map(|program| &program.sets);
                let forgotten = shared.forget(&sets.map(|set| set.name.as_str()).collect());
                (Ok(Answer::Done { nanoseconds, forgotten }), Some(What::Filter(filter)))
            }
            Err(error) => {
                let not_taken = matches!(error, weir::Error::FilterPutBack { .. })
                    .then(|| What::NotTaken { filter, why: error.to_string() });
                (Err(error.into()), not_taken)
            }
        }
    }

    /// Changes a set. Also returns the resulting change, if there is one.
    fn change_set(
        &self,
        name: String,
        change: SetChange,
        members: &PortableMembers,
    ) -> (Result<Answer, Error>, Option<What>) {
        let shared = self.shared;
        let _turn = shared.turn();
        match shared.filter_control.change_set(&name, change, members) {
            Ok(Changed { added, removed }) => {
                shared.touch(&name);
                (Ok(Answer::Changed { added, removed }), Some(What::Set { name, added, removed }))
            }
            Err(weir::Error::SetPartlyChanged { source, .. }) => {
                shared.touch(&name);
                let why = source.to_string();
                (Ok(Answer::ChangedInPart { why: why.clone() }), Some(What::SetInPart { name, why }))
            }
            Err(error) => (Err(error.into()), None),
        }
    }
}

impl Shared {
    /// Acquires the lock to change filters and sets.
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the client supplies programs instead of expressions.
    ///
    /// Whoever has a descriptor of an XDP program can send any frames with it (`BPF_PROG_TEST_RUN`), without a privilege.
    /// Only root may do that anyway: a user of weir's file capabilities, say, has none outside a capture.
    fn takes_programs_of(&self, client: Uid) -> bool {
        client.is_root() && self.owner.is_root()
    }

    fn latest(&self) -> Arc<dyn Account> {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner).account)
    }

    /// Returns an account taken after this call, or the last one if the loop is delayed.
    fn fresh(&self) -> Arc<dyn Account> {
        let question = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let older = |latest: &mut Latest| latest.answered < question;
        let waited = self.published.wait_timeout_while(latest, FRESH, older);
        let (latest, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&latest.account)
    }

    fn about(&self) -> About {
        About {
            process: std::process::id(),
            command: self.command.to_owned(),
            interfaces: self.latest().interfaces(),
            filter: self.filter.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            file: self.file.clone(),
        }
    }

    /// Records that the set's members differ from those in the filter.
    fn touch(&self, set: &str) {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).insert(set.to_owned());
    }

    /// Clears the records of changed sets for a new filter, and returns those of its sets that had been changed.
    fn forget(&self, sets: &BTreeSet<&str>) -> Vec<String> {
        let touched = std::mem::take(&mut *self.touched.lock().unwrap_or_else(PoisonError::into_inner));
        touched.into_iter().filter(|set| sets.contains(set.as_str())).collect()
    }

    /// Records a change after its client is `told`. The time is taken when no packet is in a previous program any more;
    /// a packet that has met one has its timestamp by then.
    fn changed<T>(&self, what: What, by: Option<Uid>, told: impl FnOnce() -> T) -> T {
        let what = what.with_texts(in_one_line);
        let _settling = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        if let What::Filter(filter) = &what {
            self.filter.lock().unwrap_or_else(PoisonError::into_inner).clone_from(filter);
        }
        let told = told();
        if self.filter_control.settle().is_err() {
            thread::sleep(UNSETTLED);
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).push(Change { time, by, what });
        told
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use serde_json::json;

    use super::*;

    #[test]
    fn who_speaks_another_version_is_told_so() {
        let raw = |ask: serde_json::Value| RawValue::from_string(ask.to_string()).expect("JSON");
        let ask = |version, ask| understood(Request { version, ask: raw(ask) });
        assert!(matches!(ask(VERSION, json!("slots")), Ok(Ask::Slots)));
        for version in [VERSION - 1, VERSION + 1] {
            for question in [json!("slots"), json!({ "unheard_of": [] })] {
                let why = ask(version, question).expect_err("another version");
                let told = format!("protocol version {VERSION}, the request version {version}");
                assert!(why.contains(&told) && why.contains("/exe ctl"), "{why}");
            }
        }
        let why = ask(VERSION, json!({ "unheard_of": [] })).expect_err("no question");
        assert!(why.contains("unheard_of"), "{why}");
    }

    #[test]
    fn a_client_is_heard_when_it_speaks_or_leaves() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let heard = |patience| is_heard_within(&ours, patience).expect("a socket");
        assert!(!heard(Duration::from_millis(1)), "it is silent");
        (&theirs).write_all(b"?").expect("room");
        assert!(heard(Duration::from_secs(60)));
        assert!(heard(Duration::ZERO), "nobody has read it yet");
        (&ours).read_exact(&mut [0]).expect("what it said");
        assert!(!heard(Duration::ZERO));
        drop(theirs);
        assert!(heard(Duration::from_secs(60)), "the end is read, too");
    }

    #[test]
    fn what_is_told_further_has_an_end_and_one_line() {
        assert_eq!(in_one_line("port 80"), "port 80");
        assert_eq!(in_one_line("port 80\nNothing lost\u{1b}[2J"), "port 80 Nothing lost [2J");
        let long = in_one_line(&"\u{20ac}".repeat(LONGEST_WORD));
        assert!(long.len() <= LONGEST_WORD + 3 && long.ends_with("\u{20ac}..."), "{}", long.len());
    }
}
