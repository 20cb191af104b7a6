//! Follows the sockets of this host, and asks whose a packet is.

mod groups;
mod hooks;
mod processes;
mod scan;

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::mem::take;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use weir_bpf::who::{self, Following, Options, Reader, Report};
use weir_packet::Endpoint;
use weir_sys::{CallError, address, clock, netns};
use weir_who::{News, Process, Register, Sighting, SocketKind};

use self::groups::Groups;
pub use self::hooks::HookState;
use self::processes::Processes;
use crate::live::error::NEEDS;
use crate::live::namespace::context::inside;
use crate::{Error, Namespace};

/// What can be chosen for a [`Tracker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackerSettings {
    /// How much its register remembers.
    pub register: weir_who::Settings,
    /// Room for what the kernel tells between two calls of [`Tracker::poll`], in bytes: a socket's life takes about 500. It is
    /// rounded up to a power of two.
    pub ring: u32,
    /// How many news are kept for [`Tracker::take_news`]; 0: none.
    pub news: usize,
    /// Whether the arguments of processes are wanted.
    pub arguments: bool,
}

impl Default for TrackerSettings {
    fn default() -> Self {
        Self { register: weir_who::Settings::default(), ring: 4 << 20, news: 0, arguments: false }
    }
}

/// Follows the sockets of all processes on this host, in all its network namespaces, and tells whose a packet is.
///
/// Programs in the kernel report what is done with sockets: not what is sent on them, so that this costs those nothing who send
/// on connections. They are gone with this value, or with the process.
#[derive(Debug)]
pub struct Tracker {
    following: Following,
    reader: Reader,
    hooks: Vec<HookState>,
    register: Register,
    groups: Groups,
    processes: Processes,
    clock: Clock,
    kept: Kept,
    /// What the last look at open files has found, so that the next one tells only what is new.
    found: HashSet<u64>,
    hasher: RandomState,
    namespaces: Vec<Watched>,
    /// Reports that were lost, as far as later ones have told.
    lost: u64,
}

/// A network namespace whose addresses are known.
#[derive(Debug)]
struct Watched {
    namespace: Option<Namespace>,
    cookie: u64,
    addresses: BTreeSet<IpAddr>,
}

impl Tracker {
    /// Begins to follow sockets, and finds those that are open already. Needs privileges, which [`poll`](Self::poll) does not.
    ///
    /// Whatever the kernel refuses is left out: [`hooks`](Self::hooks) says what is then not known.
    ///
    /// # Errors
    ///
    /// Privileges are missing, or memory for what the kernel reports is short.
    pub fn start(settings: &TrackerSettings) -> Result<Self, Error> {
        let groups = Groups::find();
        let options = Options { cgroup: groups.root(), ring: settings.ring, without: &[], plain: false };
        let following = Following::attach(&options).map_err(not_loaded)?;
        let mut tracker = Self {
            reader: following.reader()?,
            hooks: hooks::states(&following, groups.is_whole()),
            following,
            register: Register::new(&settings.register),
            groups,
            processes: Processes::new(settings.arguments),
            clock: Clock::read()?,
            kept: Kept { news: Vec::new(), most: settings.news, dropped: 0 },
            found: HashSet::new(),
            hasher: RandomState::new(),
            namespaces: Vec::new(),
            lost: 0,
        };
        // The programs run already: what is opened meanwhile is told twice, which does no harm.
        tracker.look()?;
        Ok(tracker)
    }

    /// Takes in all that the kernel has told since the last time. Without anything new it makes no system call.
    ///
    /// Call it at least as often as the ring needs it: with many sockets made, several times a second.
    ///
    /// # Errors
    ///
    /// The kernel's account cannot be read.
    pub fn poll(&mut self) -> Result<(), Error> {
        let reports = self.reader.take()?;
        if !reports.is_empty() {
            self.clock.follow()?;
        }
        for report in &reports {
            self.take_in(report);
        }
        Ok(())
    }

    /// Looks at the files that processes have open, and at the addresses of namespaces: finds sockets that were not told of,
    /// and ports that the kernel has given since (see [`Register::is_unsettled`]).
    ///
    /// # Errors
    ///
    /// The kernel does not let this process look.
    pub fn look(&mut self) -> Result<(), Error> {
        self.look_at_sockets()?;
        self.look_at_addresses()
    }

    /// Looks at the addresses of namespaces. That of this thread needs no privileges, others those to enter them; the addresses of one that
    /// cannot be entered stay as they were.
    ///
    /// # Errors
    ///
    /// The kernel does not list the addresses of any.
    pub fn look_at_addresses(&mut self) -> Result<(), Error> {
        let mut refused = None;
        for index in 0..self.namespaces.len() {
            match inside(self.namespaces[index].namespace.as_ref(), address::addresses) {
                Ok(Ok(addresses)) => {
                    self.have(index, addresses.into_iter().map(|address| address.ip).collect());
                }
                Ok(Err(error)) => refused = Some(error.into()),
                Err(error) => refused = Some(error),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    /// Learns of reports that were lost and that no later one has told of yet: sockets may be missing from now on.
    ///
    /// # Errors
    ///
    /// The kernel's account cannot be read.
    pub fn tell_lost(&mut self) -> Result<(), Error> {
        let untold = self.following.missed()?;
        if untold > 0 {
            let at = self.clock.now();
            self.learn(News::Lost { at, sightings: untold });
        }
        Ok(())
    }

    /// The same without the addresses. Needs no privileges once the tracker has begun, unless the kernel has refused it
    /// `iter/task_file`.
    ///
    /// # Errors
    ///
    /// The kernel does not let this process look.
    pub fn look_at_sockets(&mut self) -> Result<(), Error> {
        self.clock.follow()?;
        let reports = match self.following.look()? {
            Some(reports) => reports,
            None => scan::open_sockets(self.clock.now_by_tai(), &self.groups)?,
        };
        // What was told before goes first.
        self.poll()?;
        let before = take(&mut self.found);
        for report in &reports {
            let process = report.process.map(|process| (process.number, process.started));
            let ends = report.ends.map(|ends| (ends.local, ends.remote));
            let hash = self.hasher.hash_one((report.socket, process, ends));
            if self.found.insert(hash) && !before.contains(&hash) {
                self.take_in(report);
            }
        }
        Ok(())
    }

    /// Learns the addresses of a network namespace, without which it is not known which packets are only passed on. `None` is
    /// this thread's. Returns its number, as in a [`Sighting`]. [`look`](Self::look) learns them anew.
    ///
    /// # Errors
    ///
    /// The namespace cannot be entered, or the kernel does not list its addresses.
    pub fn namespace(&mut self, namespace: Option<&Namespace>) -> Result<u64, Error> {
        let ask = || Ok::<_, CallError>((netns::cookie()?, address::addresses()?));
        let (cookie, addresses) = inside(namespace, ask)??;
        let known = self.namespaces.iter().position(|watched| watched.cookie == cookie);
        let index = known.unwrap_or_else(|| {
            let namespace = namespace.cloned();
            self.namespaces.push(Watched { namespace, cookie, addresses: BTreeSet::new() });
            self.namespaces.len() - 1
        });
        self.have(index, addresses.into_iter().map(|address| address.ip).collect());
        Ok(cookie)
    }

    /// Learns something else, which is kept for [`take_news`](Self::take_news) like all that is told.
    pub fn learn(&mut self, news: News) {
        self.register.learn(&news);
        self.kept.push(news);
    }

    /// Returns what is known of sockets.
    pub fn register(&self) -> &Register {
        &self.register
    }

    /// Returns what was learned since the last time, as far as there was room for it.
    pub fn take_news(&mut self) -> Vec<News> {
        self.kept.take()
    }

    /// Returns the places in the kernel that tell of sockets, and of those that do not, what is not known without them.
    pub fn hooks(&self) -> &[HookState] {
        &self.hooks
    }

    /// Returns how many of the kernel's reports were lost, because [`poll`](Self::poll) was not called in time.
    ///
    /// # Errors
    ///
    /// The kernel's account cannot be read.
    pub fn lost(&self) -> Result<u64, Error> {
        Ok(self.lost + self.following.missed()?)
    }

    fn take_in(&mut self, report: &Report) {
        let at = self.clock.epoch(report.at);
        if report.missed > 0 {
            self.lost += u64::from(report.missed);
            self.learn(News::Lost { at, sightings: report.missed.into() });
        }
        let Self { processes, groups, .. } = self;
        let process = match (report.cause, &report.process) {
            (who::Cause::Ended, process) => {
                return process.iter().for_each(|process| processes.ended(process));
            }
            (who::Cause::Executed, Some(process)) => {
                let program = report.program.as_deref().unwrap_or_default();
                let process = processes.executed(process, program, groups);
                return self.learn(News::Executed { at, process });
            }
            (_, process) => process.as_ref().map(|process| processes.get(process, groups)),
        };
        if let Some(sighting) = sighting(at, report, process) {
            self.learn(News::Sighting(sighting));
        }
    }

    /// Learns which addresses a namespace has now.
    fn have(&mut self, index: usize, addresses: BTreeSet<IpAddr>) {
        let watched = &mut self.namespaces[index];
        let before = std::mem::replace(&mut watched.addresses, addresses);
        let (at, namespace) = (self.clock.now(), watched.cookie);
        let came = watched.addresses.difference(&before);
        let came = came.map(|&address| News::Address { at, namespace, address });
        let gone = before.difference(&watched.addresses);
        let gone = gone.map(|&address| News::AddressGone { at, namespace, address });
        let news: Vec<_> = came.chain(gone).collect();
        news.into_iter().for_each(|news| self.learn(news));
    }
}

/// Returns what a report says about a socket.
fn sighting(at: u64, report: &Report, process: Option<Arc<Process>>) -> Option<Sighting> {
    const IPPROTO_TCP: u8 = 6;
    const IPPROTO_MPTCP: u16 = 262;
    let cause = match report.cause {
        who::Cause::Found => weir_who::Cause::Found,
        who::Cause::Created => weir_who::Cause::Created,
        who::Cause::Bound => weir_who::Cause::Bound,
        who::Cause::Connecting => weir_who::Cause::Connecting,
        who::Cause::Sent => weir_who::Cause::Sent,
        who::Cause::Listening => weir_who::Cause::Listening,
        who::Cause::Accepted => weir_who::Cause::Accepted,
        who::Cause::Established => weir_who::Cause::Established,
        who::Cause::Closed => weir_who::Cause::Closed,
        who::Cause::Executed | who::Cause::Ended => return None,
    };
    let kind = match report.kind {
        1 => SocketKind::Stream,
        2 => SocketKind::Datagram,
        3 => SocketKind::Raw,
        _ => SocketKind::Other,
    };
    // The packets of MPTCP are TCP's.
    let protocol = match report.protocol {
        IPPROTO_MPTCP => IPPROTO_TCP,
        other => u8::try_from(other).unwrap_or(0),
    };
    let nowhere = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let (local, remote) = report.ends.map_or((nowhere, nowhere), |ends| (ends.local, ends.remote));
    let has_ports = kind != SocketKind::Raw;
    let end = |(address, port): (IpAddr, u16)| Endpoint { address, port: if has_ports { port } else { 0 } };
    let remote = match remote {
        (address, 0) if address.is_unspecified() => None,
        // Who connects to no address connects to this host.
        (IpAddr::V4(address), port) if address.is_unspecified() => Some((Ipv4Addr::LOCALHOST.into(), port)),
        (IpAddr::V6(address), port) if address.is_unspecified() => Some((Ipv6Addr::LOCALHOST.into(), port)),
        other => Some(other),
    };
    Some(Sighting {
        at,
        socket: report.socket,
        namespace: report.namespace,
        kind,
        protocol,
        local: end(local),
        remote: remote.map(end),
        cause,
        process,
    })
}

/// From the programs' clock to that of packets.
#[derive(Debug)]
struct Clock {
    /// Nanoseconds by which `CLOCK_TAI` is ahead.
    ahead: i64,
    read: Instant,
}

impl Clock {
    fn read() -> Result<Self, CallError> {
        const NANOSECONDS: i64 = 1_000_000_000;
        Ok(Self { ahead: clock::tai_offset()? * NANOSECONDS, read: Instant::now() })
    }

    /// Follows the kernel's TAI offset, which a time daemon may change at any time.
    fn follow(&mut self) -> Result<(), CallError> {
        if self.read.elapsed() >= Duration::from_secs(1) {
            *self = Self::read()?;
        }
        Ok(())
    }

    /// Returns nanoseconds since the Unix epoch.
    fn epoch(&self, tai: u64) -> u64 {
        tai.saturating_add_signed(-self.ahead)
    }

    fn now(&self) -> u64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
    }

    fn now_by_tai(&self) -> u64 {
        self.now().saturating_add_signed(self.ahead)
    }
}

/// News for those who write files.
#[derive(Debug)]
struct Kept {
    news: Vec<News>,
    most: usize,
    dropped: u64,
}

impl Kept {
    fn push(&mut self, news: News) {
        if self.news.len() < self.most {
            self.news.push(news);
        } else if self.most > 0 {
            self.dropped += 1;
        }
    }

    fn take(&mut self) -> Vec<News> {
        let mut news = take(&mut self.news);
        if self.dropped > 0 {
            let at = news.iter().rev().find_map(News::time).unwrap_or(0);
            news.push(News::Lost { at, sightings: take(&mut self.dropped) });
        }
        news
    }
}

/// Translates the kernel's error when it loads no program.
fn not_loaded(source: weir_bpf::LoadError) -> Error {
    if source.is_permission() {
        return Error::Privilege { operation: "follow sockets".to_owned(), needs: NEEDS };
    }
    Error::Load { name: None, source }
}

#[cfg(test)]
mod tests {
    use weir_bpf::who::Ends;

    use super::*;

    fn report(kind: u8, protocol: u16, local: &str, remote: &str) -> Report {
        let end = |text: &str| {
            let end: std::net::SocketAddr = text.parse().unwrap();
            (end.ip(), end.port())
        };
        Report {
            at: 5,
            cause: who::Cause::Connecting,
            socket: 1,
            namespace: 2,
            process: None,
            kind,
            protocol,
            ends: Some(Ends { local: end(local), remote: end(remote) }),
            program: None,
            missed: 0,
        }
    }

    #[test]
    fn a_report_becomes_a_sighting() {
        let told = |report: &Report| {
            let sighting = sighting(7, report, None).unwrap();
            let end = |end: Endpoint| format!("{} {}", end.address, end.port);
            (sighting.kind, sighting.protocol, end(sighting.local), sighting.remote.map(end))
        };
        let some = |text: &str| Some(text.to_owned());
        for (report, kind, protocol, local, remote) in [
            (
                report(1, 6, "10.0.0.1:5", "10.0.0.2:80"),
                SocketKind::Stream,
                6,
                "10.0.0.1 5",
                some("10.0.0.2 80"),
            ),
            (report(1, 262, "[::]:0", "[fd00::1]:80"), SocketKind::Stream, 6, ":: 0", some("fd00::1 80")),
            (report(2, 17, "0.0.0.0:53", "0.0.0.0:0"), SocketKind::Datagram, 17, "0.0.0.0 53", None),
            (
                report(2, 17, "0.0.0.0:0", "0.0.0.0:9"),
                SocketKind::Datagram,
                17,
                "0.0.0.0 0",
                some("127.0.0.1 9"),
            ),
            (report(2, 17, "[::]:0", "[::]:9"), SocketKind::Datagram, 17, ":: 0", some("::1 9")),
            // What the kernel has for a raw socket's port is its protocol.
            (report(3, 1, "0.0.0.0:1", "0.0.0.0:0"), SocketKind::Raw, 1, "0.0.0.0 0", None),
        ] {
            assert_eq!(told(&report), (kind, protocol, local.to_owned(), remote), "{report:?}");
        }
        let ended = Report { cause: who::Cause::Ended, ..report(1, 6, "0.0.0.0:0", "0.0.0.0:0") };
        assert_eq!(sighting(7, &ended, None), None);
        let closed = Report { cause: who::Cause::Closed, ends: None, ..ended };
        assert_eq!(told(&closed).2, "0.0.0.0 0");
    }

    #[test]
    fn news_without_room_are_counted() {
        let lost = |at| News::Lost { at, sightings: 1 };
        let mut kept = Kept { news: Vec::new(), most: 2, dropped: 0 };
        (1..=5).for_each(|at| kept.push(lost(at)));
        assert_eq!(kept.take(), [lost(1), lost(2), News::Lost { at: 2, sightings: 3 }]);
        assert_eq!(kept.take(), []);
        let mut none = Kept { news: Vec::new(), most: 0, dropped: 0 };
        none.push(lost(1));
        assert_eq!(none.take(), []);
    }
}
