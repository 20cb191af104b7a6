//! Begins a capture.

use std::ffi::c_int;
use std::time::Duration;

use weir::{ErrorKind, Mode, SourceChoice, SourceKind};
use weir_sys::packet::{RingOptions, Traffic};
use weir_sys::{CallError, cut_off};

use super::device::Device;
use super::engine::Wish;
use super::notifier::Notifier;
use super::pool::Pool;
use super::socket::Socket;
use super::{Engine, Live, Refusal};
use crate::abi::*;
use crate::settings::Settings;
use crate::stdio::text_of;

/// The longest snap length, and the one for those that are none (`MAXIMUM_SNAPLEN`).
const LONGEST: u32 = 262_144;
/// Bytes of the ring, unless the program says otherwise.
const BUFFER: u32 = 8 << 20;
/// Fewest blocks of a ring: while one is read, the kernel fills the others.
const FEWEST: u32 = 4;
/// Room in a block beside its packet.
const BESIDE: u32 = 512;
/// The largest packet of an offload (GSO), unless the program wants less.
const SUPER_FRAME: u32 = 65_536 + 64;
/// Milliseconds that a packet may wait for others if the program does not say.
const PATIENCE: u32 = 8;

/// Pools that a process gets without asking for each, which is usually 64 MiB of memory.
const MOST_POOLS: usize = 4;

/// A capture that has begun.
pub(crate) struct Begun {
    pub(crate) live: Live,
    pub(crate) link_type: c_int,
    pub(crate) snapshot: c_int,
    /// Something that the program may want to know: a status, and its text.
    pub(crate) warning: Option<(c_int, String)>,
}

impl Live {
    /// Begins a capture. `nanoseconds`: the precision of its timestamps.
    pub(crate) fn begin(settings: &Settings, nanoseconds: bool) -> Result<Begun, Refusal> {
        Self::begin_with(settings, nanoseconds, true)
    }

    /// Like [`Self::begin`]; `pools`: it may use a pool.
    pub(super) fn begin_with(settings: &Settings, nanoseconds: bool, pools: bool) -> Result<Begun, Refusal> {
        let wish = Wish::of(&settings.device)?;
        let device = Device::find(&wish.device)?;
        if settings.monitor {
            let text = "That device doesn't support monitor mode";
            return Err(Refusal::new(PCAP_ERROR_RFMON_NOTSUP, text));
        }
        let snap_len = u32::try_from(settings.snapshot).ok().filter(|bytes| (1..=LONGEST).contains(bytes));
        let snap_len = snap_len.unwrap_or(LONGEST);
        let link_type = device.link_types()[0];
        let pool = if pools { pool(&wish, &device, settings, snap_len, nanoseconds)? } else { None };
        let engine = match pool {
            Some(pool) => Engine::Pool(Box::new(pool)),
            None => Engine::Socket(Box::new(socket(&device, settings, snap_len, nanoseconds)?)),
        };
        let notifier =
            Notifier::new().map_err(|error| Refusal::from(format!("eventfd: {}", text_of(&error))))?;
        // libpcap has the text, but not the code that its manual page promises.
        let all = (settings.promiscuous && device.is_any())
            .then(|| (0, "Promiscuous mode not supported on the \"any\" device".to_owned()));
        let (lost_before, nonblocking) = (device.losses(), settings.nonblocking);
        let report = wish.report;
        let timeout = Duration::from_millis(u64::try_from(settings.timeout).unwrap_or_default().max(1));
        let live = Self {
            device,
            engine,
            settings: settings.clone(),
            snap_len,
            report,
            timeout,
            notifier,
            nonblocking,
            down: false,
            lost_before,
        };
        let warning = all.or_else(|| live.without_tags().map(|text| (PCAP_WARNING, text)));
        Ok(Begun { live, link_type, snapshot: snap_len.cast_signed(), warning })
    }
}

/// Opens a capture into a pool, if the user asks for one and the device has one; `None`: the packet socket serves.
fn pool(
    wish: &Wish,
    device: &Device,
    settings: &Settings,
    snap_len: u32,
    nanoseconds: bool,
) -> Result<Option<Pool>, Refusal> {
    if wish.queues.is_some() && (wish.source.is_none() || device.is_any()) {
        let name = device.name();
        let why = match device.is_any() {
            true => "its packets do not tell on which they arrived; try the name of an interface".to_owned(),
            false => format!("a packet socket does not know them; try xdp:{name}@0"),
        };
        return Err(format!("cannot choose receive queues of {name}: {why}").into());
    }
    let Some(source) = wish.source else {
        return match wish.mode {
            Mode::Pass => Ok(None),
            _ => Err("cannot capture in exclusive mode: no source is chosen; try WEIR_SOURCE=xdp or af_xdp"
                .to_owned()
                .into()),
        };
    };
    let automatic = source == SourceChoice::Auto && wish.mode == Mode::Pass && wish.queues.is_none();
    // All interfaces together have no pool, and a program that asks for each packet at once or for one protocol sends
    // questions and waits for the answers: a pool would only take longer to open.
    let Some(index) = device.index else {
        return match wish.mode {
            Mode::Pass => Ok(None),
            _ => Err("cannot capture on all interfaces in exclusive mode; name one".to_owned().into()),
        };
    };
    if wish.mode == Mode::Exclusive && !wish.force {
        leaves_the_host_its_traffic(&device.name())?;
    }
    if automatic && (settings.immediate || settings.only().is_some() || Pool::number() >= MOST_POOLS) {
        return Ok(None);
    }
    let both = if automatic { automatically(wish) } else { Some(source) };
    let Some(source) = both else { return Ok(None) };
    match Pool::open(wish, source, index, settings, snap_len, nanoseconds) {
        Ok(pool) => Ok(Some(pool)),
        Err(_) if automatic => Ok(None),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(Refusal::new(PCAP_ERROR_PERM_DENIED, error.to_string()))
        }
        Err(error) => Err(error.to_string().into()),
    }
}

/// Checks that this host would lose no traffic for its addresses, bridges and routes in exclusive mode.
fn leaves_the_host_its_traffic(device: &str) -> Result<(), Refusal> {
    let lost = cut_off::lost(device).map_err(|error| error.to_string())?;
    let Some((first, others)) = lost.split_first() else { return Ok(()) };
    // The text has to fit into a buffer of 256 bytes.
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    Err(format!(
        "cannot use exclusive mode on {device}: this host would lose its traffic for {first}{more}; try pass mode, or \
         force it (weir run --force, WEIR_FORCE=1)"
    )
    .into())
}

/// Returns the source that weir chooses, but never one for received packets only, as programs expect both directions;
/// `None`: the packet socket.
fn automatically(wish: &Wish) -> Option<SourceChoice> {
    match weir::parts::choice(None, wish.device.to_str().ok()?).ok()?.source {
        SourceKind::Xdp | SourceKind::XdpTc => Some(SourceChoice::XdpTc),
        SourceKind::Tc => Some(SourceChoice::Tc),
        _ => None,
    }
}

fn socket(device: &Device, settings: &Settings, snap_len: u32, nanoseconds: bool) -> Result<Socket, Refusal> {
    let protocol = settings.only().map(u16::to_be_bytes);
    let mut ring = ring(device, settings, snap_len);
    loop {
        match Socket::open(&ring, settings.promiscuous, device.link_types()[0], nanoseconds, protocol) {
            // A smaller buffer is better than none.
            Err(error) if error.errno() == libc::ENOMEM && ring.blocks > FEWEST => {
                ring.blocks = (ring.blocks / 2).max(FEWEST);
            }
            opened => return opened.map_err(refused),
        }
    }
}

/// Returns the status that programs expect for an error of a socket.
fn refused(error: CallError) -> Refusal {
    match error.errno() {
        libc::EPERM | libc::EACCES => Refusal::new(PCAP_ERROR_PERM_DENIED, "socket: Operation not permitted"),
        libc::ENODEV => Refusal::new(PCAP_ERROR_NO_SUCH_DEVICE, "No such device exists"),
        _ => Refusal::from(error.to_string()),
    }
}

fn ring(device: &Device, settings: &Settings, snap_len: u32) -> RingOptions {
    let largest = snap_len.min(device.mtu.saturating_add(64).max(SUPER_FRAME));
    let buffer = u32::try_from(settings.buffer).ok().filter(|&bytes| bytes > 0).unwrap_or(BUFFER);
    // A small buffer gets small blocks, so that it has several; a packet that is larger is cut and says so.
    let block_bytes = (largest + BESIDE).next_power_of_two().max(1 << 17);
    let blocks = (buffer / block_bytes).max(FEWEST);
    let patience = match u32::try_from(settings.timeout).unwrap_or_default() {
        _ if settings.immediate => 1,
        0 => PATIENCE,
        milliseconds => milliseconds,
    };
    RingOptions {
        interface: device.index,
        traffic: Traffic::Both,
        snap_len,
        block_bytes,
        blocks,
        retire_ms: patience,
    }
}
