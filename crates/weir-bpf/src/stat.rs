//! The programs of statistics (`stat.bpf.c`): they count packets by filter.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use libbpf_rs::libbpf_sys::bpf_insn;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_filter::emit::ebpf::{self, COUNTER_BYTES, Context};
use weir_filter::graph::Graph;
use weir_filter::set::Set;
use weir_sys::CallError;
use weir_sys::bpf::program::{self, ProgramKind};

use crate::filter::link::Code;
use crate::filter::{FilterError, Sets};
use crate::log::logged;
use crate::writers::{Chosen, Driven, prepare_chosen};
use crate::xdp::{Device, HAS_FRAGMENTS, bind};
use crate::{Strays, leave_out_all};

skeleton!("stat");

/// The most filters that can be counted. A program has at most 256 functions, and 32 KiB of counters per CPU.
pub const MOST_FILTERS: usize = 128;

/// Where packets are counted.
#[derive(Clone, Copy, Debug)]
pub enum Place {
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

impl Place {
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
    strays: MapHandle,
}

/// Packets and their bytes on the wire, with stripped VLAN tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Programs {
    /// Loads the programs that count what each of these filters accepts. They run once attached.
    ///
    /// Offsets in the graphs are offsets in the data that the program gets: unless [`Place::tag_is_inside`], the outer
    /// VLAN tag is beside the packet.
    ///
    /// # Errors
    ///
    /// The filters are too long, privileges are missing, or memory is short.
    ///
    /// # Panics
    ///
    /// If there are more than [`MOST_FILTERS`].
    pub fn load(place: &Place, filters: &[(&Graph, &[Set])]) -> Result<Self, FilterError> {
        assert!(filters.len() <= MOST_FILTERS, "too many filters");
        let members: Vec<Set> = filters.iter().flat_map(|(_, sets)| sets.iter().cloned()).collect();
        let sets = Sets::new(&members)?;
        let link = |context, kind, around: &[bpf_insn]| -> Result<OwnedFd, FilterError> {
            let tally = ebpf::tally(filters, context)?;
            let words = sets.words(&tally, |symbol| unreachable!("it counts by itself, without {symbol}"));
            let code = Code::new(around);
            let is_bound = matches!(kind, ProgramKind::Xdp { bound_to: Some(_), .. });
            let whole = if is_bound { code.with_room(&words) } else { code.with(&words) };
            Ok(program::load(kind, NAME, &whole)?)
        };
        logged("stat", || Self::try_load(place, filters.len(), link))?
    }

    /// Loads the programs without filters, and has each of them linked.
    fn try_load(
        place: &Place,
        filters: usize,
        link: impl Fn(Context, ProgramKind, &[bpf_insn]) -> Result<OwnedFd, FilterError>,
    ) -> Result<Result<Self, FilterError>, libbpf_rs::Error> {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::StatSkelBuilder::default().open(&mut storage)?;
        leave_out_all(open.open_object_mut())?;
        let maps = &mut open.maps;
        for map in [&mut maps.counters, &mut maps.strays, &mut maps.rodata] {
            map.set_autocreate(true)?;
        }
        let all = u32::try_from(filters + 1).expect("there are few filters");
        open.maps.counters.set_value_size(COUNTER_BYTES * all)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the program has constants");
        match place {
            Place::Xdp(xdp) => {
                constants.fragments = xdp.fragments;
                constants.exclusive = xdp.exclusive;
                if let Some(from) = xdp.from {
                    constants.arrived_on = from.constant();
                }
                prepare_chosen!(constants, xdp.chosen);
                match xdp.tags_of {
                    Some(index) => {
                        let device = Device { index, fragments: xdp.fragments };
                        bind(&mut open.progs.stat_xdp_tagged, device)?;
                    }
                    None => {
                        open.progs.stat_xdp.set_autoload(true);
                        open.progs.stat_xdp.set_flags(if xdp.fragments { HAS_FRAGMENTS } else { 0 });
                    }
                }
            }
            Place::Tc { ingress, egress } => {
                open.progs.stat_ingress.set_autoload(*ingress);
                open.progs.stat_egress.set_autoload(*egress);
            }
        }
        let loaded = open.load()?;
        let counters = Counters {
            map: MapHandle::try_from(&loaded.maps.counters)?,
            strays: MapHandle::try_from(&loaded.maps.strays)?,
        };
        let progs = &loaded.progs;
        let linked = match *place {
            Place::Xdp(Xdp { fragments, from, tags_of, .. }) => {
                let kind = ProgramKind::Xdp { fragments, bound_to: tags_of };
                let interface = from.and_then(Driven::only);
                let (context, program) = match tags_of {
                    Some(_) => (Context::XdpTagged { fragments, interface: tags_of }, &progs.stat_xdp_tagged),
                    None => (Context::Xdp { fragments, interface }, &progs.stat_xdp),
                };
                link(context, kind, program.insns()).map(|program| (Some(program), None))
            }
            Place::Tc { ingress, egress } => {
                let side = |wanted: bool, outgoing, around: &[bpf_insn]| {
                    wanted.then(|| link(Context::Tc { outgoing }, ProgramKind::Tc, around)).transpose()
                };
                side(ingress, false, progs.stat_ingress.insns())
                    .and_then(|received| Ok((received, side(egress, true, progs.stat_egress.insns())?)))
            }
        };
        Ok(linked.map(|(received, sent)| Self { received, sent, counters }))
    }
}

/// The programs' name in the kernel's lists.
const NAME: &str = "weir_stat";

impl Counters {
    /// Returns the counters of received packets and those of sent ones: of all packets, followed by those of each filter.
    ///
    /// # Errors
    ///
    /// The kernel does not let this process read the map.
    pub fn read(&self) -> Result<[Vec<Count>; 2], CallError> {
        Ok([self.direction(0)?, self.direction(1)?])
    }

    fn direction(&self, key: u32) -> Result<Vec<Count>, CallError> {
        let per_cpu = self.map.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY);
        let failed = |error| CallError::new("read counters", io::Error::other(error));
        let mut sums = vec![Count::default(); self.map.value_size() as usize / COUNTER_BYTES as usize];
        for value in per_cpu.map_err(failed)?.into_iter().flatten() {
            for (sum, counter) in sums.iter_mut().zip(value.chunks_exact(COUNTER_BYTES as usize)) {
                let word = |at: usize| u64::from_ne_bytes(*counter[at..].first_chunk().expect("16 bytes"));
                sum.packets += word(0);
                sum.bytes += word(8);
            }
        }
        Ok(sums)
    }

    /// Returns the packets of other interfaces, and those whose driver could not tell whether it stripped a VLAN tag.
    pub fn strays(&self) -> Strays {
        Strays::read(&self.strays)
    }
}
