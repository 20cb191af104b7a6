//! Replacing a filter while packets flow, by this process or another one.
//!
//! ```text
//!   requester, with privileges                            capture, confined
//!                         <--- FilterSlot, descriptors ------ FilterControl::slots
//!   FilterSlot::make(filter)
//!                         --- CompiledFilter, descriptors --> FilterControl::put: one update of a map or a link, or one socket option
//! ```
//!
//! A capture may have dropped the privileges needed to load a program. So the process that wants another filter creates
//! the program, for a [`FilterSlot`] that the capture describes, and the capture only installs it. Each packet meets either
//! the old filter or the new one, never both or neither.

pub(crate) mod sets;

use std::fmt::Debug;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use weir_bpf::filter::{
    self, Body, BoundParts, Changed, Device, FilterError as NotLoaded, Hook, SetChange, SetMap, SocketFilter,
};
use weir_bpf::loader::Loader;
use weir_filter::cbpf::{self, Rules};
use weir_filter::emit::cbpf::{EmitError, Target, emit};
use weir_filter::graph::{Graph, Meta, Node, Relation, Test, Value, ValueId};
use weir_sys::CallError;
use weir_sys::bpf::grace::Grace;
use weir_sys::netns::NetNs;
use weir_sys::packet::{self, Instruction};

use self::sets::{Labelled, PortableMembers, SetLabel, change_all, duplicated, labelled};
use crate::filter::{Compiled, Filter, FilterError, Receiver};
use crate::live::error::{KeptFilter, NEEDS};
use crate::live::interface::Interface;
use crate::{Error, Setting};

/// `PACKET_OUTGOING` (linux/if_packet.h).
const OUTGOING: u32 = 4;

/// A handle for replacing the filters of a capture, and for switching its statistics, usable from any thread. The default one
/// has none of them.
#[derive(Clone, Debug, Default)]
pub struct FilterControl {
    switches: Vec<Arc<dyn Toggle>>,
    targets: Vec<(FilterTarget, Arc<dyn Gate>)>,
    update_lock: UpdateLock,
    /// Rules have the filters' place.
    ruled: bool,
}

/// Serializes replacements, and lets the caller wait until they take effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct UpdateLock {
    /// Held while replacing the filters of all interfaces of a capture.
    lock: Arc<Mutex<()>>,
    pub(crate) grace: Arc<Grace>,
}

/// An interface whose filter can be replaced.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FilterTarget {
    /// The number of the interface in the capture.
    pub interface: u32,
    /// The name of the interface.
    pub name: String,
    /// What filters are compiled for.
    pub receiver: Receiver,
}

/// The slot of a filter: everything needed to create a program for it.
#[derive(Debug)]
pub struct FilterSlot {
    /// The interface.
    pub target: FilterTarget,
    /// The kind of slot.
    pub kind: FilterSlotKind,
    /// Maps, depending on the kind.
    pub descriptors: Vec<OwnedFd>,
}

/// The kind of a [`FilterSlot`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterSlotKind {
    /// In the programs that fill pools, one per pool. Descriptors: those of each pool.
    Programs(Vec<PoolKind>),
    /// A packet socket's own filter, in the kernel. Descriptor: the counter of rejected packets
    /// (`weir_bpf::filter::Refusals`), if they can be counted.
    Socket {
        /// The length in bytes to which accepted packets are cut.
        snap_len: u32,
    },
    /// In the process itself, which filters before copying.
    Process,
}

/// The slot of a pool's filter (`weir_bpf::filter`).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolKind {
    /// Called by the programs attached to these hooks. Descriptor: the array of outcomes.
    Calls(Vec<Hook>),
    /// Part of a program that is bound to its device. Descriptors: the device's network namespace, and the maps of the
    /// program.
    Bound {
        /// The program that contains the filter.
        body: Body,
        /// Index of the interface.
        index: u32,
        /// Whether it accepts packets in several buffers.
        fragments: bool,
        /// Identifies the rest of the program ([`Body::build`]).
        build: u64,
    },
}

/// A program for a [`FilterSlot`].
#[derive(Debug)]
pub struct CompiledFilter {
    /// The number of the interface.
    pub interface: u32,
    /// The form of the program.
    pub form: CompiledForm,
    /// Whether it is known that no packet can match; always false for a program from another process.
    pub is_never: bool,
    /// The sets that can be changed while it runs.
    pub sets: Vec<SetLabel>,
    /// The programs, depending on the form, followed by the maps of the sets.
    pub descriptors: Vec<OwnedFd>,
}

/// The form of a [`CompiledFilter`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompiledForm {
    /// No filter: every packet matches.
    All,
    /// Classic BPF; each instruction is four numbers: `code`, `jt`, `jf`, `k`.
    Classic(Vec<[u32; 4]>),
    /// Loaded eBPF: a program descriptor for each hook.
    Programs,
}

/// Restores the previous program.
pub(crate) type Undo<'a> = Box<dyn FnOnce() -> Result<(), Error> + 'a>;

/// Switches the statistics of one interface.
pub(crate) trait Toggle: Debug + Send + Sync {
    /// Switches counting on or off.
    fn turn(&self, on: bool) -> Result<(), Error>;
}

/// Installs programs in one slot.
pub(crate) trait Gate: Debug + Send + Sync {
    /// Describes the slot; `None`: nothing is captured there any more.
    fn slot(&self) -> Result<Option<(FilterSlotKind, Vec<OwnedFd>)>, Error>;

    /// Installs a program for all packets from now on. Returns how to restore the previous one, which stays if this
    /// fails.
    fn put(&self, program: &CompiledFilter) -> Result<Undo<'_>, Error>;

    /// Returns the changeable sets of the current filter.
    fn sets(&self) -> Result<Vec<Labelled>, Error>;
}

impl Filter {
    /// Compiles the filter for programs made by `loader`. If tags are inside the packet, other metadata is used only if
    /// the expression needs it.
    pub(crate) fn compile_for(&self, loader: &Loader, receiver: Receiver) -> Result<Compiled, FilterError> {
        let bare = Receiver { metadata: false, ..receiver };
        let compiled = loader.tag_is_inside().then(|| self.compile(bare)).and_then(Result::ok);
        compiled.map_or_else(|| self.compile(receiver), Ok)
    }
}

impl FilterControl {
    pub(crate) fn new(
        gates: impl Iterator<Item = (FilterTarget, Arc<dyn Gate>)>,
        update_lock: &UpdateLock,
    ) -> Self {
        Self {
            switches: Vec::new(),
            targets: gates.collect(),
            update_lock: update_lock.clone(),
            ruled: false,
        }
    }

    /// Says whether rules have the filters' place, which then cannot be replaced.
    pub(crate) fn ruled(self, ruled: bool) -> Self {
        Self { ruled, ..self }
    }

    /// Returns whether rules have the filters' place.
    #[doc(hidden)]
    pub fn is_ruled(&self) -> bool {
        self.ruled
    }

    fn check_not_ruled(&self) -> Result<(), Error> {
        match self.ruled {
            true => {
                let why = "cannot set a filter: the capture has rules; try weir ctl rules replace FILE";
                Err(Error::conflict(Setting::Filter, Setting::Rules, why))
            }
            false => Ok(()),
        }
    }

    /// Adds the switches of statistics.
    pub(crate) fn switching(self, switches: Vec<Arc<dyn Toggle>>) -> Self {
        Self { switches, ..self }
    }

    /// Switches the statistics of all interfaces on or off, one after another.
    ///
    /// # Errors
    ///
    /// There are no statistics, or one cannot be switched; see [`Switch::turn`](crate::statistics::Switch::turn). Then those before it are switched.
    pub fn count(&self, on: bool) -> Result<(), Error> {
        if self.switches.is_empty() {
            let why = "cannot switch statistics: this capture has none; try weir capture --stat, or weir stat beside it";
            return Err(Error::setting(Setting::Filters, why));
        }
        self.switches.iter().try_for_each(|switch| switch.turn(on))
    }

    /// Describes each slot, except where nothing is captured any more.
    ///
    /// # Errors
    ///
    /// No free descriptor, or rules have the filters' place.
    #[doc(hidden)]
    pub fn slots(&self) -> Result<Vec<FilterSlot>, Error> {
        self.check_not_ruled()?;
        let slot = |(target, gate): &(FilterTarget, Arc<dyn Gate>)| {
            let slot = gate.slot().transpose()?;
            Some(slot.map(|(kind, descriptors)| FilterSlot { target: target.clone(), kind, descriptors }))
        };
        self.targets.iter().filter_map(slot).collect()
    }

    /// Returns the interfaces whose filters can be replaced, with the changeable sets of their current filters: those
    /// in kernel maps.
    ///
    /// # Errors
    ///
    /// No free descriptor.
    pub fn sets(&self) -> Result<Vec<(FilterTarget, Vec<SetLabel>)>, Error> {
        let sets = |(target, gate): &(FilterTarget, Arc<dyn Gate>)| {
            Ok((target.clone(), gate.sets()?.into_iter().map(|(label, _)| label).collect()))
        };
        self.targets.iter().map(sets).collect()
    }

    /// Changes the set `name` of each interface's current filter, and returns what changed; on several interfaces, the
    /// largest change.
    ///
    /// # Errors
    ///
    /// A filter has no such set that can change, or a member is invalid. [`Error::SetPartlyChanged`] if some members may
    /// have changed: there was no room for all.
    pub fn change_set(
        &self,
        name: &str,
        change: SetChange,
        members: &PortableMembers,
    ) -> Result<Changed, Error> {
        // Otherwise the set could belong to a replaced filter.
        let _lock = self.update_lock.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut chosen = Vec::new();
        for (target, gate) in &self.targets {
            let before = chosen.len();
            chosen.extend(gate.sets()?.into_iter().filter(|(label, _)| label.name == name));
            if chosen.len() == before {
                return Err(Error::NoSuchSet { name: target.name.clone() });
            }
        }
        change_all(name, chosen, change, members)
    }

    /// Installs each program in its slot, one after another. All packets that arrive from now on meet the new program.
    /// One that a CPU is just processing may still meet the old one: see [`FilterControl::settle`].
    ///
    /// # Errors
    ///
    /// A program is invalid or does not belong to its slot. All interfaces then keep their previous filters;
    /// [`Error::FilterPutBack`] if some had the new one for a moment.
    #[doc(hidden)]
    pub fn put(&self, programs: &[CompiledFilter]) -> Result<(), Error> {
        self.check_not_ruled()?;
        let _lock = self.update_lock.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done: Vec<(&FilterTarget, Undo<'_>)> = Vec::new();
        for program in programs {
            let put = match self.targets.iter().find(|(target, _)| target.interface == program.interface) {
                Some((target, gate)) => gate.put(program).map(|undo| (target, undo)),
                None => Err(Error::NoSuchNumber { number: program.interface }),
            };
            match put {
                Ok(undo) => done.push(undo),
                Err(error) if done.is_empty() => return Err(error),
                Err(error) => return Err(put_back(done, error)),
            }
        }
        Ok(())
    }

    /// Replaces the filter of all interfaces; `None`: every packet matches. See [`Capture::set_filter`](crate::Capture::set_filter).
    ///
    /// # Errors
    ///
    /// Those of [`Capture::set_filter`](crate::Capture::set_filter).
    pub fn set_filter(&self, filter: Option<&Filter>) -> Result<(), Error> {
        self.put(&FilterSlot::make_all(&self.slots()?, filter)?)
    }

    /// Waits until no packet is in a program that has been replaced, which takes some milliseconds. Packets with a
    /// later timestamp have met the current filters.
    ///
    /// # Errors
    ///
    /// `EINVAL`: the capture was opened without `CAP_BPF`, on a kernel with `nohz_full` processors.
    pub fn settle(&self) -> Result<(), Error> {
        Ok(self.update_lock.grace.wait()?)
    }
}

/// Undoes what was done before `error`.
fn put_back(done: Vec<(&FilterTarget, Undo<'_>)>, error: Error) -> Error {
    let mut back = Vec::new();
    let mut kept = Vec::new();
    for (target, undo) in done.into_iter().rev() {
        match undo() {
            Ok(()) => back.push(target.name.clone()),
            Err(why) => kept.push(KeptFilter { name: target.name.clone(), why }),
        }
    }
    Error::FilterPutBack { back, kept, source: Box::new(error) }
}

impl FilterTarget {
    pub(crate) fn of(interface: &Interface, receiver: Receiver) -> Self {
        Self { interface: interface.id, name: interface.name.clone(), receiver }
    }
}

impl FilterSlot {
    /// Compiles `filter` for all `slots` of a capture; `None`: every packet matches.
    ///
    /// # Errors
    ///
    /// The expression is invalid, or a slot cannot take the program.
    pub fn make_all(slots: &[Self], filter: Option<&Filter>) -> Result<Vec<CompiledFilter>, Error> {
        let link_types = || slots.iter().map(|slot| slot.target.receiver.link_type);
        let filter = filter.map(|filter| filter.clone().among(link_types()));
        slots.iter().map(|slot| slot.make(filter.as_ref())).collect()
    }

    /// Compiles `filter` for this slot; `None`: every packet matches.
    ///
    /// # Errors
    ///
    /// The expression is invalid, or the slot cannot take the program.
    pub fn make(&self, filter: Option<&Filter>) -> Result<CompiledFilter, Error> {
        let Some(filter) = filter else {
            return Ok(CompiledFilter::plain(self.target.interface, CompiledForm::All));
        };
        let receiver = self.target.receiver;
        self.made(|loader| {
            let compiled = match loader {
                Some(loader) => filter.compile_for(loader, receiver),
                None => filter.compile(receiver),
            };
            compiled.map_err(|error| error.on(&self.target.name).into())
        })
    }

    /// Compiles a program in classic BPF for this slot. Like those for a packet socket, it expects the outer VLAN tag
    /// in the metadata and not in the frame, wherever it is here.
    ///
    /// # Errors
    ///
    /// The program cannot run here; the error says why.
    pub fn make_classic(&self, program: &cbpf::Program) -> Result<CompiledFilter, Error> {
        let Receiver { link_type, metadata, .. } = self.target.receiver;
        self.made(|loader| {
            let beside = loader.map_or(metadata, |loader| !loader.tag_is_inside());
            let compiled =
                Compiled::of_program(program, link_type, beside).map_err(|error| error.to_string());
            // XDP knows only that it sees no sent packets.
            let compiled =
                compiled.and_then(|compiled| match loader.is_some() && asks_who_gets_it(&compiled.graph) {
                    true => Err("it asks for the packet type".to_owned()),
                    false => Ok(compiled),
                });
            compiled.map_err(|what| self.refused(what))
        })
    }

    fn refused(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::FilterRefused { name: self.target.name.clone(), source: source.into() }
    }

    /// Creates the program of a filter, which `compile` returns for each loader, or for a socket or this process.
    fn made(
        &self,
        compile: impl Fn(Option<&Loader>) -> Result<Compiled, Error>,
    ) -> Result<CompiledFilter, Error> {
        let interface = self.target.interface;
        match &self.kind {
            FilterSlotKind::Programs(pools) => {
                let mut given = self.descriptors.iter();
                let (mut descriptors, mut sets, mut is_never) = (Vec::new(), Vec::new(), true);
                for pool in pools {
                    let loader = pool.loader(&mut given).map_err(|what| self.refused(what))?;
                    let compiled = compile(Some(&loader))?;
                    let loaded = loader.load(&compiled.graph, &compiled.ast.sets);
                    let loaded = loaded.map_err(|error| not_loaded(&self.target.name, error))?;
                    let (programs, maps) = loaded.into_parts();
                    descriptors.extend(programs);
                    sets.extend(maps);
                    is_never &= compiled.is_never();
                }
                Ok(CompiledFilter { is_never, ..CompiledFilter::loaded(interface, descriptors, &sets)? })
            }
            FilterSlotKind::Socket { .. } | FilterSlotKind::Process => {
                let compiled = compile(None)?;
                let is_never = compiled.is_never();
                if let (FilterSlotKind::Socket { snap_len }, Some(refusals)) =
                    (&self.kind, self.descriptors.first())
                    && let Ok(loaded) = counting(&compiled, *snap_len, refusals.as_fd())
                    // Otherwise the capture gets a program that its process can run as well.
                    && packet::has_room_for_two(loaded.program())
                {
                    let (program, sets) = loaded.into_parts();
                    return Ok(CompiledFilter {
                        is_never,
                        ..CompiledFilter::loaded(interface, vec![program], &sets)?
                    });
                }
                let program = classic(&compiled).map_err(|error| self.refused(error))?;
                Ok(CompiledFilter {
                    is_never,
                    ..CompiledFilter::plain(interface, CompiledForm::of(&program))
                })
            }
        }
    }
}

/// Returns whether the graph uses the packet type for more than telling sent packets from others.
fn asks_who_gets_it(graph: &Graph) -> bool {
    let packet_type = graph.known(Value::Meta(Meta::PacketType));
    let outgoing = graph.known(Value::Constant(OUTGOING));
    let uses = |id: ValueId| Some(id) == packet_type;
    let direction = |node: &Node| match *node {
        Node::Branch { test: Test::Compare { relation: Relation::Equal, left, right }, .. } => {
            uses(left) && Some(right) == outgoing
        }
        _ => false,
    };
    let in_values = graph.values().iter().any(|value| value.operands().any(uses));
    in_values || graph.nodes().iter().any(|node| node.values().any(uses) && !direction(node))
}

impl PoolKind {
    /// Describes the gate of a pool, with its descriptors; `None`: nothing fills the pool any more.
    pub(crate) fn of(gate: &filter::Gate) -> io::Result<Option<(Self, Vec<OwnedFd>)>> {
        match gate {
            filter::Gate::Calls(calls) => {
                let hooks = calls.hooks().to_vec();
                Ok(Some((Self::Calls(hooks), vec![calls.outcomes().try_clone_to_owned()?])))
            }
            filter::Gate::Bound(bound) => {
                let Some(parts) = bound.parts()? else { return Ok(None) };
                let BoundParts { body, device, namespace, maps } = parts;
                let Device { index, fragments } = device;
                let descriptors = namespace.into_iter().map(OwnedFd::from).chain(maps).collect();
                let build = body.build();
                Ok(Some((Self::Bound { body, index, fragments, build }, descriptors)))
            }
        }
    }

    /// Returns a loader for the pool, taking its descriptors from the front.
    fn loader(&self, descriptors: &mut slice::Iter<'_, OwnedFd>) -> Result<Loader, String> {
        let mut next = || {
            let descriptor = descriptors.next().ok_or("a descriptor is missing")?;
            descriptor.try_clone().map_err(|error| format!("duplicate a descriptor: {error}"))
        };
        match self {
            Self::Calls(hooks) => Ok(Loader::calls(hooks.clone(), next()?)),
            Self::Bound { body, build, .. } if *build != body.build() => {
                Err("this capture was started by a different build of weir; use that build's `ctl`".into())
            }
            Self::Bound { body, index, fragments, .. } => {
                let body = *body;
                let device = Device { index: *index, fragments: *fragments };
                let namespace = NetNs::try_from(next()?)
                    .map_err(|error| format!("invalid network namespace: {error}"))?;
                let maps = (0..body.maps()).map(|_| next()).collect::<Result<_, String>>()?;
                Ok(Loader::bound(BoundParts { body, device, namespace: Some(namespace), maps }))
            }
        }
    }
}

impl CompiledFilter {
    /// A program without sets and descriptors.
    fn plain(interface: u32, form: CompiledForm) -> Self {
        Self { interface, form, is_never: false, sets: Vec::new(), descriptors: Vec::new() }
    }

    /// A program of loaded descriptors and their sets.
    fn loaded(interface: u32, mut descriptors: Vec<OwnedFd>, sets: &[SetMap]) -> Result<Self, Error> {
        let (sets, maps): (Vec<_>, Vec<_>) = labelled(sets)?.into_iter().unzip();
        descriptors.extend(maps);
        Ok(Self { interface, form: CompiledForm::Programs, is_never: false, sets, descriptors })
    }

    /// Returns the descriptors of its programs.
    pub(crate) fn programs(&self) -> &[OwnedFd] {
        &self.descriptors[..self.descriptors.len().saturating_sub(self.sets.len())]
    }

    /// Returns its sets.
    pub(crate) fn labelled(&self) -> Result<Vec<Labelled>, CallError> {
        duplicated(self.sets.iter().zip(&self.descriptors[self.programs().len()..]))
    }
}

/// Converts the kernel's error on loading a filter.
pub(crate) fn not_loaded(name: &str, error: NotLoaded) -> Error {
    let name = name.to_owned();
    if error.is_permission() {
        let operation = format!("load the filter of `{name}`");
        return Error::Privilege { operation, needs: NEEDS };
    }
    Error::FilterRefused { name, source: error.into() }
}

impl CompiledForm {
    /// Converts a program in classic BPF.
    fn of(program: &cbpf::Program) -> Self {
        let numbers = |i: &cbpf::Instruction| [i.code.into(), i.jt.into(), i.jf.into(), i.k];
        Self::Classic(program.instructions.iter().map(numbers).collect())
    }
}

/// Loads the filter of a packet socket as eBPF that counts rejected packets.
pub(crate) fn counting(
    filter: &Compiled,
    snap_len: u32,
    refusals: BorrowedFd<'_>,
) -> Result<SocketFilter, NotLoaded> {
    let mut graph = filter.graph.clone();
    graph.snap_len = snap_len;
    SocketFilter::load(&graph, &filter.ast.sets, refusals)
}

/// Compiles the filter to classic BPF, if it fits.
pub(crate) fn classic(filter: &Compiled) -> Result<cbpf::Program, EmitError> {
    emit(&filter.graph, &filter.ast.sets, Target::Kernel)
}

/// Checks a program in classic BPF from another process.
pub(crate) fn checked(instructions: &[[u32; 4]]) -> Result<cbpf::Program, String> {
    let instruction = |&[code, jt, jf, k]: &[u32; 4]| {
        Some(cbpf::Instruction {
            code: code.try_into().ok()?,
            jt: jt.try_into().ok()?,
            jf: jf.try_into().ok()?,
            k,
        })
    };
    let instructions: Option<Vec<_>> = instructions.iter().map(instruction).collect();
    let program = cbpf::Program { instructions: instructions.ok_or("a number is too large")? };
    program.check(Rules::Kernel).map_err(|flaw| flaw.to_string())?;
    Ok(program)
}

/// Converts a program for the kernel.
pub(crate) fn for_the_kernel(program: &cbpf::Program) -> Vec<Instruction> {
    let one = |&cbpf::Instruction { code, jt, jf, k }: &cbpf::Instruction| Instruction { code, jt, jf, k };
    program.instructions.iter().map(one).collect()
}
