//! What of the news is still needed by somebody who has not heard them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use crate::{Cause, News, Process, ProcessId, Settings, Sighting};

/// Sightings of one socket that are kept: the first ones, which tell where it comes from, and the latest.
const MOST_SIGHTINGS: usize = 32;
const MOST_FIRST: usize = 8;
/// Programs that a process has run, and what is known of it under different names, that are kept: the latest.
const MOST_ACCOUNTS: usize = 8;
/// Processes without a socket that are kept, the latest: they may open their first one after the next file has begun.
const MOST_IDLE: usize = 10_000;

/// Keeps the news from which another [`Register`](crate::Register) learns what one knows that has learned all of them: for the
/// beginning of a file whose reader has no earlier ones. It forgets sockets as a register does.
#[derive(Debug)]
pub struct Digest {
    settings: Settings,
    sockets: HashMap<u64, Life>,
    /// Sockets by when they were closed, and all by when they were seen first.
    closed: BTreeSet<(u64, u64)>,
    begun: BTreeSet<(u64, u64)>,
    /// What is known of processes beyond what sightings say.
    processes: HashMap<ProcessId, Accounts>,
    /// How many accounts of processes there were.
    accounts: u64,
    addresses: BTreeMap<(u64, IpAddr), u64>,
    interfaces: BTreeMap<u32, u64>,
    /// Since when, and how many.
    lost: Option<(u64, u64)>,
    /// The latest time of a sighting.
    now: u64,
}

/// What was told of a process.
#[derive(Debug, Default)]
struct Accounts {
    /// The number of the latest.
    latest: u64,
    /// The programs that it has run since, by time.
    executed: Vec<(u64, Arc<Process>)>,
    /// What else is known of it, once for each name and user.
    described: Vec<Arc<Process>>,
}

/// What was seen of a socket, in the order of arrival.
#[derive(Debug, Default)]
struct Life {
    sightings: Vec<Sighting>,
    closed: Option<u64>,
}

impl Digest {
    /// Returns an empty digest.
    pub fn new(settings: &Settings) -> Self {
        Self {
            settings: *settings,
            sockets: HashMap::new(),
            closed: BTreeSet::new(),
            begun: BTreeSet::new(),
            processes: HashMap::new(),
            accounts: 0,
            addresses: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            lost: None,
            now: 0,
        }
    }

    /// Takes news in.
    pub fn learn(&mut self, news: &News) {
        match news {
            News::Sighting(sighting) => self.see(sighting),
            News::Executed { at, process } => {
                let executed = &mut self.accounts_of(process).executed;
                executed.push((*at, Arc::clone(process)));
                if executed.len() > MOST_ACCOUNTS {
                    executed.remove(0);
                }
            }
            News::Described(process) => {
                let described = &mut self.accounts_of(process).described;
                described.retain(|known| known.name != process.name || known.user != process.user);
                described.push(Arc::clone(process));
                if described.len() > MOST_ACCOUNTS {
                    described.remove(0);
                }
            }
            News::Address { at, namespace, address } => {
                self.addresses.insert((*namespace, *address), *at);
            }
            News::AddressGone { namespace, address, .. } => {
                self.addresses.remove(&(*namespace, *address));
            }
            News::Interface { interface, namespace } => {
                self.interfaces.insert(*interface, *namespace);
            }
            News::Lost { at, sightings } => {
                // They are not older than what was told last.
                let since = if self.now == 0 { *at } else { self.now.min(*at) };
                self.lose(since, *sightings);
            }
        }
    }

    /// Returns what is still needed.
    pub fn news(&mut self) -> Vec<News> {
        let old = self.now.saturating_sub(self.settings.linger);
        while self.closed.first().is_some_and(|(at, _)| *at < old) {
            self.forget_oldest();
        }
        self.forget_processes();
        let interfaces = self.interfaces.iter();
        let interfaces = interfaces.map(|(&interface, &namespace)| News::Interface { interface, namespace });
        let addresses = self.addresses.iter();
        let addresses =
            addresses.map(|(&(namespace, address), &at)| News::Address { at, namespace, address });
        let lost = self.lost.map(|(at, sightings)| News::Lost { at, sightings });
        let sightings = self.sockets.values().flat_map(|life| &life.sightings);
        let sightings =
            sightings.map(|sighting| (sighting.at, sighting.socket, News::Sighting(sighting.clone())));
        let mut processes: Vec<_> = self.processes.iter().collect();
        processes.sort_unstable_by_key(|(id, _)| **id);
        let executed = processes.iter().flat_map(|(_, accounts)| &accounts.executed);
        // What is done with a socket then is done by the new program.
        let executed =
            executed.map(|(at, process)| (*at, 0, News::Executed { at: *at, process: Arc::clone(process) }));
        let mut timed: Vec<_> = executed.chain(sightings).collect();
        timed.sort_by_key(|(at, socket, _)| (*at, *socket));
        let timed = timed.into_iter().map(|(_, _, news)| news);
        let described = processes.iter().flat_map(|(_, accounts)| &accounts.described);
        let described = described.cloned().map(News::Described);
        lost.into_iter().chain(interfaces).chain(addresses).chain(timed).chain(described).collect()
    }

    /// Returns where to note an account of a process.
    fn accounts_of(&mut self, process: &Process) -> &mut Accounts {
        if self.processes.len() > 2 * self.settings.sockets.saturating_add(MOST_IDLE) {
            self.forget_processes();
        }
        self.accounts += 1;
        let accounts = self.processes.entry(process.id).or_default();
        accounts.latest = self.accounts;
        accounts
    }

    fn see(&mut self, sighting: &Sighting) {
        self.now = self.now.max(sighting.at);
        let life = self.sockets.entry(sighting.socket).or_insert_with(|| {
            self.begun.insert((sighting.at, sighting.socket));
            Life::default()
        });
        if sighting.cause == Cause::Closed && life.closed.is_none() {
            life.closed = Some(sighting.at);
            self.closed.insert((sighting.at, sighting.socket));
        }
        // A process that does the same again says nothing new, unless it or another has done something else meanwhile.
        let is_sent = |sighting: &Sighting| sighting.cause == Cause::Sent; // to anybody
        let mut meanwhile = life.sightings.iter().rev().take_while(|known| {
            let is_remote_same = known.remote == sighting.remote || is_sent(known) || is_sent(sighting);
            known.process == sighting.process && known.local == sighting.local && is_remote_same
        });
        if !meanwhile.any(|known| known.cause == sighting.cause && known.at <= sighting.at) {
            if life.sightings.len() >= MOST_SIGHTINGS {
                life.sightings.remove(MOST_FIRST);
            }
            life.sightings.push(sighting.clone());
        }
        if self.sockets.len() > self.settings.sockets.max(1)
            && let Some(begun) = self.forget_oldest()
        {
            // Its packets are nobody's that is known.
            self.lose(begun, 1);
        }
    }

    /// Sightings are missing that may have been made from this time on.
    fn lose(&mut self, since: u64, sightings: u64) {
        let (first, sum) = self.lost.unwrap_or((since, 0));
        self.lost = Some((first.min(since), sum.saturating_add(sightings)));
    }

    /// Forgets the socket that was closed first, or if none is, the one seen first. Returns when it was seen first.
    fn forget_oldest(&mut self) -> Option<u64> {
        let &(_, socket) = self.closed.first().or_else(|| self.begun.first())?;
        let life = self.sockets.remove(&socket)?;
        if let Some(at) = life.closed {
            self.closed.remove(&(at, socket));
        }
        let begun = life.sightings.first()?.at;
        self.begun.remove(&(begun, socket));
        Some(begun)
    }

    /// Forgets processes without a socket, but for the latest.
    fn forget_processes(&mut self) {
        let sightings = self.sockets.values().flat_map(|life| &life.sightings);
        let holders: BTreeSet<ProcessId> =
            sightings.filter_map(|sighting| sighting.process.as_ref()).map(|process| process.id).collect();
        let idle = self.processes.iter().filter(|(id, _)| !holders.contains(id));
        let mut idle: Vec<u64> = idle.map(|(_, accounts)| accounts.latest).collect();
        idle.sort_unstable();
        if let Some(surplus) = idle.len().checked_sub(MOST_IDLE + 1) {
            let last = idle[surplus];
            self.processes.retain(|id, accounts| accounts.latest > last || holders.contains(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use weir_packet::Endpoint;

    use super::*;
    use crate::SocketKind;

    fn process(number: u32, name: &str) -> Arc<Process> {
        Arc::new(Process {
            id: ProcessId { number, started: 1 },
            parent: 0,
            user: 33,
            name: name.to_owned(),
            program: None,
            arguments: None,
            cgroup: None,
            container: None,
            unit: None,
        })
    }

    fn sighting(at: u64, socket: u64, cause: Cause, process: Option<Arc<Process>>) -> News {
        let local = Endpoint { address: Ipv4Addr::LOCALHOST.into(), port: 80 };
        let (namespace, kind, protocol, remote) = (1, SocketKind::Stream, 6, None);
        News::Sighting(Sighting { at, socket, namespace, kind, protocol, local, remote, cause, process })
    }

    fn digest(sockets: usize, news: &[News]) -> Vec<News> {
        let mut digest = Digest::new(&Settings { sockets, linger: 100 });
        news.iter().for_each(|news| digest.learn(news));
        digest.news()
    }

    #[test]
    fn a_process_is_told_with_its_programs_in_turn() {
        let [ip, iperf3] = ["ip", "iperf3"].map(|name| process(7, name));
        let executed = |at, process: &Arc<Process>| News::Executed { at, process: Arc::clone(process) };
        let told = [
            executed(1, &ip),
            News::Described(Arc::clone(&ip)),
            executed(5, &iperf3),
            sighting(5, 1, Cause::Created, Some(Arc::clone(&iperf3))),
            News::Described(Arc::clone(&iperf3)),
        ];
        let [one, of_ip, two, socket, of_iperf3] = told.clone();
        assert_eq!(digest(10, &told), [one, two, socket, of_ip, of_iperf3]);
    }

    #[test]
    fn what_is_over_or_said_again_is_left_out() {
        let (address, gone) = (Ipv4Addr::LOCALHOST.into(), Ipv4Addr::BROADCAST.into());
        let nginx = process(4711, "nginx");
        let described = Arc::new(Process { program: Some("/usr/sbin/nginx".to_owned()), ..(*nginx).clone() });
        let news = [
            sighting(10, 1, Cause::Created, Some(Arc::clone(&nginx))),
            News::Address { at: 1, namespace: 1, address },
            News::Address { at: 1, namespace: 1, address: gone },
            News::AddressGone { at: 2, namespace: 1, address: gone },
            sighting(11, 2, Cause::Created, Some(process(812, "curl"))),
            News::Described(process(812, "curl")),
            News::Described(Arc::clone(&described)),
            sighting(12, 1, Cause::Sent, Some(Arc::clone(&nginx))),
            sighting(13, 1, Cause::Sent, Some(Arc::clone(&nginx))),
            sighting(14, 2, Cause::Closed, None),
            News::Interface { interface: 0, namespace: 1 },
            News::Lost { at: 5, sightings: 2 },
            News::Lost { at: 7, sightings: 3 },
        ];
        let needed = [
            News::Lost { at: 5, sightings: 5 },
            News::Interface { interface: 0, namespace: 1 },
            News::Address { at: 1, namespace: 1, address },
            news[0].clone(),
            news[7].clone(),
        ];
        let (closed, of_curl) = ([news[4].clone(), news[9].clone()], news[5].clone());
        let all = digest(10, &news);
        // Who reads packets of the closed socket, which come late, still needs it.
        assert!(closed.iter().chain([&of_curl]).all(|news| all.contains(news)), "{all:?}");
        assert_eq!(all.len(), needed.len() + 4);
        let later = [&news[..], &[sighting(200, 1, Cause::Sent, None)]].concat();
        // Its process may open another.
        let last = [later[13].clone(), of_curl, News::Described(described)];
        assert_eq!(digest(10, &later), [&needed[..], &last].concat());
    }

    #[test]
    fn the_latest_processes_without_a_socket_are_kept() {
        let most = u32::try_from(MOST_IDLE).expect("few");
        let made = |number| News::Described(process(number, "p"));
        let nginx = process(0, "nginx");
        let mut news = vec![sighting(1, 1, Cause::Created, Some(Arc::clone(&nginx))), News::Described(nginx)];
        news.extend((1..=most + 2).map(made));
        // Told again, it is one of the latest.
        news.push(made(1));
        let kept = [&news[..2], &[made(1)], &news[5..news.len() - 1]].concat();
        assert_eq!(kept.len(), 2 + MOST_IDLE);
        assert!(digest(10, &news) == kept, "others than the latest");
    }

    #[test]
    fn closed_sockets_make_room_first_and_one_that_goes_on_stays_short() {
        let made: Vec<News> = (0..4).map(|socket| sighting(socket, socket, Cause::Created, None)).collect();
        let closed = sighting(2, 2, Cause::Closed, None);
        let news = [&made[..3], &[closed], &made[3..]].concat();
        let lost = |at| News::Lost { at, sightings: 1 };
        assert_eq!(digest(3, &news), [lost(2), made[0].clone(), made[1].clone(), made[3].clone()]);
        assert_eq!(digest(3, &made), [&[lost(0)], &made[1..]].concat(), "the oldest goes if none is closed");
        let many: Vec<News> =
            (0..99).map(|at| sighting(at.into(), 1, Cause::Sent, Some(process(at, "dig")))).collect();
        let kept = digest(3, &many);
        assert_eq!(kept.len(), MOST_SIGHTINGS);
        assert_eq!((&kept[0], &kept[MOST_SIGHTINGS - 1]), (&many[0], &many[98]));
        assert_eq!(kept[..MOST_FIRST], many[..MOST_FIRST]);
    }
}
