//! News as bytes.
//!
//! Bytes are a sequence of entries: a kind (one byte), the length of the rest (a *count*), the rest. Readers leave out entries of
//! kinds they do not know, and what they do not know at an entry's end. Numbers have a fixed size and begin with their lowest byte.
//! A *count* takes 7 bits of each byte, the lowest first; the highest bit says that another byte follows. A *text* is its length in
//! bytes (a count), then UTF-8. An *address* is 4 or 6, then 4 or 16 bytes; an *end* is an address and a port (u16).
//!
//! | kind | entry | contents |
//! |---|---|---|
//! | 0 | begin | version (u8): 1; the first entry, from which processes are counted |
//! | 1 | process | number (u32), start (u64), parent (u32), user (u32), which of the following are there (u8), name (text); bit 0: program (text), 1: arguments (their count, texts), 2: control group (text), 3: container's id and engine (texts), 4: its name (text), 5: unit (text) |
//! | 2 | sighting | time, socket, namespace (u64), kind, protocol, cause (u8), process (count: 0 none, 1 the first), own end, the other end or 0 (u8) |
//! | 3 | described | process (count, as there) |
//! | 4 | address | time, namespace (u64), address |
//! | 5 | address gone | the same |
//! | 6 | interface | number (u32), namespace (u64) |
//! | 7 | lost | time, how many (u64) |
//! | 8 | executed | time (u64), process (count, as in a sighting) |
//!
//! A process is written once, before the first entry that names it; bytes that were appended to others begin anew with their own.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};
use weir_packet::Endpoint;

use crate::{Cause, Container, News, Process, ProcessId, Sighting, SocketKind};

const VERSION: u8 = 1;

/// Kinds of entries.
mod entry {
    pub(super) const BEGIN: u8 = 0;
    pub(super) const PROCESS: u8 = 1;
    pub(super) const SIGHTING: u8 = 2;
    pub(super) const DESCRIBED: u8 = 3;
    pub(super) const ADDRESS: u8 = 4;
    pub(super) const ADDRESS_GONE: u8 = 5;
    pub(super) const INTERFACE: u8 = 6;
    pub(super) const LOST: u8 = 7;
    pub(super) const EXECUTED: u8 = 8;
}

/// What is known of a process.
mod known {
    pub(super) const PROGRAM: u8 = 1;
    pub(super) const ARGUMENTS: u8 = 2;
    pub(super) const CGROUP: u8 = 4;
    pub(super) const CONTAINER: u8 = 8;
    pub(super) const CONTAINER_NAME: u8 = 16;
    pub(super) const UNIT: u8 = 32;
}

const KINDS: [SocketKind; 4] = [SocketKind::Stream, SocketKind::Datagram, SocketKind::Raw, SocketKind::Other];

const CAUSES: [Cause; 10] = [
    Cause::Found,
    Cause::Created,
    Cause::Bound,
    Cause::Connecting,
    Cause::Sent,
    Cause::Listening,
    Cause::Accepted,
    Cause::Taken,
    Cause::Established,
    Cause::Closed,
];

/// Bytes that are no news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError(pub(crate) String);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

/// The most bytes of a text about a process, and of all its arguments, that are read: tables have a size, and what is in them has, too.
const LONGEST: usize = 4096;

/// Appends news to `bytes`, which [`decode`] reads on any machine. Each call's bytes can be read alone.
pub fn encode(news: &[News], bytes: &mut Vec<u8>) {
    Encoder::begin(bytes).put_all(news);
}

#[derive(Debug)]
struct Encoder<'n, 'b> {
    bytes: &'b mut Vec<u8>,
    /// Their places, from 1 on.
    processes: HashMap<&'n Process, u64>,
    /// The same, by where they are in memory: most are shared.
    shared: HashMap<*const Process, u64>,
    /// What an entry is put together in.
    rest: Vec<u8>,
}

impl<'n, 'b> Encoder<'n, 'b> {
    fn begin(bytes: &'b mut Vec<u8>) -> Self {
        let mut encoder = Self { bytes, processes: HashMap::new(), shared: HashMap::new(), rest: Vec::new() };
        encoder.rest.push(VERSION);
        encoder.end(entry::BEGIN);
        encoder
    }

    fn put_all(&mut self, news: &'n [News]) {
        for news in news {
            let kind = match news {
                News::Sighting(sighting) => {
                    let process = sighting.process.as_ref().map_or(0, |process| self.process(process));
                    put_sighting(&mut self.rest, sighting, process);
                    entry::SIGHTING
                }
                News::Executed { at, process } => {
                    let process = self.process(process);
                    put_numbers(&mut self.rest, &[*at]);
                    put_count(&mut self.rest, process);
                    entry::EXECUTED
                }
                News::Described(process) => {
                    let process = self.process(process);
                    put_count(&mut self.rest, process);
                    entry::DESCRIBED
                }
                News::Address { at, namespace, address } => {
                    put_numbers(&mut self.rest, &[*at, *namespace]);
                    put_address(&mut self.rest, *address);
                    entry::ADDRESS
                }
                News::AddressGone { at, namespace, address } => {
                    put_numbers(&mut self.rest, &[*at, *namespace]);
                    put_address(&mut self.rest, *address);
                    entry::ADDRESS_GONE
                }
                News::Interface { interface, namespace } => {
                    self.rest.extend(interface.to_le_bytes());
                    put_numbers(&mut self.rest, &[*namespace]);
                    entry::INTERFACE
                }
                News::Lost { at, sightings } => {
                    put_numbers(&mut self.rest, &[*at, *sightings]);
                    entry::LOST
                }
            };
            self.end(kind);
        }
    }

    /// Ends an entry of this kind.
    fn end(&mut self, kind: u8) {
        self.bytes.push(kind);
        put_count(self.bytes, self.rest.len() as u64);
        self.bytes.append(&mut self.rest);
    }

    /// Returns the place of a process, which is written if it was not yet.
    fn process(&mut self, process: &'n Arc<Process>) -> u64 {
        if let Some(place) = self.shared.get(&Arc::as_ptr(process)) {
            return *place;
        }
        let next = self.processes.len() as u64 + 1;
        let place = *self.processes.entry(process).or_insert(next);
        if place == next {
            put_process(&mut self.rest, process);
            self.end(entry::PROCESS);
        }
        self.shared.insert(Arc::as_ptr(process), place);
        place
    }
}

fn put_numbers(bytes: &mut Vec<u8>, numbers: &[u64]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn put_count(bytes: &mut Vec<u8>, mut count: u64) {
    while count > 0x7f {
        bytes.push(0x80 | count.to_le_bytes()[0]);
        count >>= 7;
    }
    bytes.push(count.to_le_bytes()[0]);
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_count(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}

fn put_address(bytes: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            bytes.push(4);
            bytes.extend(address.octets());
        }
        IpAddr::V6(address) => {
            bytes.push(6);
            bytes.extend(address.octets());
        }
    }
}

fn put_end(bytes: &mut Vec<u8>, end: &Endpoint) {
    put_address(bytes, end.address);
    bytes.extend(end.port.to_le_bytes());
}

fn put_process(bytes: &mut Vec<u8>, process: &Process) {
    let Process { id, parent, user, name, program, arguments, cgroup, container, unit } = process;
    bytes.extend(id.number.to_le_bytes());
    bytes.extend(id.started.to_le_bytes());
    bytes.extend(parent.to_le_bytes());
    bytes.extend(user.to_le_bytes());
    let container_name = container.as_ref().and_then(|container| container.name.as_ref());
    let bit = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
    bytes.push(
        bit(program.is_some(), known::PROGRAM)
            | bit(arguments.is_some(), known::ARGUMENTS)
            | bit(cgroup.is_some(), known::CGROUP)
            | bit(container.is_some(), known::CONTAINER)
            | bit(container_name.is_some(), known::CONTAINER_NAME)
            | bit(unit.is_some(), known::UNIT),
    );
    put_text(bytes, name);
    if let Some(program) = program {
        put_text(bytes, program);
    }
    if let Some(arguments) = arguments {
        put_count(bytes, arguments.len() as u64);
        arguments.iter().for_each(|argument| put_text(bytes, argument));
    }
    if let Some(cgroup) = cgroup {
        put_text(bytes, cgroup);
    }
    if let Some(container) = container {
        put_text(bytes, &container.id);
        put_text(bytes, &container.engine);
    }
    if let Some(name) = container_name {
        put_text(bytes, name);
    }
    if let Some(unit) = unit {
        put_text(bytes, unit);
    }
}

fn put_sighting(bytes: &mut Vec<u8>, sighting: &Sighting, process: u64) {
    let kind = match sighting.kind {
        SocketKind::Stream => 0,
        SocketKind::Datagram => 1,
        SocketKind::Raw => 2,
        SocketKind::Other => 3,
    };
    let cause = match sighting.cause {
        Cause::Found => 0,
        Cause::Created => 1,
        Cause::Bound => 2,
        Cause::Connecting => 3,
        Cause::Sent => 4,
        Cause::Listening => 5,
        Cause::Accepted => 6,
        Cause::Taken => 7,
        Cause::Established => 8,
        Cause::Closed => 9,
    };
    put_numbers(bytes, &[sighting.at, sighting.socket, sighting.namespace]);
    bytes.extend([kind, sighting.protocol, cause]);
    put_count(bytes, process);
    put_end(bytes, &sighting.local);
    match &sighting.remote {
        Some(remote) => put_end(bytes, remote),
        None => bytes.push(0),
    }
}

/// Reads what [`encode`] has written.
///
/// # Errors
///
/// They are cut, or from something else. News of kinds that this version does not know are left out.
pub fn decode(bytes: &[u8]) -> Result<Vec<News>, WireError> {
    let mut rest = Bytes { bytes };
    let mut news = Vec::new();
    let mut processes = None;
    while !rest.bytes.is_empty() {
        let at = bytes.len() - rest.bytes.len();
        let entry = read_entry(&mut rest, &mut processes)
            .map_err(|problem| WireError(format!("cannot read news of sockets at byte {at}: {problem}")))?;
        news.extend(entry);
    }
    match processes {
        Some(_) => Ok(news),
        None => Err(WireError("cannot read news of sockets: there are no bytes".to_owned())),
    }
}

/// Reads an entry. `processes`: those so far, once there was a beginning.
fn read_entry(
    bytes: &mut Bytes<'_>,
    processes: &mut Option<Vec<Arc<Process>>>,
) -> Result<Option<News>, Problem> {
    let kind = bytes.byte()?;
    let length = bytes.count()?;
    let mut rest = Bytes { bytes: bytes.take(length)? };
    if kind == entry::BEGIN {
        match rest.byte()? {
            VERSION => *processes = Some(Vec::new()),
            version => return Err(Problem::Version(version)),
        }
        return Ok(None);
    }
    let processes = processes.as_mut().ok_or(Problem::NoBeginning)?;
    Ok(match kind {
        entry::PROCESS => {
            processes.push(Arc::new(rest.process()?));
            None
        }
        entry::SIGHTING => rest.sighting(processes)?.map(News::Sighting),
        entry::EXECUTED => {
            let (at, process) = (rest.u64()?, rest.named(processes)?);
            Some(News::Executed { at, process: process.ok_or(Problem::NoProcess)? })
        }
        entry::DESCRIBED => Some(News::Described(rest.named(processes)?.ok_or(Problem::NoProcess)?)),
        entry::ADDRESS => {
            Some(News::Address { at: rest.u64()?, namespace: rest.u64()?, address: rest.address()? })
        }
        entry::ADDRESS_GONE => {
            Some(News::AddressGone { at: rest.u64()?, namespace: rest.u64()?, address: rest.address()? })
        }
        entry::INTERFACE => Some(News::Interface { interface: rest.u32()?, namespace: rest.u64()? }),
        entry::LOST => Some(News::Lost { at: rest.u64()?, sightings: rest.u64()? }),
        _ => None,
    })
}

/// Why bytes are no news.
#[derive(Clone, Copy, Debug)]
enum Problem {
    Cut,
    Count,
    Text,
    Address(u8),
    Version(u8),
    NoBeginning,
    NoProcess,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("they are cut"),
            Self::Count => f.write_str("a count has more than 64 bits"),
            Self::Text => f.write_str("a text is not UTF-8"),
            Self::Address(family) => write!(f, "there are no addresses of IP version {family}"),
            Self::Version(version) => {
                write!(f, "they have version {version}, not {VERSION}; try a newer weir")
            }
            Self::NoBeginning => f.write_str("they do not begin as news do"),
            Self::NoProcess => f.write_str("they name a process that they do not tell"),
        }
    }
}

/// Bytes that are still to be read.
#[derive(Clone, Copy, Debug)]
struct Bytes<'a> {
    bytes: &'a [u8],
}

impl<'a> Bytes<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], Problem> {
        let count = usize::try_from(count).map_err(|_| Problem::Cut)?;
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(Problem::Cut)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Problem::Cut)?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, Problem> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, Problem> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Problem> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Problem> {
        self.array().map(u64::from_le_bytes)
    }

    fn count(&mut self) -> Result<u64, Problem> {
        let mut count = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(Problem::Count);
            }
            count |= bits << shift;
            if byte < 0x80 {
                return Ok(count);
            }
        }
        Err(Problem::Count)
    }

    fn text(&mut self) -> Result<String, Problem> {
        let length = self.count()?;
        let bytes = self.take(length)?;
        let text = std::str::from_utf8(bytes).map_err(|_| Problem::Text)?;
        let end = (0..=text.len().min(LONGEST)).rfind(|&end| text.is_char_boundary(end));
        Ok(text[..end.unwrap_or_default()].to_owned())
    }

    fn address(&mut self) -> Result<IpAddr, Problem> {
        let family = self.byte()?;
        self.address_of(family)
    }

    fn address_of(&mut self, family: u8) -> Result<IpAddr, Problem> {
        match family {
            4 => self.array::<4>().map(IpAddr::from),
            6 => self.array::<16>().map(IpAddr::from),
            _ => Err(Problem::Address(family)),
        }
    }

    /// Returns the process that is named here, if one is.
    fn named(&mut self, processes: &[Arc<Process>]) -> Result<Option<Arc<Process>>, Problem> {
        let Some(index) = self.count()?.checked_sub(1) else { return Ok(None) };
        let process = usize::try_from(index).ok().and_then(|index| processes.get(index));
        process.map(|process| Some(Arc::clone(process))).ok_or(Problem::NoProcess)
    }

    /// Nothing is reserved for what a count promises: each argument takes a byte at least.
    fn process(&mut self) -> Result<Process, Problem> {
        let id = ProcessId { number: self.u32()?, started: self.u64()? };
        let (parent, user, is_there) = (self.u32()?, self.u32()?, self.byte()?);
        let is_there = |bit: u8| is_there & bit != 0;
        let name = self.text()?;
        let program = is_there(known::PROGRAM).then(|| self.text()).transpose()?;
        let mut arguments = None;
        if is_there(known::ARGUMENTS) {
            let all = arguments.insert(Vec::new());
            let mut left = LONGEST;
            for _ in 0..self.count()? {
                let argument = self.text()?;
                // Each counts at least as an end.
                match left.checked_sub(argument.len() + 1) {
                    Some(less) => {
                        left = less;
                        all.push(argument);
                    }
                    None => left = 0,
                }
            }
        }
        let cgroup = is_there(known::CGROUP).then(|| self.text()).transpose()?;
        let mut container = None;
        if is_there(known::CONTAINER) {
            let (id, engine) = (self.text()?, self.text()?);
            let name = is_there(known::CONTAINER_NAME).then(|| self.text()).transpose()?;
            container = Some(Container { id, name, engine });
        }
        let unit = is_there(known::UNIT).then(|| self.text()).transpose()?;
        Ok(Process { id, parent, user, name, program, arguments, cgroup, container, unit })
    }

    /// `None`: of a kind or for a cause that is not known yet.
    fn sighting(&mut self, processes: &[Arc<Process>]) -> Result<Option<Sighting>, Problem> {
        let (at, socket, namespace) = (self.u64()?, self.u64()?, self.u64()?);
        let [kind, protocol, cause] = self.array()?;
        let process = self.named(processes)?;
        let local = Endpoint { address: self.address()?, port: self.u16()? };
        let remote = match self.byte()? {
            0 => None,
            family => Some(Endpoint { address: self.address_of(family)?, port: self.u16()? }),
        };
        let (Some(&kind), Some(&cause)) = (KINDS.get(usize::from(kind)), CAUSES.get(usize::from(cause)))
        else {
            return Ok(None);
        };
        Ok(Some(Sighting { at, socket, namespace, kind, protocol, local, remote, cause, process }))
    }
}
