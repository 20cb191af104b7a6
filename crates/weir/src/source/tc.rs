//! The `tc` source: programs between an interface and the network stack, in both directions, write into a pool that this
//! process has mapped. The host keeps its traffic.

use rustix::io::Errno;
use weir_bpf::tc::{Options, Programs};
use weir_sys::bpf::{Place, TcxHook, TcxLink};
use weir_sys::{CallError, cpu};

use super::programmed::{Attachment, NEEDS, Opened, Programmed, not_loaded, pool_options, shape};
use crate::builder::{DEFAULT_SNAP_LEN, Direction, Settings, SourceChoice};
use crate::interface::Device;
use crate::{Error, size};

/// Opens the source on `device`.
pub(crate) fn open(device: &Device, id: u32, settings: &Settings) -> Result<Opened, Error> {
    let name = &device.link.name;
    let (ingress, egress) = match settings.direction {
        _ if settings.source == SourceChoice::XdpTc => (false, true),
        Direction::In => (true, false),
        Direction::Out => (false, true),
        // What is sent there is received there: once is enough.
        Direction::Both if device.link.is_loopback() => (true, false),
        Direction::Both => (true, true),
    };
    let queues = cpu::possible()?;
    let snap_len = settings.snap_len.min(DEFAULT_SNAP_LEN).min(device.largest_frame());
    let shape = shape(device, settings, queues, snap_len)?;
    let directions = settings.direction == Direction::Both;
    let (programs, maps) = Programs::load(&Options {
        pool: pool_options(&shape, settings, id, snap_len, directions),
        ingress,
        egress,
    })
    .map_err(|error| not_loaded(name, error))?;
    let mut source = Programmed::new(device, settings.promiscuous && ingress, shape, maps)?;
    source.attached(Links::attach(&programs, device.link.index).map_err(|error| refused(device, error))?);

    let detail = format!(
        "tcx {}, {queues} {} of {} chunks of {}",
        match (ingress, egress) {
            (true, true) => "ingress and egress",
            (true, false) => "ingress",
            _ => "egress",
        },
        if queues == 1 { "processor" } else { "processors" },
        shape.chunks(),
        size::binary(u64::from(settings.chunk_size)),
    );
    Ok(Opened { source, snap_len, detail })
}

/// One link for each direction.
#[derive(Debug)]
struct Links(Vec<TcxLink>);

impl Links {
    /// In front of others' programs: one that accepts a packet for good ends the run, and would hide it.
    fn attach(programs: &Programs, ifindex: u32) -> Result<Self, CallError> {
        let ingress = programs.ingress().map(|program| (program, TcxHook::Ingress));
        let egress = programs.egress().map(|program| (program, TcxHook::Egress));
        let sides = ingress.into_iter().chain(egress);
        let attach = |(program, hook)| TcxLink::attach(program, ifindex, hook, Place::First);
        sides.map(attach).collect::<Result<_, _>>().map(Self)
    }
}

impl Attachment for Links {
    fn detach(&mut self) -> Result<(), CallError> {
        self.0.drain(..).try_for_each(|link| link.detach())
    }
}

/// What the kernel means when it does not attach a program.
fn refused(device: &Device, error: CallError) -> Error {
    let name = device.link.name.clone();
    match Errno::from_raw_os_error(error.errno()) {
        Errno::PERM | Errno::ACCESS => {
            Error::Privilege { operation: format!("attach tc programs to `{name}`"), needs: NEEDS }
        }
        Errno::NODEV => Error::InterfaceGone { name },
        _ => error.into(),
    }
}
