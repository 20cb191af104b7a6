//! Driver information and settings, through `SIOCETHTOOL` (linux/ethtool.h).

mod features;
mod rss;
mod statistics;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::CallError;
pub use features::Feature;
pub use rss::Rss;

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GLINK: u32 = 0x0a;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
const ETH_FLAG_RXVLAN: u32 = 1 << 8;
/// `NETIF_F_HW_VLAN_STAG_RX` by name (net/ethtool/common.c); there is no flag for it.
const SERVICE_TAGS: &str = "rx-vlan-stag-hw-parse";

/// A handle to query drivers. It holds the socket that the calls need.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
}

/// `struct ethtool_cmd`: the fields up to `speed`, and `speed_hi`.
#[repr(C)]
#[derive(Default)]
struct Settings {
    cmd: u32,
    supported: u32,
    advertising: u32,
    speed: u16,
    duplex: u8,
    port: u8,
    phy_address: u8,
    transceiver: u8,
    autoneg: u8,
    mdio_support: u8,
    maxtxpkt: u32,
    maxrxpkt: u32,
    speed_hi: u16,
    eth_tp_mdix: u8,
    eth_tp_mdix_ctrl: u8,
    lp_advertising: u32,
    reserved: [u32; 2],
}

/// `struct ethtool_channels`: queues of a device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    cmd: u32,
    /// Maximum of receive-only queues.
    pub max_rx: u32,
    /// Maximum of transmit-only queues.
    pub max_tx: u32,
    max_other: u32,
    /// Maximum of combined queues.
    pub max_combined: u32,
    /// Receive-only queues in use.
    pub rx: u32,
    /// Transmit-only queues in use.
    pub tx: u32,
    other: u32,
    /// Combined queues in use.
    pub combined: u32,
}

/// `struct ethtool_ringparam`: descriptors of each queue's ring.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    cmd: u32,
    /// Maximum for receiving.
    pub max_rx: u32,
    max_mini: u32,
    max_jumbo: u32,
    /// Maximum for sending.
    pub max_tx: u32,
    /// Current size for receiving.
    pub rx: u32,
    mini: u32,
    jumbo: u32,
    /// Current size for sending.
    pub tx: u32,
}

/// `struct ethtool_pauseparam`: flow control with pause frames.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct PauseParameters {
    cmd: u32,
    autonegotiation: u32,
    rx: u32,
    tx: u32,
}

/// Flow control with pause frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The device stops sending when its neighbour asks it to.
    pub obeys: bool,
    /// The device asks its neighbour to stop when it runs out of room.
    pub asks: bool,
}

/// `struct ethtool_ts_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct StampInfo {
    cmd: u32,
    so_timestamping: u32,
    phc_index: i32,
    tx_types: u32,
    tx_reserved: [u32; 3],
    rx_filters: u32,
    rx_reserved: [u32; 3],
}

/// The timestamping abilities of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamping {
    /// The card timestamps received packets.
    pub hardware_rx: bool,
    /// The card timestamps sent packets.
    pub hardware_tx: bool,
    /// The card can timestamp every received packet, not only those of time protocols.
    pub all_packets: bool,
    /// Number of the card's clock: `/dev/ptpN`.
    pub clock: Option<u32>,
}

/// Speed and duplex of a link, if reported by the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSettings {
    /// Bits per second.
    pub speed: Option<u64>,
    /// Both directions work at once.
    pub full_duplex: Option<bool>,
}

/// The kinds of VLAN tags that a device strips from received frames and reports separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stripping {
    /// 802.1Q tags.
    pub customer: bool,
    /// 802.1ad tags.
    pub service: bool,
}

/// A driver's information about itself and its device. Fields that it does not report are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// Name of the driver.
    pub name: String,
    /// Version of the driver or the kernel.
    pub version: String,
    /// Version of the card's firmware.
    pub firmware: String,
    /// Bus address of the device.
    pub bus: String,
}

/// `struct ethtool_value`.
#[repr(C)]
#[derive(Default)]
struct Value {
    cmd: u32,
    data: u32,
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    cmd: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    bus: [u8; 32],
    rest: [u8; 64],
}

const _: () = {
    assert!(size_of::<Settings>() == 44 && size_of::<Channels>() == 36 && size_of::<DriverInfo>() == 196);
    assert!(size_of::<Rings>() == 36 && size_of::<PauseParameters>() == 16 && size_of::<StampInfo>() == 44);
};

impl Ethtool {
    /// Opens the socket, in this thread's network namespace.
    ///
    /// # Errors
    ///
    /// The error of `socket(2)`.
    pub fn new() -> Result<Self, CallError> {
        // Any socket will do; this kind cannot send anything to the internet.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map_err(|error| CallError::new("open socket for ethtool", error))?;
        Ok(Self { socket })
    }

    /// Returns whether the device is up and connected, if reported by the driver.
    pub fn is_connected(&self, name: &str) -> Option<bool> {
        // `struct ethtool_value`.
        let mut request = [ETHTOOL_GLINK, 0];
        self.ask(name, &mut request)?;
        Some(request[1] != 0)
    }

    /// Returns the number of receive queues in use, if reported by the driver.
    pub fn rx_queues(&self, name: &str) -> Option<u32> {
        let channels = self.channels(name)?;
        Some(channels.rx + channels.combined).filter(|&queues| queues > 0)
    }

    /// Returns the numbers of queues, current and maximum, if reported by the driver.
    pub fn channels(&self, name: &str) -> Option<Channels> {
        let mut channels = Channels { cmd: ETHTOOL_GCHANNELS, ..Default::default() };
        self.ask(name, &mut channels)?;
        Some(channels)
    }

    /// Returns the ring sizes, if reported by the driver.
    pub fn rings(&self, name: &str) -> Option<Rings> {
        let mut rings = Rings { cmd: ETHTOOL_GRINGPARAM, ..Default::default() };
        self.ask(name, &mut rings)?;
        Some(rings)
    }

    /// Returns the flow control settings, if reported by the driver.
    pub fn pause(&self, name: &str) -> Option<Pause> {
        let mut pause = PauseParameters { cmd: ETHTOOL_GPAUSEPARAM, ..Default::default() };
        self.ask(name, &mut pause)?;
        Some(Pause { obeys: pause.rx != 0, asks: pause.tx != 0 })
    }

    /// Returns the timestamping abilities, if reported by the kernel.
    pub fn stamping(&self, name: &str) -> Option<Stamping> {
        const SOF_TX_HARDWARE: u32 = 1 << 0;
        const SOF_RX_HARDWARE: u32 = 1 << 2;
        const HWTSTAMP_FILTER_ALL: u32 = 1 << 1;
        let mut info = StampInfo { cmd: ETHTOOL_GET_TS_INFO, ..Default::default() };
        self.ask(name, &mut info)?;
        Some(Stamping {
            hardware_rx: info.so_timestamping & SOF_RX_HARDWARE != 0,
            hardware_tx: info.so_timestamping & SOF_TX_HARDWARE != 0,
            all_packets: info.rx_filters & HWTSTAMP_FILTER_ALL != 0,
            clock: u32::try_from(info.phc_index).ok(),
        })
    }

    /// Returns the speed in bits per second, if there is a link and the driver reports it.
    pub fn speed(&self, name: &str) -> Option<u64> {
        self.settings(name).speed
    }

    /// Returns speed and duplex.
    pub fn settings(&self, name: &str) -> LinkSettings {
        const UNKNOWN: u32 = u32::MAX;
        let mut settings = Settings { cmd: ETHTOOL_GSET, ..Default::default() };
        if self.ask(name, &mut settings).is_none() {
            return LinkSettings::default();
        }
        let megabits = u32::from(settings.speed_hi) << 16 | u32::from(settings.speed);
        let known = megabits != UNKNOWN && megabits != u32::from(u16::MAX) && megabits != 0;
        LinkSettings {
            speed: known.then(|| u64::from(megabits) * 1_000_000),
            full_duplex: match settings.duplex {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            }
            .filter(|_| known),
        }
    }

    /// Returns the kinds of VLAN tags that the device strips from received frames.
    pub fn stripping(&self, name: &str) -> Stripping {
        let mut value = Value { cmd: ETHTOOL_GFLAGS, ..Default::default() };
        Stripping {
            customer: self.ask(name, &mut value).is_some() && value.data & ETH_FLAG_RXVLAN != 0,
            service: self.features(name).iter().any(|feature| feature.on && feature.name == SERVICE_TAGS),
        }
    }

    /// Returns the kinds of VLAN tags that the device inserts into sent frames; until then, they are beside the frames.
    /// `None`: not reported.
    pub fn inserting(&self, name: &str) -> Option<Stripping> {
        let features = self.features(name);
        let on = |wanted: &str| features.iter().any(|feature| feature.on && feature.name == wanted);
        (!features.is_empty())
            .then(|| Stripping { customer: on("tx-vlan-hw-insert"), service: on("tx-vlan-stag-hw-insert") })
    }

    /// Returns whether the device computes checksums of frames that it sends; until then, they are incomplete. `None`: not
    /// reported.
    pub fn completes_checksums(&self, name: &str) -> Option<bool> {
        let features = self.features(name);
        let computes = |feature: &Feature| feature.on && feature.name.starts_with("tx-checksum-");
        (!features.is_empty()).then(|| features.iter().any(computes))
    }

    /// Returns whether received packets are joined (GRO). `None`: not reported.
    pub fn joins_received(&self, name: &str) -> Option<bool> {
        let features = self.features(name);
        (!features.is_empty()).then(|| features.iter().any(|feature| feature.on && feature.name == "rx-gro"))
    }

    /// Returns the driver's name.
    pub fn driver(&self, name: &str) -> Option<String> {
        self.driver_info(name).map(|driver| driver.name)
    }

    /// Returns the driver's information about itself and its device.
    pub fn driver_info(&self, name: &str) -> Option<Driver> {
        let mut info = DriverInfo {
            cmd: ETHTOOL_GDRVINFO,
            driver: [0; 32],
            version: [0; 32],
            firmware: [0; 32],
            bus: [0; 32],
            rest: [0; 64],
        };
        self.ask(name, &mut info)?;
        let [name, version, firmware, bus] =
            [info.driver, info.version, info.firmware, info.bus].map(|field| {
                let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
                String::from_utf8_lossy(&field[..end]).trim().to_owned()
            });
        Some(Driver { name, version, firmware, bus })
    }

    /// Runs one request; `request` is one of the structures above. Returns `None` if the driver has no answer.
    fn ask<T>(&self, name: &str, request: &mut T) -> Option<()> {
        // SAFETY: the command in the structure's first field makes the kernel write only that structure.
        unsafe { self.ask_at(name, std::ptr::from_mut(request).cast()) }
    }

    /// # Safety
    ///
    /// `request` must point to as many bytes as the kernel reads and writes for the command in its first word and the
    /// sizes that follow.
    unsafe fn ask_at(&self, name: &str, request: *mut libc::c_char) -> Option<()> {
        // SAFETY: the caller's contract.
        unsafe { self.call(name, request) }.ok().map(drop)
    }

    /// Like [`ask_at`](Self::ask_at), but returns the kernel's answer, which is never negative.
    ///
    /// # Safety
    ///
    /// See [`ask_at`](Self::ask_at).
    unsafe fn call(&self, name: &str, request: *mut libc::c_char) -> io::Result<i32> {
        // SAFETY: all zeros are a valid `ifreq`.
        let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.len() >= ifreq.ifr_name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in ifreq.ifr_name.iter_mut().zip(name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        ifreq.ifr_ifru.ifru_data = request;
        // SAFETY: the caller's contract.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut ifreq) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }
}
