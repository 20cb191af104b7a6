//! The `xdp` source: a program in front of the network stack writes into a pool that this process has mapped.

use std::sync::Arc;

use rustix::io::Errno;
use weir_bpf::pool::PoolOptions;
use weir_bpf::xdp::{Attached, Options, Program};
use weir_sys::bpf::{XdpHook, query};
use weir_sys::{CallError, cpu};

use super::programmed::{Attachment, NEEDS, Opened, Programmed, describe, not_loaded, pool_options, shape};
use crate::Error;
use crate::builder::{Mode, Settings, SourceChoice};
use crate::interface::Device;
use crate::steering::Steering;

/// Largest packet that `bpf_xdp_load_bytes` can be brought to copy, in two steps (`load` in xdp.bpf.c).
pub(crate) const LARGEST_COPY: u32 = 32_768 + 65_535;

/// Up to this a driver has each packet in one buffer.
pub(crate) const STANDARD_MTU: u32 = 1500;

/// Opens the source on `device`, in the driver if it can, else (unless `native_only`) in the stack.
pub(crate) fn open(
    device: &Device,
    id: u32,
    settings: &Settings,
    native_only: bool,
) -> Result<Opened, Error> {
    if device.link.xdp_program.is_some() {
        return Err(busy(device));
    }
    // Bound to the device, so that the driver can be asked for the tags it has stripped; where it cannot, without.
    let tags = device.strips_vlan_tags;
    let native = match attach(device, id, settings, XdpHook::Native, tags) {
        Err(Error::Load { source, .. }) if tags && !source.is_permission() && !source.is_memory() => {
            keep_vlans(device, settings)?;
            attach(device, id, settings, XdpHook::Native, false).map(|opened| {
                opened.note("the driver strips VLAN tags and cannot tell them: they are missing")
            })
        }
        other => other,
    };
    match native {
        Err(Error::Unsupported { what, .. }) if !native_only => {
            if tags {
                keep_vlans(device, settings)?;
            }
            let opened =
                attach(device, id, settings, XdpHook::Generic, false)?.note(&format!("not native: {what}"));
            Ok(if tags { opened.note("VLAN tags that the device strips are missing") } else { opened })
        }
        other => other,
    }
}

/// Refuses to steer by VLANs that nobody tells.
fn keep_vlans(device: &Device, settings: &Settings) -> Result<(), Error> {
    if !settings.steering.is_some_and(|steering| steering.is_by_vlan()) {
        return Ok(());
    }
    Err(Error::Unsupported {
        name: device.link.name.clone(),
        what: "its VLAN tags are stripped and not told to XDP, so packets cannot be steered by VLAN".into(),
        instead: "use --source tc, or have the driver leave them: ethtool -K IF rxvlan off",
    })
}

impl Attachment for Arc<Attached> {
    fn detach(&mut self) -> Result<(), CallError> {
        Attached::detach(self)
    }
}

fn attach(device: &Device, id: u32, settings: &Settings, hook: XdpHook, tags: bool) -> Result<Opened, Error> {
    let name = &device.link.name;
    let writers = match hook {
        XdpHook::Native => device.rx_queues,
        XdpHook::Generic => cpu::possible()?,
    };
    let snap_len = settings.snap_len.min(device.largest_frame()).min(LARGEST_COPY);
    let shape = shape(device, settings, settings.queues_of(writers), snap_len)?;
    let directions = settings.tells_direction(settings.source == SourceChoice::XdpTc);

    let pool = pool_options(&shape, settings, id, snap_len, directions);
    let (program, maps) = Program::load(&Options {
        pool: PoolOptions { ethernet: device.is_ethernet(), ..pool },
        steering: settings.steering.map(Steering::for_program),
        exclusive: settings.mode == Mode::Exclusive,
        // In the stack, packets of the size that offloads build come whatever the MTU is.
        fragments: hook == XdpHook::Generic || device.link.mtu > STANDARD_MTU,
        queue_is_cpu: hook == XdpHook::Generic,
        tags_of: tags.then_some(device.link.index),
    })
    .map_err(|error| not_loaded(name, error))?;
    let mut source = Programmed::new(device, settings.promiscuous, shape, maps)?;
    source.filter(device, settings.filter.as_ref())?;
    source.attached(program.attach(device.link.index, hook).map_err(|error| refused(device, error))?);

    let (kind, writer) = match hook {
        XdpHook::Native => ("native", "queue"),
        XdpHook::Generic => ("generic", "processor"),
    };
    let detail = format!("{kind} XDP, {}", describe(settings, &shape, writers, writer));
    Ok(Opened { source, snap_len, detail })
}

/// Somebody else's program is there.
pub(crate) fn busy(device: &Device) -> Error {
    let program = device.link.xdp_program;
    let what = program.and_then(|id| query::program(id).ok().flatten()).map(|program| program.name);
    Error::Busy { name: device.link.name.clone(), program, what }
}

/// What the kernel means when it does not attach a program.
pub(crate) fn refused(device: &Device, error: CallError) -> Error {
    let name = device.link.name.clone();
    match Errno::from_raw_os_error(error.errno()) {
        Errno::BUSY | Errno::EXIST => busy(device),
        Errno::PERM | Errno::ACCESS => {
            Error::Privilege { operation: format!("attach XDP program to `{name}`"), needs: NEEDS }
        }
        Errno::OPNOTSUPP | Errno::INVAL | Errno::RANGE => Error::Unsupported {
            what: format!(
                "driver {} refuses native XDP as things are ({}; MTU {})",
                device.driver.as_deref().unwrap_or("of unknown name"),
                error.source,
                device.link.mtu
            ),
            name,
            instead: "use --source tc, which runs on any driver",
        },
        Errno::NODEV => Error::InterfaceGone { name },
        _ => error.into(),
    }
}
