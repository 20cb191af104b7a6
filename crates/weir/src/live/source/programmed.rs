//! Sources whose pool is filled by an eBPF program, wherever it is attached.

use std::fmt::Debug;
use std::io;
use std::iter;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use weir_bpf::pool::{PoolMaps, PoolOptions, Stamp};
use weir_bpf::{Strays, filter};
use weir_ring::{Consumer, Counters, Doorbell, Fill, Gauge, Part, Pool, Shape, SharedMaps, Ways};
use weir_sys::bpf::grace::Grace;
use weir_sys::packet::Promiscuous;
use weir_sys::{CallError, clock};

use super::{DIRECTION_BYTES, Queue, Source};
use crate::live::error::NEEDS;
use crate::live::error::size;
use crate::live::filter_control;
use crate::live::filter_control::sets::{self, Labelled, labelled};
use crate::live::filter_control::{CompiledFilter, CompiledForm, FilterSlotKind, Gate, PoolKind, Undo};
use crate::live::interface::Device;
use crate::live::namespace::promiscuity::Promiscuity;
use crate::live::request::Settings;
use crate::live::request::memory::{KernelBuffers, Need};
use crate::live::ruled::{InForce, before};
use crate::live::settings::Timestamps;
use crate::live::wait::{Notifier, Ready};
use crate::{Error, Filter, InterfaceWarning};

/// The program makes a packet visible microseconds after it sets the timestamp, unless interrupts or a hypervisor
/// intervene.
const LAG: Duration = Duration::from_millis(2);

/// What keeps a program attached to its interface.
pub(crate) trait Attachment: Debug + Send {
    /// Detaches it; `ENOLINK` if it was detached already.
    fn detach(&mut self) -> Result<(), CallError>;
}

/// A pool and the programs that fill it.
#[derive(Debug)]
pub(crate) struct Programmed {
    name: String,
    memory: u64,
    maps: PoolMaps,
    attachment: Option<Box<dyn Attachment>>,
    /// Detached, and programs may still be running.
    detached: bool,
    grace: Grace,
    first_number: u32,
    /// Empty once they are given away.
    consumers: Vec<Consumer>,
    gauges: Vec<Gauge>,
    doorbell: Arc<Doorbell>,
    /// Held until the source is stopped.
    promiscuous: Option<Arc<Promiscuous>>,
    clock_offset: i64,
    pub(crate) in_force: AtGateInForce,
    /// In the filter's place.
    rules: Option<InForce>,
    /// Flows that the program counts.
    ways: Option<Ways>,
}

/// An open source with its description.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) source: Programmed,
    pub(crate) snap_len: u32,
    pub(crate) detail: String,
    /// What this source misses and others would not.
    pub(crate) warnings: Vec<InterfaceWarning>,
}

impl Opened {
    pub(super) fn warn(mut self, warning: InterfaceWarning) -> Self {
        self.warnings.push(warning);
        self
    }

    pub(super) fn note(mut self, note: &str) -> Self {
        self.detail = format!("{}; {note}", self.detail);
        self
    }
}

/// Least room for data: a reinserted tag is written whole even if the snap length cuts through it.
const LEAST_ROOM: u32 = 16;

/// Returns the memory for a pool with records of up to `largest` bytes of data.
pub(crate) fn need(queues: u32, largest: u32) -> Need {
    Need { queues, largest: largest.max(LEAST_ROOM) + DIRECTION_BYTES, buffers: KernelBuffers::default() }
}

/// Returns what a program needs to know about its pool.
pub(crate) fn pool_options(
    shape: &Shape,
    settings: &Settings,
    id: u32,
    snap_len: u32,
    directions: bool,
) -> PoolOptions {
    PoolOptions { interface_id: id, stamp: stamp(settings), directions, ..PoolOptions::of(shape, snap_len) }
}

/// Describes a pool for people; `producer` is what fills a queue.
pub(super) fn describe(settings: &Settings, shape: &Shape, producers: u32, producer: &str) -> String {
    let plural = if producers == 1 { "" } else { "s" };
    let steered = settings.steering.map(|steering| format!(", each steered {}", steering.describe()));
    format!(
        "{producers} {producer}{plural}{} of {} chunks of {}",
        steered.unwrap_or_default(),
        shape.chunks(),
        size::binary(shape.limit().into()),
    )
}

/// Returns when a program reads the clock.
pub(super) fn stamp(settings: &Settings) -> Stamp {
    match settings.timestamps {
        Timestamps::Kernel => Stamp::Packet,
        Timestamps::Batch => Stamp::Batch,
        Timestamps::None => Stamp::None,
    }
}

/// Returns the nanoseconds from a program's clock to the Unix epoch, by the kernel's current TAI offset.
pub(super) fn clock_offset() -> Result<i64, CallError> {
    const NANOSECONDS: i64 = 1_000_000_000;
    Ok(-clock::tai_offset()? * NANOSECONDS)
}

/// Ignores the error if a program was detached already, along with its interface.
pub(crate) fn off(result: Result<(), CallError>) -> Result<(), CallError> {
    result.or_else(|error| if error.errno() == Errno::NOLINK.raw_os_error() { Ok(()) } else { Err(error) })
}

impl Programmed {
    /// Makes the process's half of a pool whose program is loaded but not attached yet.
    pub(crate) fn new(
        device: &Device,
        promiscuous: Option<&Promiscuity>,
        shape: Shape,
        maps: PoolMaps,
    ) -> Result<Self, Error> {
        let name = device.link.name.clone();
        let shared = SharedMaps {
            pool: maps.pool(),
            chunks: maps.chunks(),
            queues: maps.queues(),
            orders: maps.orders(),
        };
        let failed = |error| CallError::new(format!("map the pool for `{name}`"), error);
        let consumers = Pool::shared(shape, &shared).map_err(failed)?;
        let doorbell = maps.doorbell().try_clone_to_owned().and_then(Doorbell::new).map_err(failed)?;
        let promiscuous = promiscuous.map(|shared| shared.include(device.link.index)).transpose();
        let promiscuous = promiscuous.map_err(|error| match Errno::from_raw_os_error(error.errno()) {
            Errno::PERM => {
                Error::Privilege { operation: format!("enable promiscuous mode on `{name}`"), needs: NEEDS }
            }
            _ => error.into(),
        })?;
        let mut source = Self {
            name,
            memory: shape.data_bytes(),
            maps,
            attachment: None,
            detached: false,
            grace: Grace::new(),
            first_number: 0,
            gauges: consumers.iter().map(Consumer::gauge).collect(),
            consumers,
            doorbell: Arc::new(doorbell),
            promiscuous,
            clock_offset: 0,
            in_force: AtGateInForce::default(),
            rules: None,
            ways: None,
        };
        source.tick()?;
        Ok(source)
    }

    /// Sets the number by which users know the first queue.
    pub(super) fn number_from(&mut self, first: u32) {
        self.first_number = first;
    }

    /// Keeps the map of so many ways in which the program counts flows.
    pub(super) fn counts(&mut self, map: BorrowedFd<'_>, ways: u32) -> Result<(), Error> {
        let failed = |error| CallError::new(format!("map the flows of `{}`", self.name), error);
        let ways = Ways::shared(map, ways as usize).map_err(failed)?;
        self.memory += (ways.len() * size_of::<weir_ring::shared::Way>()) as u64;
        self.ways = Some(ways);
        Ok(())
    }

    /// Keeps what attaches the program to the interface.
    pub(super) fn attached(&mut self, attachment: impl Attachment + 'static) {
        self.attachment = Some(Box::new(attachment));
    }
}

/// Returns where the filter of `sources`, which belong to one interface, is replaced.
pub(super) fn gate(name: &str, sources: &[&Programmed]) -> Arc<dyn Gate> {
    let at_gate = |source: &&Programmed| (Arc::clone(source.maps.gate()), source.in_force.clone());
    Arc::new(ProgramGate { name: name.to_owned(), gates: sources.iter().map(at_gate).collect() })
}

/// Does the same for a program that fills no pool.
pub(crate) fn gate_of(name: &str, gate: &Arc<filter::Gate>, in_force: &AtGateInForce) -> Arc<dyn Gate> {
    Arc::new(ProgramGate { name: name.to_owned(), gates: vec![(Arc::clone(gate), in_force.clone())] })
}

fn duplicating(error: io::Error) -> CallError {
    CallError::new("duplicate a descriptor", error)
}

/// The gate of programs.
#[derive(Debug)]
struct ProgramGate {
    name: String,
    /// Each gate with what is in force there. After a filter is replaced, all sets of the new one are with the first
    /// gate.
    gates: Vec<(Arc<filter::Gate>, AtGateInForce)>,
}

/// What is in force at a gate.
pub(crate) type AtGateInForce = sets::InForce<Option<filter::Filter>>;

/// A filter for a gate, with its sets.
type AtGate = (Option<filter::Filter>, Vec<Labelled>);

impl Gate for ProgramGate {
    fn slot(&self) -> Result<Option<(FilterSlotKind, Vec<OwnedFd>)>, Error> {
        let pools = self.gates.iter().map(|(gate, _)| PoolKind::of(gate));
        let pools = pools.collect::<io::Result<Option<Vec<_>>>>();
        let Some(pools) = pools.map_err(duplicating)? else { return Ok(None) };
        let (kinds, descriptors): (_, Vec<_>) = pools.into_iter().unzip();
        Ok(Some((FilterSlotKind::Programs(kinds), descriptors.into_iter().flatten().collect())))
    }

    fn put(&self, program: &CompiledFilter) -> Result<Undo<'_>, Error> {
        let before = self.put_all(self.divided(program)?)?;
        Ok(Box::new(move || self.put_all(before).map(drop)))
    }

    fn sets(&self) -> Result<Vec<Labelled>, Error> {
        let each = self.gates.iter().map(|(_, in_force)| in_force.sets()).collect::<Result<Vec<_>, _>>()?;
        Ok(each.into_iter().flatten().collect())
    }
}

impl ProgramGate {
    /// Divides `program` among the gates.
    fn divided(&self, program: &CompiledFilter) -> Result<Vec<AtGate>, Error> {
        let refused = |what: &str| Error::FilterRefused { name: self.name.clone(), source: what.into() };
        match program.form {
            CompiledForm::All => Ok(self.gates.iter().map(|_| (None, Vec::new())).collect()),
            CompiledForm::Classic(_) => Err(refused("eBPF is needed here")),
            CompiledForm::Programs => {
                let hooks: usize = self.gates.iter().map(|(gate, _)| gate.programs()).sum();
                if program.programs().len() != hooks {
                    return Err(refused("a program for each hook is needed"));
                }
                let mut sets = program.labelled()?;
                let mut programs = program.programs().iter().map(OwnedFd::try_clone);
                let divided = self.gates.iter().map(|(gate, _)| {
                    let some = programs.by_ref().take(gate.programs()).collect::<io::Result<_>>();
                    let some = some.map_err(duplicating)?;
                    let filter = filter::Filter::from_programs(some, Vec::new());
                    Ok((Some(filter), std::mem::take(&mut sets)))
                });
                divided.collect()
            }
        }
    }

    /// Puts a filter at each gate and returns the previous ones. If one is rejected, all previous ones stay in place.
    fn put_all(&self, filters: Vec<AtGate>) -> Result<Vec<AtGate>, Error> {
        let mut before: Vec<AtGate> = Vec::new();
        for ((gate, in_force), filter) in self.gates.iter().zip(filters) {
            if let Err(error) = gate.set(filter.0.as_ref()) {
                // If this gate has two programs, the first one may have accepted the filter.
                let mut back = in_force.ask(|now| gate.set(now.as_ref()));
                for ((gate, in_force), filter) in self.gates.iter().zip(before) {
                    back = gate.set(filter.0.as_ref()).and(back);
                    in_force.replace(filter);
                }
                return Err(back.map_or_else(Error::from, |()| error.into()));
            }
            before.push(in_force.replace(filter));
        }
        Ok(before)
    }
}

impl Programmed {
    /// Puts the requested filter in place before anything is attached.
    pub(super) fn filter(&self, device: &Device, wanted: Option<&Filter>) -> Result<(), Error> {
        put_first(&self.name, self.maps.gate(), &self.in_force, device, wanted)
    }

    /// Puts rules in the filter's place, if there are some, before anything is attached; those of `beside`, which takes sent packets
    /// there, are the same. `tags_lost`: the programs do not see VLAN tags.
    pub(super) fn ruled(
        &mut self,
        device: &Device,
        settings: &Settings,
        beside: Option<&Self>,
        tags_lost: bool,
    ) -> Result<(), Error> {
        let Some(rules) = &settings.rules else { return Ok(()) };
        let gates = iter::once(&*self).chain(beside).map(|source| Arc::clone(source.maps.gate())).collect();
        self.rules = Some(before::put(device, settings.namespace.as_ref(), rules, gates, tags_lost)?);
        Ok(())
    }

    /// See [`Source::rules`].
    pub(super) fn rules_in_force(&mut self) -> Option<&mut InForce> {
        self.rules.as_mut()
    }
}

/// Does the same at `gate`, and keeps the filter's sets.
pub(crate) fn put_first(
    name: &str,
    gate: &filter::Gate,
    in_force: &AtGateInForce,
    device: &Device,
    wanted: Option<&Filter>,
) -> Result<(), Error> {
    let Some(wanted) = wanted else { return Ok(()) };
    let Some(loader) = gate.loader().map_err(duplicating)? else { return Ok(()) };
    let compiled = wanted.compile_for(&loader, device.receiver()?)?;
    let loaded = loader.load(&compiled.graph, &compiled.ast.sets);
    let loaded = loaded.map_err(|error| filter_control::not_loaded(name, error))?;
    gate.set(Some(&loaded))?;
    let sets = labelled(loaded.sets())?;
    in_force.replace((Some(loaded), sets));
    Ok(())
}

/// A queue of the pool.
#[derive(Debug)]
struct PoolQueue {
    interface: Arc<str>,
    consumer: Consumer,
}

impl Queue for PoolQueue {
    fn ready(&mut self) -> Result<Ready, Error> {
        let (bytes, closed) = self.consumer.ready();
        Ok(Ready { bytes, closed })
    }

    fn take(&mut self) -> Result<Option<Part>, Error> {
        self.consumer.take().map_err(|source| Error::Corrupt { name: self.interface.to_string(), source })
    }

    fn wake_after(&mut self, bytes: u32) {
        self.consumer.wake_after(bytes);
    }

    fn wake_never(&mut self) {
        self.consumer.wake_never();
    }

    fn gauge(&self) -> Gauge {
        self.consumer.gauge()
    }
}

impl Notifier for Doorbell {
    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    fn quiet(&self) {
        Self::quiet(self);
    }
}

impl Source for Programmed {
    fn queues(&self) -> u32 {
        u32::try_from(self.gauges.len()).expect("a shape counts queues in 32 bits")
    }

    fn first_number(&self) -> u32 {
        self.first_number
    }

    fn give_queues(&mut self) -> Vec<Box<dyn Queue>> {
        let interface: Arc<str> = self.name.as_str().into();
        let queue = |consumer| -> Box<dyn Queue> {
            Box::new(PoolQueue { interface: Arc::clone(&interface), consumer })
        };
        std::mem::take(&mut self.consumers).into_iter().map(queue).collect()
    }

    fn notifiers(&self) -> Vec<Arc<dyn Notifier>> {
        vec![Arc::<Doorbell>::clone(&self.doorbell)]
    }

    fn detach(&mut self) -> Result<(), Error> {
        self.promiscuous = None;
        let Some(mut attachment) = self.attachment.take() else { return Ok(()) };
        self.detached = true;
        // Closing the descriptors, which follows, detaches the program as well.
        Ok(off(attachment.detach())?)
    }

    fn settle(&self) -> Option<Result<(), CallError>> {
        self.detached.then(|| self.grace.wait())
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.detached = false;
        Ok(())
    }

    fn counters(&self, queue: u32) -> Counters {
        self.gauges[queue as usize].counters()
    }

    fn fill(&self, queue: u32) -> Fill {
        self.gauges[queue as usize].fill()
    }

    fn memory(&self) -> u64 {
        self.memory
    }

    fn rules(&mut self) -> Option<&mut InForce> {
        self.rules_in_force()
    }

    fn ways(&mut self) -> Option<&mut Ways> {
        self.ways.as_mut()
    }

    fn gate(&self) -> Arc<dyn Gate> {
        gate(&self.name, &[self])
    }

    fn strays(&self) -> Strays {
        self.maps.strays()
    }

    fn lag(&self) -> Duration {
        LAG
    }

    /// Follows the kernel's TAI offset, which a time daemon may change at any time.
    fn tick(&mut self) -> Result<(), Error> {
        let offset = clock_offset()?;
        if offset != self.clock_offset {
            self.clock_offset = offset;
            for gauge in &self.gauges {
                gauge.set_clock_offset(offset);
            }
        }
        Ok(())
    }
}
