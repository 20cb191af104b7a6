//! The register beside a slow twin, which keeps all sightings and goes through them for each packet.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::frames::{ACK, SYN, tcp_between, udp_between};
use super::*;

/// Nanoseconds between what happens.
const STEP: u64 = 10;
const LINGER: u64 = 8 * STEP;

/// All that was seen of the sockets that have room.
#[derive(Debug)]
struct Twin {
    room: usize,
    sockets: BTreeMap<u64, Vec<Sighting>>,
    now: u64,
    open_forgotten_from: Option<u64>,
    closed_forgotten_until: Option<u64>,
    counts: Counts,
}

/// A part of a socket's life with the same ends.
#[derive(Clone, Debug)]
struct Phase {
    from: u64,
    known: Option<u64>,
    until: u64,
    local: Endpoint,
    remote: Option<Endpoint>,
}

impl Phase {
    fn is_specific(&self) -> bool {
        !self.local.address.is_unspecified()
    }

    fn holds(&self, at: u64) -> bool {
        self.known.is_some_and(|known| known <= at) && at <= self.until
    }

    fn may_hold(&self, at: u64) -> bool {
        self.known.is_some_and(|known| known > at) && self.from <= at && at <= self.until
    }

    fn has_ended(&self, at: u64) -> bool {
        self.known.is_some_and(|known| known <= at) && self.until < at && at - self.until <= LINGER
    }
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    at: u64,
    namespace: Option<u64>,
    side: Side,
    is_tcp: bool,
    is_syn: bool,
    from: Endpoint,
    to: Endpoint,
}

impl Packet {
    /// Returns both ends, the one that is asked about first.
    fn ends(&self) -> [Endpoint; 2] {
        if self.side == Side::Sender { [self.from, self.to] } else { [self.to, self.from] }
    }
}

fn is_closed(sightings: &[Sighting]) -> Option<u64> {
    sightings.iter().filter(|sighting| sighting.cause == Cause::Closed).map(|sighting| sighting.at).max()
}

/// When the socket's life began.
fn start(sightings: &[Sighting]) -> u64 {
    let has = |cause| sightings.iter().any(|sighting| sighting.cause == cause);
    if has(Cause::Found) && !has(Cause::Created) {
        return 0;
    }
    sightings.iter().map(|sighting| sighting.at).min().expect("there is one")
}

fn phases(sightings: &[Sighting]) -> Vec<Phase> {
    let mut sorted = sightings.to_vec();
    sorted.sort_by_key(|sighting| sighting.at);
    let is_old = start(sightings) == 0;
    let mut phases: Vec<Phase> = Vec::new();
    for sighting in &sorted {
        let remote = sighting.remote.filter(|_| sighting.cause != Cause::Sent);
        let connects = remote.is_some() && matches!(sighting.cause, Cause::Connecting | Cause::Accepted);
        let fits = |phase: &Phase| {
            let port = |port: u16| port == 0 || phase.local.port == 0 || port == phase.local.port;
            let address = |address: IpAddr| {
                address.is_unspecified()
                    || phase.local.address.is_unspecified()
                    || address == phase.local.address
            };
            port(sighting.local.port)
                && address(sighting.local.address)
                && (remote.is_none() || phase.remote == remote || phase.remote.is_none() && !connects)
        };
        match phases.last_mut().filter(|phase| fits(phase)) {
            Some(phase) if remote.is_none() || phase.remote.is_some() => {
                if phase.local.port == 0 {
                    phase.local.port = sighting.local.port;
                    phase.known = (phase.local.port != 0).then_some(sighting.at);
                }
                if phase.local.address.is_unspecified() && !sighting.local.address.is_unspecified() {
                    phase.local.address = sighting.local.address;
                }
            }
            // Connected, nobody knows when.
            Some(phase) => {
                phase.until = sighting.at;
                let mut next = Phase { remote, until: u64::MAX, known: None, ..phase.clone() };
                if next.local.port == 0 {
                    next.local.port = sighting.local.port;
                }
                if next.local.address.is_unspecified() {
                    next.local.address = sighting.local.address;
                }
                next.known = (next.local.port != 0).then_some(sighting.at);
                phases.push(next);
            }
            None => {
                let mut local = sighting.local;
                if let Some(phase) = phases.last_mut() {
                    phase.until = sighting.at;
                    let is_first = phase.remote.is_none();
                    if local.port == 0 && (sighting.kind == SocketKind::Datagram || is_first) {
                        local.port = phase.local.port;
                    }
                    if is_first && local.address.is_unspecified() {
                        local.address = phase.local.address;
                    }
                }
                let from = if phases.is_empty() && !connects { start(sightings) } else { sighting.at };
                let known = if phases.is_empty() && remote.is_none() && is_old { 0 } else { sighting.at };
                let known = (local.port != 0).then_some(known);
                phases.push(Phase { from, known, until: u64::MAX, local, remote });
            }
        }
    }
    let closed = is_closed(sightings).unwrap_or(u64::MAX);
    phases.iter_mut().for_each(|phase| phase.until = phase.until.min(closed));
    phases
}

impl Twin {
    fn see(&mut self, sighting: &Sighting) {
        self.now = self.now.max(sighting.at);
        if !self.sockets.contains_key(&sighting.socket) {
            self.counts.sockets += 1;
            if self.sockets.len() == self.room {
                self.forget();
            }
        }
        self.sockets.entry(sighting.socket).or_default().push(sighting.clone());
        self.counts.known = self.sockets.len() as u64;
    }

    /// Says what it knows, a sighting in a line.
    fn story(&self) -> String {
        let lines = self.sockets.values().flatten().map(|sighting| {
            let Sighting { at, socket, namespace, protocol, local, remote, cause, process, .. } = sighting;
            let end = |end: &Endpoint| format!("{}:{}", end.address, end.port);
            let (local, remote) = (end(local), remote.as_ref().map_or_else(|| "-".to_owned(), end));
            let process = process.as_ref().map_or(0, |process| process.id.number);
            format!("{at} {cause:?} {socket} by {process}: {namespace} {protocol} {local} {remote}")
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn forget(&mut self) {
        let closed = self.sockets.iter().filter_map(|(cookie, seen)| Some((is_closed(seen)?, *cookie)));
        if let Some((at, cookie)) = closed.min() {
            self.counts.forgotten_closed += u64::from(self.now.saturating_sub(at) <= LINGER);
            self.closed_forgotten_until = self.closed_forgotten_until.max(Some(at + LINGER));
            self.sockets.remove(&cookie);
            return;
        }
        let seen_at = |seen: &[Sighting]| seen.iter().map(|sighting| sighting.at).min();
        let oldest = self.sockets.iter().min_by_key(|(_, seen)| seen_at(seen)).map(|(cookie, _)| *cookie);
        let seen = self.sockets.remove(&oldest.expect("the table is full")).expect("it is there");
        self.counts.forgotten_open += 1;
        let from = start(&seen);
        self.open_forgotten_from = Some(self.open_forgotten_from.map_or(from, |before| before.min(from)));
    }

    /// Returns all phases of a namespace's sockets that have the packet's own port and address, and whether they listen then.
    fn own(&self, namespace: u64, packet: &Packet) -> Vec<(u64, Phase, bool)> {
        let (local, at) = (packet.ends()[0], packet.at);
        let kind = if packet.is_tcp { SocketKind::Stream } else { SocketKind::Datagram };
        self.sockets
            .iter()
            .filter(|(_, seen)| seen[0].namespace == namespace && seen[0].kind == kind)
            .flat_map(|(cookie, seen)| {
                let listening = |sighting: &Sighting| match sighting.cause {
                    Cause::Listening => sighting.at <= at,
                    Cause::Found => sighting.remote.is_none(),
                    _ => false,
                };
                let listens = seen.iter().any(listening);
                phases(seen).into_iter().map(move |phase| (*cookie, phase, listens))
            })
            .filter(|(_, phase, _)| phase.local.port == local.port)
            .filter(|(_, phase, _)| !phase.is_specific() || phase.local.address == local.address)
            .collect()
    }

    /// Returns the sockets without another end that fit best.
    fn ports(&self, namespace: u64, packet: &Packet) -> Vec<(u64, bool)> {
        let all = self.own(namespace, packet);
        for fits in [Phase::holds, Phase::may_hold] {
            for specific in [true, false] {
                let found: Vec<(u64, bool)> = all
                    .iter()
                    .filter(|(_, phase, listens)| phase.remote.is_none() && (!packet.is_tcp || *listens))
                    .filter(|(_, phase, _)| fits(phase, packet.at) && phase.is_specific() == specific)
                    .map(|(cookie, ..)| (*cookie, packet.is_tcp))
                    .collect();
                if !found.is_empty() {
                    return found;
                }
            }
        }
        Vec::new()
    }

    /// Returns the sockets of a namespace whose the packet may be, and whether they listen.
    fn candidates(&self, namespace: u64, packet: &Packet) -> Vec<(u64, bool)> {
        let &Packet { at, side, is_tcp, is_syn, .. } = packet;
        let [_, remote] = packet.ends();
        let all = self.own(namespace, packet);
        let connected = || all.iter().filter(|(_, phase, _)| phase.remote == Some(remote));
        let holds = connected()
            .filter(|(_, phase, _)| phase.holds(at))
            .max_by_key(|(_, phase, _)| (phase.is_specific(), phase.known));
        let may_hold = connected()
            .filter(|(_, phase, _)| phase.may_hold(at))
            .max_by_key(|(_, phase, _)| (phase.is_specific(), std::cmp::Reverse(phase.known)));
        if let Some((cookie, ..)) = holds.or(may_hold) {
            return vec![(*cookie, false)];
        }
        let past =
            connected().filter(|(_, phase, _)| phase.has_ended(at)).max_by_key(|(_, phase, _)| phase.until);
        let past = past.filter(|_| !is_syn).map(|(cookie, ..)| vec![(*cookie, false)]);
        if let Some(past) = past.clone().filter(|_| is_tcp) {
            return past;
        }
        let ports = self.ports(namespace, packet);
        if !ports.is_empty() {
            return ports;
        }
        let sent = || {
            let ports = all.iter().filter(|(_, phase, _)| phase.remote.is_none() && phase.has_ended(at));
            let last = ports.max_by_key(|(_, phase, _)| phase.until);
            last.filter(|_| side == Side::Sender && !is_tcp).map(|(cookie, ..)| vec![(*cookie, false)])
        };
        past.or_else(sent).unwrap_or_default()
    }

    /// Returns whose a socket is, by what was seen of it.
    fn holders(&self, cookie: u64, at: u64, side: Side) -> (Certainty, Vec<u32>) {
        let mut seen = self.sockets[&cookie].clone();
        seen.sort_by_key(|sighting| sighting.at);
        let number = |sighting: &Sighting| sighting.process.as_ref().map(|process| process.id.number);
        let by = |causes: &[Cause], before: u64| -> Vec<u32> {
            let some =
                seen.iter().filter(|sighting| causes.contains(&sighting.cause) && sighting.at <= before);
            some.filter_map(number).collect()
        };
        let used = [Cause::Connecting, Cause::Sent, Cause::Taken];
        let all = by(&used, u64::MAX);
        if let Some(latest) = by(&used, at).last() {
            let mut turns = all.clone();
            turns.dedup();
            let mut distinct = turns.clone();
            distinct.sort_unstable();
            distinct.dedup();
            if side == Side::Receiver && turns.len() > distinct.len() {
                return (Certainty::Several, distinct);
            }
            return (Certainty::Certain, vec![*latest]);
        }
        let prepared = by(&[Cause::Created, Cause::Bound, Cause::Listening], at);
        let held = by(&[Cause::Found], u64::MAX);
        let certainty =
            if prepared.is_empty() && !held.is_empty() { Certainty::Before } else { Certainty::Certain };
        let holders = [&prepared[..], &held, &all[..all.len().min(1)]].concat();
        if !holders.is_empty() {
            return (certainty, holders);
        }
        let prepared = by(&[Cause::Created, Cause::Bound, Cause::Listening], u64::MAX);
        if let Some(first) = prepared.first() {
            return (Certainty::Certain, vec![*first]);
        }
        let listener = by(&[Cause::Accepted], u64::MAX);
        if !listener.is_empty() {
            return (Certainty::Listener, listener);
        }
        (Certainty::Before, by(&[Cause::Established, Cause::Closed], u64::MAX))
    }

    fn owner(&self, packet: &Packet) -> String {
        let &Packet { at, namespace, side, is_tcp, .. } = packet;
        let [local, remote] = packet.ends();
        // Namespace 1 has told its address, and 2 has not.
        let here = |namespace: u64, end: Endpoint| match namespace {
            1 => Some(end == local_end(end.port, true)),
            _ => None,
        };
        let mut asked: Vec<u64> = self.sockets.values().map(|seen| seen[0].namespace).collect();
        asked.sort_unstable();
        asked.dedup();
        let told = match namespace {
            Some(namespace) => {
                asked = vec![namespace];
                asked.clone()
            }
            None => {
                let mut told = asked.clone();
                told.push(1);
                asked.retain(|namespace| here(*namespace, local) != Some(false));
                told
            }
        };
        let mut processes: Vec<u32> = Vec::new();
        let mut certainty = None;
        let mut is_unknown = false;
        for namespace in asked {
            for (cookie, listens) in self.candidates(namespace, packet) {
                let mut holders = vec![(self.holders(cookie, at, side), listens)];
                let was_accepted = self.sockets[&cookie].iter().any(|seen| seen.cause == Cause::Accepted);
                if holders[0].0.1.is_empty() && was_accepted {
                    // Nobody knows whose it is but the listener.
                    let listeners = self.ports(namespace, packet);
                    let told = |(cookie, _): &(u64, bool)| (self.holders(*cookie, at, side), true);
                    holders.extend(listeners.iter().map(told));
                }
                is_unknown |= holders.iter().all(|((_, who), _)| who.is_empty());
                for ((how, who), listens) in holders.into_iter().filter(|((_, who), _)| !who.is_empty()) {
                    let how = if listens { Certainty::Listener } else { how };
                    certainty = certainty.max(Some(how));
                    processes.extend(who);
                }
            }
        }
        processes.sort_unstable();
        processes.dedup();
        if is_unknown {
            return "Unknown".to_owned();
        }
        if let Some(certainty) = certainty {
            let certainty = if processes.len() > 1 { Certainty::Several } else { certainty };
            let names = processes.iter().map(|number| format!(" p{number}")).collect::<String>();
            return format!("{certainty:?}{names}");
        }
        let is_here = |end: Endpoint| {
            let all: Vec<_> = told.iter().map(|namespace| here(*namespace, end)).collect();
            match () {
                () if all.contains(&Some(true)) => Some(true),
                () if all.contains(&None) => None,
                () => Some(false),
            }
        };
        match (is_here(local), is_here(remote)) {
            (Some(false), Some(false)) => return "Forwarded".to_owned(),
            (Some(true), _) if side == Side::Receiver => {}
            _ => return "Unknown".to_owned(),
        }
        let is_forgotten = self.open_forgotten_from.is_some_and(|from| at >= from)
            || self.closed_forgotten_until.is_some_and(|until| at <= until);
        let waits = || {
            self.sockets.values().any(|seen| {
                (namespace.is_none() || namespace == Some(seen[0].namespace))
                    && seen[0].kind == SocketKind::Datagram
                    && phases(seen).iter().any(|phase| {
                        phase.local.port == 0
                            && phase.remote == Some(remote)
                            && phase.from <= at
                            && at <= phase.until.saturating_add(LINGER)
                    })
            })
        };
        if is_forgotten || !is_tcp && waits() { "Unknown".to_owned() } else { "Kernel".to_owned() }
    }
}

/// A host's own end, of its address or of any.
fn local_end(port: u16, is_specific: bool) -> Endpoint {
    let address = if is_specific { [10, 0, 0, 1] } else { [0; 4] };
    Endpoint { address: address.into(), port }
}

fn remote_end(number: u8) -> Endpoint {
    Endpoint { address: [10, 0, 0, 2 + number % 2].into(), port: 53 }
}

/// Something that happens to one of a few sockets at a time.
#[derive(Clone, Copy, Debug)]
struct Event {
    slot: usize,
    what: u8,
    choice: u8,
    process: u32,
    /// Nobody reports it; or who did it.
    is_missed: bool,
    is_nobodys: bool,
}

/// A socket as the kernel has it.
#[derive(Clone, Debug)]
struct Live {
    cookie: u64,
    namespace: u64,
    kind: SocketKind,
    local: Endpoint,
    remote: Option<Endpoint>,
    listens: bool,
    /// What may still happen to it, so that nothing of it is forgotten.
    left: usize,
}

/// Makes what happens into sightings, as the kernel would report them.
fn play(events: &[Event]) -> Vec<Sighting> {
    let mut slots: [Option<Live>; 4] = [const { None }; 4];
    let (mut sightings, mut cookies) = (Vec::new(), 0_u64);
    for (number, event) in (1_u64..).zip(events) {
        let at = number * STEP;
        let port = 5000 + u16::from(event.choice / 2 % 2);
        let mut new = |kind, local, remote| {
            cookies += 1;
            let namespace = 1 + u64::from(event.choice / 4 % 2);
            Live { cookie: cookies, namespace, kind, local, remote, listens: false, left: 10 }
        };
        let is_new = slots[event.slot].is_none();
        let what = match &mut slots[event.slot] {
            Some(Live { left: 0, .. }) => 7,
            Some(live) => {
                live.left -= 1;
                event.what % 8
            }
            None => event.what % 8,
        };
        let cause = match (&mut slots[event.slot], what) {
            (slot @ None, what) => {
                let kind = if event.choice % 2 == 0 { SocketKind::Stream } else { SocketKind::Datagram };
                let is_specific = event.choice & 8 != 0;
                let remote = Some(remote_end(event.choice >> 4));
                let (live, cause) = match what {
                    0 if kind == SocketKind::Datagram => (
                        new(kind, local_end(port, is_specific), remote.filter(|_| event.choice & 32 != 0)),
                        Cause::Found,
                    ),
                    0 => (new(kind, local_end(port, true), remote), Cause::Found),
                    1 if kind == SocketKind::Stream => {
                        (new(kind, local_end(port, true), remote), Cause::Accepted)
                    }
                    1 => (new(kind, local_end(0, false), remote), Cause::Connecting),
                    _ => (new(kind, local_end(0, false), None), Cause::Created),
                };
                *slot = Some(live);
                cause
            }
            (Some(live), 0 | 1) if live.local.port == 0 => {
                live.local = local_end(port, event.choice & 8 != 0);
                Cause::Bound
            }
            (Some(live), 0..=3)
                if !live.listens && (live.kind == SocketKind::Datagram || live.remote.is_none()) =>
            {
                live.remote = Some(remote_end(event.choice >> 4));
                if live.kind == SocketKind::Stream {
                    if live.local.port == 0 {
                        live.local.port = port;
                    }
                    live.local.address = [10, 0, 0, 1].into();
                }
                Cause::Connecting
            }
            (Some(live), 4) if live.kind == SocketKind::Datagram => {
                if live.local.port == 0 {
                    live.local.port = port;
                }
                Cause::Sent
            }
            (Some(live), 4) if live.remote.is_none() && live.local.port != 0 => {
                live.listens = true;
                Cause::Listening
            }
            (Some(_), 5) => Cause::Taken,
            (Some(_), 6) => Cause::Established,
            (Some(live), _) => {
                // Now it is told at last.
                if live.kind == SocketKind::Datagram && live.remote.is_some() {
                    if live.local.port == 0 {
                        live.local.port = port;
                    }
                    live.local.address = [10, 0, 0, 1].into();
                }
                Cause::Closed
            }
        };
        let live = slots[event.slot].clone().expect("it is there now");
        let remote = match cause {
            Cause::Sent => Some(remote_end(event.choice >> 5)),
            _ => live.remote,
        };
        let is_process_known = !event.is_nobodys && cause != Cause::Established;
        if is_new || !event.is_missed {
            sightings.push(Sighting {
                at,
                socket: live.cookie,
                namespace: live.namespace,
                kind: live.kind,
                protocol: if live.kind == SocketKind::Stream { protocol::TCP } else { protocol::UDP },
                local: live.local,
                remote,
                cause,
                process: is_process_known.then(|| process(event.process)),
            });
        }
        if cause == Cause::Closed {
            slots[event.slot] = None;
        }
    }
    sightings
}

fn event() -> impl Strategy<Value = Event> {
    let rarely = || prop::bool::weighted(0.1);
    (0..4_usize, any::<u8>(), any::<u8>(), 1..4_u32, rarely(), rarely()).prop_map(
        |(slot, what, choice, process, is_missed, is_nobodys)| Event {
            slot,
            what,
            choice,
            process,
            is_missed,
            is_nobodys,
        },
    )
}

fn packet() -> impl Strategy<Value = Packet> {
    let ends = (5000..5002_u16, any::<u8>(), any::<bool>());
    (0..520_u64, 0..4_u64, any::<bool>(), any::<u8>(), ends, any::<bool>()).prop_map(
        |(at, namespace, is_sender, what, (port, number, is_elsewhere), outward)| {
            let mut own = local_end(port, true);
            if is_elsewhere && number > 200 {
                own.address = [10, 0, 0, 9].into();
            }
            let other = remote_end(number);
            let (from, to) = if outward { (own, other) } else { (other, own) };
            Packet {
                at,
                namespace: (namespace > 0).then_some(namespace.min(2)),
                side: if is_sender { Side::Sender } else { Side::Receiver },
                is_tcp: what % 2 == 0,
                is_syn: what % 8 == 0,
                from,
                to,
            }
        },
    )
}

fn check(events: &[Event], swaps: &[bool], packets: &[Packet], room: usize) -> Result<(), TestCaseError> {
    let mut sightings = play(events);
    for (index, swap) in swaps.iter().enumerate() {
        if *swap && 2 * index + 1 < sightings.len() {
            sightings.swap(2 * index, 2 * index + 1);
        }
    }
    let mut register = Register::new(&Settings { sockets: room, linger: LINGER });
    register.learn(&News::Address { at: 0, namespace: 1, address: [10, 0, 0, 1].into() });
    let mut twin = Twin {
        room,
        sockets: BTreeMap::new(),
        now: 0,
        open_forgotten_from: None,
        closed_forgotten_until: None,
        counts: Counts::default(),
    };
    // Half of the packets are asked about as it goes, the others at the end.
    let (meanwhile, afterwards) = packets.split_at(packets.len() / 2);
    let ask = |register: &Register, twin: &Twin, packet: &Packet| {
        let &Packet { at, namespace, side, is_tcp, is_syn, from, to } = packet;
        let frame = match is_tcp {
            true => tcp_between(from, to, if is_syn { SYN } else { ACK }),
            false => udp_between(from, to),
        };
        let question = Question { at, namespace, link_type: link_type::ETHERNET, frame: &frame };
        let answer = register.owner(&question, side);
        prop_assert_eq!(&answer, &register.known.owner_by_all_rules(&question, side));
        let (answer, expected) = (said(&answer), twin.owner(packet));
        prop_assert_eq!(answer, expected, "{:?}\n{}", packet, twin.story());
        Ok(())
    };
    for (index, sighting) in sightings.iter().enumerate() {
        register.learn(&News::Sighting(sighting.clone()));
        twin.see(sighting);
        if let Some(packet) = meanwhile.get(index) {
            ask(&register, &twin, packet)?;
        }
    }
    prop_assert_eq!(register.counts(), twin.counts);
    register.known.sockets.lengths();
    afterwards.iter().try_for_each(|packet| ask(&register, &twin, packet))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn it_says_what_a_slow_twin_does(
        events in vec(event(), 1..50),
        swaps in vec(any::<bool>(), 25),
        packets in vec(packet(), 40),
        room in prop_oneof![Just(3_usize), Just(100)],
    ) {
        check(&events, &swaps, &packets, room)?;
    }
}
