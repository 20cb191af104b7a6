//! The `xdp` source: a program in front of the network stack writes into a pool that this process has mapped.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use weir_bpf::xdp::{Options, Program, Stamp};
use weir_ring::{Counters, Doorbell, Fill, Part, Pool, Reader, Shape, SharedMaps};
use weir_sys::bpf::{self, XdpHook, XdpLink};
use weir_sys::clock;
use weir_sys::packet::Promiscuous;
use weir_sys::{CallError, cpu};

use super::{Ready, Source};
use crate::builder::{Mode, Settings, Timestamps};
use crate::interface::Device;
use crate::{Error, choose, size};

/// Largest packet that `bpf_xdp_load_bytes` can be brought to copy, in two steps (`load` in xdp.bpf.c).
const LARGEST_COPY: u32 = 32_768 + 65_535;

/// Up to this a driver has each packet in one buffer.
const STANDARD_MTU: u32 = 1500;

/// Capabilities that it takes: programs and their maps, attaching them, and promiscuous mode.
const NEEDS: &str = "cap_bpf,cap_net_admin,cap_net_raw";

#[derive(Debug)]
pub(crate) struct Xdp {
    name: String,
    program: Program,
    link: Option<XdpLink>,
    readers: Vec<Reader>,
    doorbell: Doorbell,
    /// Ends with the source.
    _promiscuous: Option<Promiscuous>,
    clock_offset: i64,
}

/// A source and what there is to say of it.
pub(crate) struct Opened {
    pub(crate) source: Xdp,
    pub(crate) snap_len: u32,
    pub(crate) detail: String,
}

/// Opens the source on `device`, in the driver if it can, else (unless `native_only`) in the stack.
pub(crate) fn open(
    device: &Device,
    id: u32,
    settings: &Settings,
    native_only: bool,
) -> Result<Opened, Error> {
    let name = &device.link.name;
    if let Some(program) = device.link.xdp_program {
        return Err(Error::Busy { name: name.clone(), program: Some(program) });
    }
    // Bound to the device, so that the driver can be asked for the tags it has stripped; where it cannot, without.
    let tags = device.strips_vlan_tags;
    let native = match attach(device, id, settings, XdpHook::Native, tags) {
        Err(Error::Load { source, .. }) if tags && !source.is_permission() && !source.is_memory() => {
            attach(device, id, settings, XdpHook::Native, false).map(|opened| {
                opened.note("the driver strips VLAN tags and cannot tell them: they are missing")
            })
        }
        other => other,
    };
    match native {
        Err(Error::Unsupported { what, .. }) if !native_only => {
            let opened =
                attach(device, id, settings, XdpHook::Generic, false)?.note(&format!("not native: {what}"));
            Ok(if tags { opened.note("VLAN tags that the device strips are missing") } else { opened })
        }
        other => other,
    }
}

impl Opened {
    fn note(mut self, note: &str) -> Self {
        self.detail = format!("{}; {note}", self.detail);
        self
    }
}

fn attach(device: &Device, id: u32, settings: &Settings, hook: XdpHook, tags: bool) -> Result<Opened, Error> {
    let name = &device.link.name;
    let queues = match hook {
        XdpHook::Native => device.rx_queues,
        XdpHook::Generic => cpu::possible()?,
    };
    let snap_len = settings.snap_len.min(device.largest_frame()).min(LARGEST_COPY);
    let chunks = settings.chunks_for(queues);
    // A tag that is put back is written as a whole even where the snap length cuts inside of it.
    let shape = Shape::new(queues, chunks, settings.chunk_size, snap_len.max(16))?;
    choose::check_memory(name, shape.data_bytes())?;

    let failed = |source: weir_bpf::LoadError| {
        if source.is_permission() {
            return Error::Privilege { operation: format!("load XDP program for `{name}`"), needs: NEEDS };
        }
        Error::Load { name: name.clone(), source }
    };
    let program = Program::load(&Options {
        queues,
        chunks: shape.chunks_total(),
        stride: shape.stride(),
        limit: shape.limit(),
        slots: shape.slots(),
        order_bytes: shape.order_bytes(),
        snap_len,
        interface_id: id,
        stamp: match settings.timestamps {
            Timestamps::Kernel => Stamp::Packet,
            Timestamps::Batch => Stamp::Batch,
            Timestamps::None => Stamp::None,
        },
        exclusive: settings.mode == Mode::Exclusive,
        // In the stack, packets of the size that offloads build come whatever the MTU is.
        fragments: hook == XdpHook::Generic || device.link.mtu > STANDARD_MTU,
        queue_is_cpu: hook == XdpHook::Generic,
        tags_of: tags.then_some(device.link.index),
    })
    .map_err(failed)?;

    let maps = SharedMaps {
        pool: program.pool(),
        chunks: program.chunks(),
        queues: program.queues(),
        orders: program.orders(),
    };
    let map_failed = |error| CallError::new(format!("map the pool of `{name}`"), error);
    let readers = Pool::shared(shape, &maps).map_err(map_failed)?;
    let doorbell = program.doorbell().try_clone_to_owned().and_then(Doorbell::new).map_err(map_failed)?;

    let promiscuous = settings.promiscuous.then(|| Promiscuous::new(device.link.index)).transpose()?;
    let mut source = Xdp {
        name: name.clone(),
        program,
        link: None,
        readers,
        doorbell,
        _promiscuous: promiscuous,
        clock_offset: 0,
    };
    source.tick()?;
    let link = XdpLink::attach(source.program.program(), device.link.index, hook)
        .map_err(|error| refused(device, error))?;
    source.link = Some(link);

    let detail = format!(
        "{} XDP, {queues} {} of {chunks} chunks of {}",
        if hook == XdpHook::Native { "native" } else { "generic" },
        match (hook, queues) {
            (XdpHook::Native, 1) => "queue",
            (XdpHook::Native, _) => "queues",
            (XdpHook::Generic, _) => "processors",
        },
        size::binary(u64::from(settings.chunk_size)),
    );
    Ok(Opened { source, snap_len, detail })
}

/// What the kernel means when it does not attach a program.
fn refused(device: &Device, error: CallError) -> Error {
    let name = device.link.name.clone();
    match Errno::from_raw_os_error(error.errno()) {
        Errno::BUSY | Errno::EXIST => Error::Busy { name, program: device.link.xdp_program },
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
            instead: "use --source af_packet, which runs on any driver",
        },
        Errno::NODEV => Error::InterfaceGone { name },
        _ => error.into(),
    }
}

impl Source for Xdp {
    fn queues(&self) -> u32 {
        u32::try_from(self.readers.len()).expect("a shape counts queues in 32 bits")
    }

    fn ready(&mut self, queue: u32) -> Result<Ready, Error> {
        let (bytes, closed) = self.readers[queue as usize].ready();
        Ok(Ready { bytes, closed })
    }

    fn take(&mut self, queue: u32) -> Result<Option<Part>, Error> {
        let taken = self.readers[queue as usize].take();
        taken.map_err(|source| Error::Corrupt { name: self.name.clone(), source })
    }

    fn wake_after(&mut self, bytes: u32) {
        for reader in &self.readers {
            reader.wake_after(bytes);
        }
    }

    fn woken(&mut self) {
        for reader in &self.readers {
            reader.wake_never();
        }
        self.doorbell.quiet();
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    fn stop(&mut self) -> Result<(), Error> {
        let Some(link) = self.link.take() else { return Ok(()) };
        match link.detach() {
            Err(error) if error.errno() != Errno::NOLINK.raw_os_error() => return Err(error.into()),
            _ => {}
        }
        bpf::synchronize()?;
        Ok(())
    }

    fn counters(&self, queue: u32) -> Counters {
        self.readers[queue as usize].counters()
    }

    fn fill(&self, queue: u32) -> Fill {
        self.readers[queue as usize].fill()
    }

    fn strays(&self) -> u64 {
        self.program.strays()
    }

    /// Follows the kernel's idea of TAI, which a time daemon may tell it at any time.
    fn tick(&mut self) -> Result<(), Error> {
        const NANOSECONDS: i64 = 1_000_000_000;
        let offset = -clock::tai_offset()? * NANOSECONDS;
        if offset != self.clock_offset {
            self.clock_offset = offset;
            for reader in &self.readers {
                reader.set_clock_offset(offset);
            }
        }
        Ok(())
    }
}
