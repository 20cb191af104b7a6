//! The `tc` source: programs between an interface and the network stack, for both directions, write into a pool that
//! this process has mapped. The host keeps its traffic.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use weir_bpf::pool::PoolOptions;
use weir_bpf::tc::{Options, Programs, Segments};
use weir_sys::CallError;
use weir_sys::bpf::{AttachPosition, TcxHook, TcxLink};
use weir_sys::clsact::Clsact;
use weir_sys::cpu::Processors;

use super::programmed::{self, Attachment, Opened, Programmed, describe, pool_options};
use crate::live::error::{NEEDS, not_loaded};
use crate::live::interface::Device;
use crate::live::request::Settings;
use crate::live::request::memory::Need;
use crate::live::request::sampling::Sampling;
use crate::live::request::steering::Steering;
use crate::live::settings::SourceChoice;
use crate::{DEFAULT_SNAP_LEN, Direction, Error, Unsupported};

/// Opens the source on `device`.
pub(crate) fn open(device: &Device, id: u32, settings: &Settings) -> Result<Opened, Error> {
    let mut loaded = load(device, id, settings)?;
    loaded.source.ruled(device, settings, None, false)?;
    loaded.attach(device, settings)
}

/// A source whose programs are not attached yet.
pub(crate) struct Loaded {
    pub(crate) source: Programmed,
    programs: Programs,
    snap_len: u32,
    detail: String,
}

/// Loads the programs of the source, with the filter.
pub(crate) fn load(device: &Device, id: u32, settings: &Settings) -> Result<Loaded, Error> {
    let name = &device.link.name;
    let (ingress, egress) = match settings.direction {
        _ if settings.source == SourceChoice::XdpTc => (false, true),
        Direction::In => (true, false),
        Direction::Out => (false, true),
        // What is sent on loopback is also received there: capture it once.
        Direction::Both if device.link.is_loopback() => (true, false),
        Direction::Both => (true, true),
    };
    let processors = Processors::online()?;
    let writers = processors.count();
    let snap_len = snap_len(device, settings);
    let segments = segments(device, settings);
    let shape = settings.pool.shape(name, need(device, settings, writers))?;
    let directions = settings.tells_direction(settings.direction == Direction::Both);
    let pool = pool_options(&shape, settings, id, snap_len, directions);
    let (programs, maps) = Programs::load(&Options {
        pool: PoolOptions { ethernet: device.is_ethernet(), ..pool },
        processors,
        steering: settings.steering.map(Steering::for_program),
        sampling: settings.sampling.map(Sampling::for_program),
        segments,
        left_out: settings.left_out,
        left_out_mark: settings.left_out_mark,
        ingress,
        egress,
        rules: settings.rules.is_some(),
    })
    .map_err(|error| not_loaded(name, error))?;
    let source = Programmed::new(device, settings.promiscuity().filter(|_| ingress), shape, maps)?;
    source.filter(device, settings.filter.as_ref())?;
    let detail = format!(
        "{}, {}",
        match (ingress, egress) {
            (true, true) => "ingress and egress",
            (true, false) => "ingress",
            _ => "egress",
        },
        describe(settings, &shape, writers, "per-CPU queue"),
    );
    Ok(Loaded { source, programs, snap_len, detail })
}

impl Loaded {
    /// Attaches the programs.
    pub(crate) fn attach(self, device: &Device, settings: &Settings) -> Result<Opened, Error> {
        let Self { mut source, programs, snap_len, detail } = self;
        let (ingress, egress) = (programs.ingress(), programs.egress());
        let hold = Hold::attach(ingress, egress, device.link.index, settings.tc_filters)
            .map_err(|error| refused(device, error))?;
        let detail = format!("{} {detail}", hold.name());
        source.attached(hold);
        Ok(Opened { source, snap_len, detail, warnings: Vec::new() })
    }
}

/// Returns the bytes kept of each packet.
fn snap_len(device: &Device, settings: &Settings) -> u32 {
    settings.snap_len.min(DEFAULT_SNAP_LEN).min(device.largest_frame())
}

/// Returns how GSO packets are cut into segments, if they are.
fn segments(device: &Device, settings: &Settings) -> Option<Segments> {
    settings.segment.then_some(Segments { payload: device.link.mtu })
}

/// Returns the memory needed with this many CPUs.
pub(crate) fn need(device: &Device, settings: &Settings, processors: u32) -> Need {
    let room =
        segments(device, settings).map_or(0, |segments| segments.payload.saturating_add(Segments::HEADERS));
    programmed::need(settings.queues_of(processors), snap_len(device, settings).max(room))
}

/// What attaches the programs to the interface: a link for each, or filters if the kernel has no tcx.
#[derive(Debug)]
pub(crate) enum Hold {
    Links(Vec<TcxLink>),
    Filters(Clsact),
}

impl Hold {
    /// Attaches before others' programs, because a program that accepts a packet for good ends the run and would hide
    /// the packet.
    pub(crate) fn attach(
        ingress: Option<BorrowedFd<'_>>,
        egress: Option<BorrowedFd<'_>>,
        ifindex: u32,
        filters: bool,
    ) -> Result<Self, CallError> {
        if !filters {
            let sides = [(ingress, TcxHook::Ingress), (egress, TcxHook::Egress)];
            let sides = sides.into_iter().filter_map(|(program, hook)| Some((program?, hook)));
            let links =
                sides.map(|(program, hook)| TcxLink::attach(program, ifindex, hook, AttachPosition::First));
            match links.collect() {
                Err(error) if error.errno() == EINVAL => {}
                links => return links.map(Self::Links),
            }
        }
        Clsact::attach(ingress, egress, ifindex).map(Self::Filters)
    }

    /// Replaces the programs, in the order ingress, egress; those that are not there are left out.
    pub(crate) fn exchange(&self, programs: &[BorrowedFd<'_>]) -> Result<(), CallError> {
        match self {
            Self::Links(links) => {
                links.iter().zip(programs).try_for_each(|(link, program)| link.exchange(*program))
            }
            Self::Filters(_) => Err(CallError::new("replace tc filters", Errno::OPNOTSUPP)),
        }
    }

    /// Returns the name of the mechanism.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Links(_) => "tcx",
            Self::Filters(_) => "clsact",
        }
    }
}

impl Attachment for Hold {
    fn detach(&mut self) -> Result<(), CallError> {
        match self {
            Self::Links(links) => links.drain(..).try_for_each(|link| link.detach()),
            Self::Filters(filters) => filters.detach(),
        }
    }
}

/// Translates the kernel's error when it does not attach a program.
pub(crate) fn refused(device: &Device, error: CallError) -> Error {
    let name = device.link.name.clone();
    match error.errno() {
        EPERM | EACCES => {
            Error::Privilege { operation: format!("attach tc programs to `{name}`"), needs: NEEDS }
        }
        ENODEV => Error::InterfaceGone { name },
        ENOENT => Error::Unsupported {
            name,
            cause: Unsupported::Tc,
            sources: &[SourceChoice::AfPacket],
            otherwise: "",
        },
        _ => error.into(),
    }
}

const EPERM: i32 = Errno::PERM.raw_os_error();
const EACCES: i32 = Errno::ACCESS.raw_os_error();
const ENOENT: i32 = Errno::NOENT.raw_os_error();
const ENODEV: i32 = Errno::NODEV.raw_os_error();
const EINVAL: i32 = Errno::INVAL.raw_os_error();
