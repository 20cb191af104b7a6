//! What rules remember: exact rules, and the buckets of limits.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;

use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};
use weir_sys::bpf::map::{Map, MapKind};
use weir_sys::{CallError, clock};

use super::Fate;
use super::actions::{Over, code, fate_of};
use super::generated::types::{bucket, exact_rule, flow, key, passage, unkept};
use crate::layout::{get, key_field, limited, no_number, set};

/// Packets of one direction of a flow, in a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exact {
    /// ID of the outermost VLAN tag.
    pub vlan: Option<u16>,
    /// Protocol of the outermost IP packet, behind extension headers.
    pub protocol: u8,
    /// Where they come from. The port is 0 if the protocol has none, and for fragments after the first.
    pub from: SocketAddr,
    /// Where they go: an address of the same kind.
    pub to: SocketAddr,
}

/// What becomes of packets that are [`Exact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactRule {
    /// What happens to them.
    pub fate: Fate,
    /// Whether a capture takes them.
    pub capture: bool,
    /// The end, by `CLOCK_MONOTONIC` in nanoseconds; `u64::MAX`: never.
    pub until: u64,
    /// Each packet puts the end off until there was none for so many nanoseconds; `None`: none does.
    pub idle: Option<u64>,
}

/// An exact rule in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactEntry {
    /// What it does.
    pub rule: ExactRule,
    /// The rule that has learned it; `None`: it was inserted.
    pub by: Option<usize>,
    /// Its packets, if it was inserted. Others are counted for the rule.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the last one came, as in [`ExactRule::until`]; 0: there was none.
    pub last: u64,
}

/// Packets for which something could not be remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unkept {
    /// Taught nothing: no room for the rule, or not for both of its directions.
    pub learned: u64,
    /// Taught nothing: they belong to no flow, since they are not IP.
    pub no_flow: u64,
    /// Taken to be within a limit: no room for their bucket.
    pub buckets: u64,
    /// Not logged: no room.
    pub logged: u64,
    /// Captured without being counted among the first of a flow: no room for it.
    pub flows: u64,
}

/// What loaded rules remember.
#[derive(Debug)]
pub struct Memory {
    /// Exact rules, if there can be any.
    pub exact: Option<ExactRules>,
    pub(super) buckets: Option<Buckets>,
    pub(super) flows: Option<Flows>,
    pub(super) unkept: Option<MapHandle>,
    pub(super) passages: Option<MapHandle>,
}

/// The exact rules of loaded rules.
#[derive(Debug)]
pub struct ExactRules {
    pub(super) all: MapHandle,
    /// The same map; its errors are the kernel's.
    pub(super) map: Map,
}

/// The flows of which the first packets are captured.
#[derive(Debug)]
pub(super) struct Flows {
    pub(super) map: Map,
    /// After such a silence, in nanoseconds, a flow begins anew.
    pub(super) idle: u64,
}

/// The buckets of limits.
#[derive(Debug)]
pub(super) struct Buckets {
    pub(super) map: Map,
    /// The limits of all actions of each rule.
    pub(super) limits: Vec<[Option<Over>; limited::LIMITED.0 as usize]>,
}

impl Memory {
    /// Sets the time of the programs' clock, if it is [given](super::Settings::clock_is_given).
    ///
    /// # Errors
    ///
    /// The kernel does not let this process change the map.
    #[doc(hidden)]
    pub fn set_clock(&self, now: u64) -> Result<(), CallError> {
        let Some(map) = &self.passages else { return Ok(()) };
        let mut value = vec![0; size_of::<passage>()];
        set!(&mut value, passage.given = now);
        let processors = libbpf_rs::num_possible_cpus().map_err(failed("set the clock of rules"))?;
        let values = vec![value; processors];
        let updated = map.update_percpu(&0_u32.to_ne_bytes(), &values, MapFlags::ANY);
        updated.map_err(failed("set the clock of rules"))
    }

    /// Removes what is over, to make room. A full table remembers nothing new until this is called: call it about once a second.
    /// If a packet renews an exact rule while this removes it, another packet has to teach it again.
    ///
    /// # Errors
    ///
    /// The kernel does not let this process change the maps, or memory is short.
    pub fn sweep(&self) -> Result<(), CallError> {
        self.sweep_at(clock::monotonic())
    }

    /// Does so for a time that is [given](super::Settings::clock_is_given).
    ///
    /// # Errors
    ///
    /// As for [`Memory::sweep`].
    #[doc(hidden)]
    pub fn sweep_at(&self, now: u64) -> Result<(), CallError> {
        if let Some(ExactRules { map, .. }) = &self.exact {
            remove(map, |rule| get!(rule, exact_rule.until) <= now)?;
        }
        if let Some(Buckets { map, limits }) = &self.buckets {
            let is_full = |value: &[u8]| {
                let action = get!(value, bucket.action) as usize;
                let [rule, action] = [action / limits_per_rule(), action % limits_per_rule()];
                let over = limits.get(rule).and_then(|limits| limits[action]);
                let passed = now.saturating_sub(get!(value, bucket.then));
                over.is_none_or(|over| {
                    let added = passed.saturating_mul(over.packets);
                    get!(value, bucket.level).saturating_add(added) >= over.size()
                })
            };
            remove(map, is_full)?;
        }
        if let Some(Flows { map, idle }) = &self.flows {
            remove(map, |value| now.saturating_sub(get!(value, flow.last)) > *idle)?;
        }
        Ok(())
    }

    /// Returns the packets for which something could not be remembered.
    ///
    /// # Errors
    ///
    /// The kernel does not let this process read the map.
    pub fn unkept(&self) -> Result<Unkept, CallError> {
        let Some(map) = &self.unkept else { return Ok(Unkept::default()) };
        let values = map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let values = values.map_err(failed("read counters of rules"))?;
        let add = |sum: Unkept, one: Vec<u8>| Unkept {
            learned: sum.learned + get!(&one, unkept.learned),
            no_flow: sum.no_flow + get!(&one, unkept.no_flow),
            buckets: sum.buckets + get!(&one, unkept.buckets),
            logged: sum.logged + get!(&one, unkept.logged),
            flows: sum.flows + get!(&one, unkept.flows),
        };
        Ok(values.into_iter().flatten().fold(Unkept::default(), add))
    }
}

const fn limits_per_rule() -> usize {
    limited::LIMITED.0 as usize
}

impl ExactRules {
    pub(super) fn new(all: MapHandle) -> io::Result<Self> {
        Ok(Self { map: hash(&all)?, all })
    }

    /// Inserts a rule, or replaces the one for these packets. It counts its packets anew.
    ///
    /// # Errors
    ///
    /// `E2BIG`: there is no room. `EINVAL`: the addresses are of two kinds.
    pub fn insert(&self, exact: &Exact, rule: &ExactRule) -> Result<(), CallError> {
        const WHAT: &str = "insert an exact rule";
        let key = exact
            .bytes()
            .ok_or_else(|| CallError::new(WHAT, io::Error::from(io::ErrorKind::InvalidInput)))?;
        let mut value = vec![0; size_of::<exact_rule>()];
        let (fate, interface) = code(rule.fate);
        set!(&mut value, exact_rule.until = rule.until);
        set!(&mut value, exact_rule.idle = rule.idle.unwrap_or(0));
        set!(&mut value, exact_rule.rule = no_number::NO_RULE.0);
        set!(&mut value, exact_rule.fate = fate);
        set!(&mut value, exact_rule.interface = interface);
        set!(&mut value, exact_rule.capture = u32::from(rule.capture));
        self.map.update(&key, &value)
    }

    /// Removes a rule, whoever has made it; returns whether there was one.
    ///
    /// # Errors
    ///
    /// The kernel does not let this process change the map.
    pub fn remove(&self, exact: &Exact) -> Result<bool, CallError> {
        let Some(key) = exact.bytes() else { return Ok(false) };
        match self.all.delete(&key) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("remove an exact rule")(error)),
        }
    }

    /// Returns a rule, also one that is over and not removed yet.
    ///
    /// # Errors
    ///
    /// The kernel does not let this process read the map.
    pub fn get(&self, exact: &Exact) -> Result<Option<ExactEntry>, CallError> {
        let Some(key) = exact.bytes() else { return Ok(None) };
        let value = self.all.lookup(&key, MapFlags::ANY).map_err(failed("read an exact rule"))?;
        Ok(value.map(|value| ExactEntry::from_bytes(&value)))
    }

    /// Returns all rules, in no order, also those that are over and not removed yet.
    ///
    /// # Errors
    ///
    /// The kernel does not let this process read the map, or memory is short.
    pub fn list(&self) -> Result<Vec<(Exact, ExactEntry)>, CallError> {
        let mut all = Vec::new();
        self.map.each(|key, value| all.push((Exact::from_bytes(key), ExactEntry::from_bytes(value))))?;
        Ok(all)
    }
}

impl ExactEntry {
    fn from_bytes(value: &[u8]) -> Self {
        let by = get!(value, exact_rule.rule);
        Self {
            rule: ExactRule {
                fate: fate_of(get!(value, exact_rule.fate), get!(value, exact_rule.interface)),
                capture: get!(value, exact_rule.capture) != 0,
                until: get!(value, exact_rule.until),
                idle: Some(get!(value, exact_rule.idle)).filter(|idle| *idle > 0),
            },
            by: (by != no_number::NO_RULE.0).then_some(by as usize),
            packets: get!(value, exact_rule.packets),
            bytes: get!(value, exact_rule.bytes),
            last: get!(value, exact_rule.last),
        }
    }
}

impl Exact {
    /// Returns the bytes of a `struct key`; `None`: the addresses are of two kinds.
    fn bytes(&self) -> Option<Vec<u8>> {
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => {
                let mut octets = [0; 16];
                octets[..4].copy_from_slice(&address.octets());
                octets
            }
            IpAddr::V6(address) => address.octets(),
        };
        let mut bytes = vec![0; size_of::<key>()];
        set!(&mut bytes, key.source = octets(self.from.ip()));
        set!(&mut bytes, key.destination = octets(self.to.ip()));
        set!(&mut bytes, key.source_port = self.from.port());
        set!(&mut bytes, key.destination_port = self.to.port());
        set!(&mut bytes, key.protocol = self.protocol);
        set!(&mut bytes, key.ip6 = u8::from(self.from.is_ipv6()));
        if let Some(vlan) = self.vlan {
            set!(&mut bytes, key.vlan = vlan);
            set!(&mut bytes, key.there = tagged());
        }
        (self.from.is_ipv6() == self.to.is_ipv6()).then_some(bytes)
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let is_ipv6 = get!(bytes, key.ip6) != 0;
        let address = |octets: [u8; 16]| {
            let [a, b, c, d, ..] = octets;
            if is_ipv6 { IpAddr::from(Ipv6Addr::from(octets)) } else { Ipv4Addr::new(a, b, c, d).into() }
        };
        Self {
            vlan: (get!(bytes, key.there) & tagged() != 0).then(|| get!(bytes, key.vlan)),
            protocol: get!(bytes, key.protocol),
            from: (address(get!(bytes, key.source)), get!(bytes, key.source_port)).into(),
            to: (address(get!(bytes, key.destination)), get!(bytes, key.destination_port)).into(),
        }
    }
}

/// What a key has in `there` if it has a VLAN.
fn tagged() -> u8 {
    u8::try_from(key_field::BY_VLAN.0).expect("eight fields")
}

impl Buckets {
    pub(super) fn new(
        map: &MapHandle,
        limits: Vec<[Option<Over>; limited::LIMITED.0 as usize]>,
    ) -> io::Result<Self> {
        Ok(Self { map: hash(map)?, limits })
    }
}

impl Flows {
    pub(super) fn new(map: &MapHandle, idle: u64) -> io::Result<Self> {
        Ok(Self { map: hash(map)?, idle })
    }
}

/// Returns the same map as one whose errors are the kernel's, and whose entries can all be read.
fn hash(map: &MapHandle) -> io::Result<Map> {
    let (key, value) = (map.key_size(), map.value_size());
    let map = Map::received(map.as_fd().try_clone_to_owned()?, MapKind::Hash, key, value);
    map.map_err(io::Error::other)
}

/// Removes entries.
fn remove(map: &Map, is_over: impl Fn(&[u8]) -> bool) -> Result<(), CallError> {
    let mut over = Vec::new();
    map.each(|key, value| over.extend(is_over(value).then(|| key.to_vec())))?;
    over.iter().try_for_each(|key| map.remove(key))
}

fn failed(what: &'static str) -> impl Fn(libbpf_rs::Error) -> CallError {
    move |error| CallError::new(what, io::Error::other(error))
}
