//! The programs of statistics (`stat.h`): they count packets, in total, by filter, key, size and gap.

mod idle;
mod key;
mod spread;
mod tc;
mod xdp;

use std::io;
use std::mem::offset_of;
use std::os::fd::OwnedFd;

use libbpf_rs::libbpf_sys::bpf_insn;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_filter::emit::ebpf::{self, Context};
use weir_filter::graph::Graph;
use weir_filter::set::Set;
use weir_sys::CallError;
use weir_sys::bpf::map::{Map, MapKind};
use weir_sys::bpf::program::{self, ProgramKind};

/// Packets and their bytes on the wire, with stripped VLAN tags (`struct counter`).
pub use weir_filter::emit::ebpf::Count;

pub use self::idle::idle;
pub use self::key::{Key, KeyField};
pub use self::spread::{Bucket, Spread};
use self::xdp::skeleton::types::{counter, directions};
use crate::Strays;
use crate::filter::link::{Code, Mark};
use crate::filter::{FilterError, Sets};
use crate::layout::{self, get, same};
use crate::log::logged;
use crate::writers::{Chosen, Driven};

// What the code for filters adds to.
same!(Count, counter: packets, bytes);

/// The most filters that can be counted. A program has at most 32 KiB of counters per CPU.
pub const MOST_FILTERS: usize = 128;

/// Where packets are counted.
#[derive(Clone, Copy, Debug)]
pub enum AttachPoint {
    /// By XDP.
    Xdp(Xdp),
    /// By tc, in these directions.
    Tc {
        /// Count incoming packets.
        ingress: bool,
        /// Count outgoing packets.
        egress: bool,
    },
}

/// The constants of a program for XDP.
#[derive(Clone, Copy, Debug)]
pub struct Xdp {
    /// Packets may span several buffers.
    pub fragments: bool,
    /// The only interface whose packets are counted; `None`: all that reach the program.
    pub from: Option<Driven>,
    /// The receive queues whose packets are counted; `None`: all.
    pub chosen: Option<Chosen>,
    /// Index of the interface whose driver is asked for stripped VLAN tags; the program is then bound to it.
    pub tags_of: Option<u32>,
    /// Counted packets are dropped.
    pub exclusive: bool,
}

impl AttachPoint {
    /// Returns whether a packet's outer VLAN tag, if any, is inside its bytes.
    pub fn tag_is_inside(&self) -> bool {
        matches!(self, Self::Xdp(Xdp { tags_of: None, .. }))
    }
}

/// The loaded programs, to be attached, and their counters.
#[derive(Debug)]
pub struct Programs {
    /// For XDP, or for incoming packets.
    pub received: Option<OwnedFd>,
    /// For outgoing packets.
    pub sent: Option<OwnedFd>,
    /// What they count.
    pub counters: Counters,
}

/// The counters of loaded programs.
#[derive(Debug)]
pub struct Counters {
    map: MapHandle,
    filters: usize,
    /// The counters of the keys.
    keyed: Option<Map>,
    spreads: Option<MapHandle>,
    strays: MapHandle,
}

/// How packets are counted, besides in total and by filter.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// By key.
    pub by: Option<By>,
    /// By size.
    pub sizes: bool,
    /// By the time since the packet before, of the same direction and CPU.
    pub gaps: bool,
}

impl Details {
    /// Returns whether there are any.
    fn any(&self) -> bool {
        self.by.is_some() || self.spread()
    }

    fn spread(&self) -> bool {
        self.sizes || self.gaps
    }
}

/// How packets are counted by key.
#[derive(Clone, Debug)]
pub struct By {
    /// The fields of a key; at least one.
    pub fields: Vec<KeyField>,
    /// The most keys; not 0. Packets with further keys are counted together. Each takes about 100 bytes, and 32 for each
    /// possible CPU.
    pub most: u32,
    /// Frames begin with an Ethernet header; otherwise with an IP header.
    pub ethernet: bool,
}

impl By {
    /// Returns the fields as the programs have them.
    fn bits(&self) -> u32 {
        self.fields.iter().fold(0, |bits, field| bits | field.bit())
    }
}

/// What the programs count.
#[derive(Debug)]
struct Counting<'a> {
    filters: usize,
    details: &'a Details,
}

impl Counting<'_> {
    /// Returns the bytes of the counters of a direction and CPU.
    fn counter_bytes(&self) -> u32 {
        let counters = 1 + self.filters + usize::from(self.details.by.is_some());
        u32::try_from(counters * size_of::<counter>()).expect("there are few filters")
    }
}

/// Sets the constants and maps of `stat.h`. Returns the constants.
macro_rules! prepare {
    ($open:expr, $counting:expr) => {{
        let counting: &$crate::stat::Counting<'_> = $counting;
        $crate::leave_out_all($open.open_object_mut())?;
        let maps = &mut $open.maps;
        for map in [&mut maps.counters, &mut maps.strays, &mut maps.rodata] {
            map.set_autocreate(true)?;
        }
        maps.counters.set_value_size(counting.counter_bytes())?;
        let constants = maps.rodata_data.as_deref_mut().expect("the program has constants");
        constants.of_filter = counting.details.any() && counting.filters > 0;
        constants.by_size = counting.details.sizes;
        constants.by_gap = counting.details.gaps;
        maps.spreads.set_autocreate(counting.details.spread())?;
        if let Some(by) = &counting.details.by {
            maps.keyed.set_autocreate(true)?;
            maps.keyed.set_max_entries(by.most)?;
            constants.key_fields = by.bits();
            constants.ethernet = by.ethernet;
        }
        constants
    }};
}
use prepare;

/// Makes a program of one that was loaded without filters.
type Link<'a> = &'a dyn Fn(Context, ProgramKind, &[bpf_insn]) -> Result<OwnedFd, FilterError>;

/// Programs, of which the filters may be refused, and their maps.
struct Loaded {
    programs: Result<[Option<OwnedFd>; 2], FilterError>,
    counters: MapHandle,
    keyed: Option<OwnedFd>,
    spreads: Option<MapHandle>,
    strays: MapHandle,
}

/// Keeps the maps of a loaded skeleton.
macro_rules! keep {
    ($loaded:expr, $counting:expr, $programs:expr) => {{
        let keyed = $counting.details.by.as_ref();
        let keyed = keyed.map(|_| std::os::fd::AsFd::as_fd(&$loaded.maps.keyed).try_clone_to_owned());
        let spreads =
            $counting.details.spread().then(|| libbpf_rs::MapHandle::try_from(&$loaded.maps.spreads));
        $crate::stat::Loaded {
            programs: $programs,
            counters: libbpf_rs::MapHandle::try_from(&$loaded.maps.counters)?,
            keyed: keyed.transpose()?,
            spreads: spreads.transpose()?,
            strays: libbpf_rs::MapHandle::try_from(&$loaded.maps.strays)?,
        }
    }};
}
use keep;

impl Programs {
    /// Loads the programs that count what each of these filters accepts. They run once attached. `details` are those of
    /// all packets; if there is a filter, of what that accepts.
    ///
    /// Offsets in the graphs are offsets in the data that the program gets: unless [`AttachPoint::tag_is_inside`], the outer
    /// VLAN tag is beside the packet.
    ///
    /// # Errors
    ///
    /// The filters are too long, privileges are missing, or memory is short.
    ///
    /// # Panics
    ///
    /// If there are more than [`MOST_FILTERS`], or more than one with `details`.
    pub fn load(
        place: &AttachPoint,
        filters: &[(&Graph, &[Set])],
        details: &Details,
    ) -> Result<Self, FilterError> {
        assert!(filters.len() <= if details.any() { 1 } else { MOST_FILTERS }, "too many filters");
        let members: Vec<Set> = filters.iter().flat_map(|(_, sets)| sets.iter().cloned()).collect();
        let sets = Sets::new(&members)?;
        let link = |context, kind, around: &[bpf_insn]| -> Result<OwnedFd, FilterError> {
            let counting = ebpf::counting(filters, context)?;
            let words = sets.words(&counting, |symbol| unreachable!("it counts by itself, without {symbol}"));
            let code = Code::new(around, &[Mark::PLACE]);
            let is_bound = matches!(kind, ProgramKind::Xdp { bound_to: Some(_), .. });
            let whole = if is_bound { code.with_room(&words) } else { code.with(&[&words]) };
            Ok(program::load(kind, NAME, &whole)?)
        };
        let counting = Counting { filters: filters.len(), details };
        let Loaded { programs, counters: map, keyed: keyed_map, spreads, strays } =
            logged("stat", || match place {
                AttachPoint::Xdp(xdp) => xdp::load(xdp, &counting, &link),
                AttachPoint::Tc { ingress, egress } => tc::load([*ingress, *egress], &counting, &link),
            })?;
        let [received, sent] = programs?;
        let value_bytes = u32::try_from(size_of::<directions>()).expect("a few words");
        let keyed = |fd| Map::received(fd, MapKind::PerCpuHash, Key::BYTES, value_bytes);
        let keyed = keyed_map.map(keyed).transpose()?;
        Ok(Self {
            received,
            sent,
            counters: Counters { map, filters: filters.len(), keyed, spreads, strays },
        })
    }
}

/// The programs' name in the kernel's lists.
const NAME: &str = "weir_stat";

/// What was counted, for received packets and for sent ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// All packets.
    pub all: [Count; 2],
    /// The packets that each filter accepts.
    pub filters: Vec<[Count; 2]>,
    /// The packets of each key, in no order.
    pub keys: Vec<(Key, [Count; 2])>,
    /// Packets whose key found no room.
    pub others: [Count; 2],
    /// Sizes and gaps.
    pub spread: Spread,
}

impl Counters {
    /// Returns what was counted so far. Each counter only grows; they are not read at the same instant.
    ///
    /// # Errors
    ///
    /// The kernel does not let this process read the maps, or memory is short.
    pub fn read(&self) -> Result<Counted, CallError> {
        let mut keys = Vec::new();
        if let Some(keyed) = &self.keyed {
            keyed.each_per_cpu(|key, values| {
                let mut sums = [Count::default(); 2];
                let at = offset_of!(directions, direction);
                values.chunks_exact(size_of::<directions>()).for_each(|value| add(&mut sums, &value[at..]));
                keys.push((Key::from_bytes(key), sums));
            })?;
        }
        let counters = self.map.value_size() as usize / size_of::<counter>();
        let mut both = sums(&self.map, counters)?.into_iter();
        let all = both.next().unwrap_or_default();
        let filters = both.by_ref().take(self.filters).collect();
        let others = both.next().unwrap_or_default();
        let spread = self.spreads.as_ref().map(Spread::read).transpose()?.unwrap_or_default();
        Ok(Counted { all, filters, keys, others, spread })
    }

    /// Returns the packets of other interfaces, and those whose driver could not tell whether it stripped a VLAN tag.
    pub fn strays(&self) -> Strays {
        Strays::read(&self.strays)
    }
}

/// Returns the sums over all CPUs of the first `counters` counters in a map with a row of them for each direction.
fn sums(map: &MapHandle, counters: usize) -> Result<Vec<[Count; 2]>, CallError> {
    let mut both = vec![[Count::default(); 2]; counters];
    const DIRECTIONS: [u32; 2] = [layout::direction::RECEIVED.0, layout::direction::SENT.0];
    for (direction, key) in DIRECTIONS.into_iter().enumerate() {
        let per_cpu = map.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY);
        let failed = |error| CallError::new("read counters", io::Error::other(error));
        let mut sums = vec![Count::default(); counters];
        per_cpu.map_err(failed)?.into_iter().flatten().for_each(|value| add(&mut sums, &value));
        both.iter_mut().zip(sums).for_each(|(counts, sum)| counts[direction] = sum);
    }
    Ok(both)
}

/// Adds a row of `struct counter`.
fn add(sums: &mut [Count], counters: &[u8]) {
    for (sum, one) in sums.iter_mut().zip(counters.chunks_exact(size_of::<counter>())) {
        sum.packets += get!(one, counter.packets);
        sum.bytes += get!(one, counter.bytes);
    }
}
