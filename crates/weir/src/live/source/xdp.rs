//! The `xdp` source: a program before the network stack writes into a pool that this process has mapped.

use std::sync::Arc;

use rustix::io::Errno;
use weir_bpf::pool::PoolOptions;
use weir_bpf::writers::Writers;
use weir_bpf::xdp::{Attached, Options, Program, WAYS};
use weir_sys::CallError;
use weir_sys::bpf::{XdpHook, XdpLink, query};
use weir_sys::cpu::Processors;

use super::programmed::{self, Attachment, Opened, Programmed, describe, pool_options};
use super::writers::{self, Native};
use crate::live::error::holders::holders;
use crate::live::error::{NEEDS, not_loaded};
use crate::live::interface::queues;
use crate::live::interface::{Device, Tags};
use crate::live::request::Settings;
use crate::live::request::memory::Need;
use crate::live::request::sampling::Sampling;
use crate::live::request::steering::Steering;
use crate::live::settings::{Mode, SourceChoice};
use crate::{Error, InterfaceWarning, TagUse, Unsupported};

/// Largest packet that `bpf_xdp_load_bytes` can copy, in two steps (`load` in xdp.bpf.c).
pub(crate) const LARGEST_COPY: u32 = 32_768 + 65_535;

/// Up to this MTU, drivers keep each packet in one buffer.
pub(crate) const STANDARD_MTU: u32 = 1500;

/// Opens the source on `device`: in the driver if possible, otherwise (unless `native_only`) in the stack. `beside`: what takes sent
/// packets there, to have rules in common.
pub(crate) fn open(
    device: &Device,
    id: u32,
    settings: &Settings,
    native_only: bool,
    beside: Option<&Programmed>,
) -> Result<Opened, Error> {
    if device.link.xdp_program.is_some() {
        return Err(busy(device));
    }
    let without = |hook| {
        // A user who did not ask for xdp gets a source that loses no tags.
        keep_vlans(device, settings, native_only && settings.mode == Mode::Pass)?;
        attach(device, id, settings, hook, false, beside).map(|opened| opened.warn(without_tags(device)))
    };
    // Bind the program to the device, so that it can ask the driver for stripped tags; if that fails, do without.
    let native = match device.tags {
        Tags::InFrame => attach(device, id, settings, XdpHook::Native, false, beside),
        Tags::Unreported(_) => without(XdpHook::Native),
        // Such a program has no rules in front.
        Tags::Told(_) if settings.rules.is_some() => without(XdpHook::Native),
        Tags::Told(_) => match attach(device, id, settings, XdpHook::Native, true, beside) {
            Err(Error::Load { source, .. }) if !source.is_permission() && !source.is_memory() => {
                without(XdpHook::Native)
            }
            other => other,
        },
    };
    match native {
        Err(Error::Unsupported { cause, .. }) if !native_only => {
            let opened = match device.tags {
                Tags::InFrame => attach(device, id, settings, XdpHook::Generic, false, beside)?,
                _ => without(XdpHook::Generic)?,
            };
            Ok(opened.note(&format!("not native: {cause}")))
        }
        other => other,
    }
}

/// Returns the warning for an interface whose stripped tags XDP does not get.
pub(crate) fn without_tags(device: &Device) -> InterfaceWarning {
    InterfaceWarning::TagsLost { keep: device.leave_tags() }
}

/// Whether the program must accept packets in several buffers, provided that the driver supports them.
pub(crate) fn takes_fragments(device: &Device) -> bool {
    device.link.mtu > STANDARD_MTU && device.abilities.is_none_or(|can| can.several_buffers())
}

/// Returns the longest packet that a program in the driver may get, including its tag, limited to what can be copied.
pub(crate) fn largest_native(device: &Device) -> u32 {
    if takes_fragments(device) || writers::beyond_buffers(device) {
        return device.largest_frame().min(LARGEST_COPY);
    }
    // A packet in one buffer is at most a page long, and the space before it exceeds a tag.
    u32::try_from(rustix::param::page_size())
        .unwrap_or(u32::MAX)
        .min(device.largest_frame())
        .min(LARGEST_COPY)
}

/// Returns the longest packet that the program gets.
fn largest(device: &Device, hook: XdpHook) -> u32 {
    match hook {
        XdpHook::Native => largest_native(device),
        // In the stack, packets as large as offloads make them arrive whatever the MTU is.
        XdpHook::Generic => device.largest_frame().min(LARGEST_COPY),
    }
}

/// Returns the memory needed.
pub(crate) fn need(device: &Device, settings: &Settings, hook: XdpHook) -> Result<Need, Error> {
    let writers = match (hook, writers::native(device)) {
        (XdpHook::Native, Native::Queues) => device.queues().1,
        _ => Processors::online()?.count(),
    };
    let snap_len = settings.snap_len.min(largest(device, hook));
    Ok(programmed::need(settings.queues_of(writers), snap_len))
}

/// Fails if steering or the filter needs VLAN tags that the driver does not report, or if any tags would be missing
/// (`always`).
pub(crate) fn keep_vlans(device: &Device, settings: &Settings, always: bool) -> Result<(), Error> {
    let needed = if settings.steering.is_some_and(|steering| steering.is_by_vlan()) {
        TagUse::Steering
    } else if device.filter.as_ref().is_some_and(|filter| filter.asks_for_tags()) {
        TagUse::Filter { name: None }
    } else if always {
        TagUse::Packets
    } else {
        return Ok(());
    };
    Err(device.tags_needed(needed, settings.mode))
}

impl Attachment for XdpLink {
    fn detach(&mut self) -> Result<(), CallError> {
        Self::detach(self)
    }
}

impl Attachment for Arc<Attached> {
    fn detach(&mut self) -> Result<(), CallError> {
        Attached::detach(self)
    }
}

fn attach(
    device: &Device,
    id: u32,
    settings: &Settings,
    hook: XdpHook,
    tags: bool,
    beside: Option<&Programmed>,
) -> Result<Opened, Error> {
    let name = &device.link.name;
    let (kind, native) = match hook {
        XdpHook::Native => ("native", writers::native(device)),
        XdpHook::Generic => ("generic", Native::Processors("generic XDP runs on any CPU")),
    };
    let (writers, count, writer) = match native {
        Native::Queues => (Writers::Queues(device.driven()), device.queues().1, "queue"),
        Native::Unknown | Native::Processors(_) => {
            let processors = Processors::online()?;
            let count = processors.count();
            (Writers::Processors(processors), count, "per-CPU queue")
        }
        Native::Nowhere(why) => {
            return Err(Error::Unsupported {
                name: name.clone(),
                cause: Unsupported::NativeXdp { why },
                sources: &[SourceChoice::Tc],
                otherwise: "",
            });
        }
    };
    let snap_len = settings.snap_len.min(largest(device, hook));
    let shape = settings.pool.shape(name, programmed::need(settings.queues_of(count), snap_len))?;
    let directions = settings.tells_direction(settings.source == SourceChoice::XdpTc);

    let counting = settings.counting.map(|counting| counting.for_program(count));
    let pool = pool_options(&shape, settings, id, snap_len, directions);
    let (program, maps) = Program::load(&Options {
        pool: PoolOptions { ethernet: device.is_ethernet(), ..pool },
        steering: settings.steering.map(Steering::for_program),
        sampling: settings.sampling.map(Sampling::for_program),
        exclusive: settings.mode == Mode::Exclusive,
        fragments: hook == XdpHook::Generic || takes_fragments(device),
        writers,
        chosen: device.chosen,
        tags_of: tags.then_some(device.link.index),
        rules: settings.rules.is_some(),
        counting,
    })
    .map_err(|error| not_loaded(name, error))?;
    let mut source = Programmed::new(device, settings.promiscuity(), shape, maps)?;
    if let Some(ways) = program.ways() {
        source.counts(ways, counting.map_or(0, |counting| counting.buckets * counting.writers * WAYS))?;
    }
    if native == Native::Queues {
        source.number_from(settings.queues_of(device.queues().0));
    }
    source.filter(device, settings.filter.as_ref())?;
    source.ruled(device, settings, beside, device.tags != Tags::InFrame)?;
    source.attached(program.attach(device.link.index, hook).map_err(|error| refused(device, error))?);

    let detail = format!("{kind} XDP, {}", describe(settings, &shape, count, writer));
    let opened = Opened { source, snap_len, detail, warnings: Vec::new() };
    let against = settings.rules.as_ref().and_then(|rules| rules.against_xdp(device.driver.as_deref()));
    let opened = match against {
        Some(why) => opened.note(why),
        None => opened,
    };
    let opened = match queues::note(device) {
        Some(note) => opened.note(&note),
        None => opened,
    };
    Ok(match native {
        Native::Processors(why) if hook == XdpHook::Native => opened.note(why),
        Native::Unknown => opened.note("its driver is not known to use one context per receive queue"),
        _ => opened,
    })
}

/// Returns the error for somebody else's program.
pub(crate) fn busy(device: &Device) -> Error {
    let program = device.link.xdp_program;
    let program_name = program.and_then(|id| query::program(id).ok().flatten()).map(|program| program.name);
    let mut holders = program.map(|id| holders(&[id].into())).unwrap_or_default();
    let holder = program.and_then(|id| holders.remove(&id)).and_then(|all| all.into_iter().next());
    Error::Busy { name: device.link.name.clone(), program, program_name, holder }
}

/// Translates the kernel's error when it does not attach a program.
pub(crate) fn refused(device: &Device, error: CallError) -> Error {
    let name = device.link.name.clone();
    match Errno::from_raw_os_error(error.errno()) {
        Errno::BUSY | Errno::EXIST => busy(device),
        Errno::PERM | Errno::ACCESS => {
            Error::Privilege { operation: format!("attach XDP program to `{name}`"), needs: NEEDS }
        }
        // `ENOSPC`: the other end of veth sends on more queues than this end receives on (veth_xdp_set).
        Errno::OPNOTSUPP | Errno::INVAL | Errno::RANGE | Errno::NOSPC => Error::Unsupported {
            cause: Unsupported::Configuration {
                driver: device.driver.clone(),
                mtu: device.link.mtu,
                answer: error.source,
            },
            name,
            sources: &[SourceChoice::Tc],
            otherwise: "",
        },
        Errno::NODEV => Error::InterfaceGone { name },
        _ => error.into(),
    }
}
