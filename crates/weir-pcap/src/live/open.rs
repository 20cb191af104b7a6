//! Begins a capture.

use std::ffi::c_int;

use weir_sys::packet::{RingOptions, Traffic};

use super::bell::Bell;
use super::device::Device;
use super::socket::Socket;
use super::{Live, Refusal};
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

/// A capture that has begun.
pub(crate) struct Begun {
    pub(crate) live: Live,
    pub(crate) link_type: c_int,
    pub(crate) snapshot: c_int,
    /// Something that the program may want to know.
    pub(crate) warning: Option<&'static str>,
}

impl Live {
    /// Begins a capture. `nanoseconds`: the precision of its timestamps.
    pub(crate) fn begin(settings: &Settings, nanoseconds: bool) -> Result<Begun, Refusal> {
        let device = Device::find(&settings.device)?;
        if settings.monitor {
            let text = "That device doesn't support monitor mode";
            return Err(Refusal::new(PCAP_ERROR_RFMON_NOTSUP, text));
        }
        let snap_len = u32::try_from(settings.snapshot).ok().filter(|bytes| (1..=LONGEST).contains(bytes));
        let snap_len = snap_len.unwrap_or(LONGEST);
        let link_type = device.link_types()[0];
        let protocol = u16::try_from(settings.protocol).ok().filter(|&one| one != 0 && one != ALL);
        let socket = Socket::open(
            &ring(&device, settings, snap_len),
            settings.promiscuous,
            link_type,
            nanoseconds,
            protocol.map(u16::to_be_bytes),
        );
        let socket = socket.map_err(|error| match error.errno() {
            libc::EPERM | libc::EACCES => {
                Refusal::new(PCAP_ERROR_PERM_DENIED, "socket: Operation not permitted")
            }
            libc::ENODEV => Refusal::new(PCAP_ERROR_NO_SUCH_DEVICE, "No such device exists"),
            _ => Refusal::from(error.to_string()),
        })?;
        let bell = Bell::new().map_err(|error| Refusal::from(format!("eventfd: {}", text_of(&error))))?;
        let warning = (settings.promiscuous && device.is_any())
            .then_some("Promiscuous mode not supported on the \"any\" device");
        let (lost_before, nonblocking) = (device.losses(), settings.nonblocking);
        let live = Self { device, socket, bell, nonblocking, lost_before };
        Ok(Begun { live, link_type, snapshot: snap_len.cast_signed(), warning })
    }
}

/// `ETH_P_ALL`.
const ALL: u16 = 3;

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
