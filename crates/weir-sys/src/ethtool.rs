//! What a driver tells of itself through `SIOCETHTOOL` (linux/ethtool.h).

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::CallError;

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETH_FLAG_RXVLAN: u32 = 1 << 8;

/// Asks drivers; holds the socket that the calls need.
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

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    cmd: u32,
    max: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
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
    rest: [u8; 160],
}

const _: () =
    assert!(size_of::<Settings>() == 44 && size_of::<Channels>() == 36 && size_of::<DriverInfo>() == 196);

impl Ethtool {
    /// Opens the socket, in this thread's network namespace.
    ///
    /// # Errors
    ///
    /// What `socket(2)` says.
    pub fn new() -> Result<Self, CallError> {
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
            .map_err(|error| CallError::new("open socket for ethtool", error))?;
        Ok(Self { socket })
    }

    /// Receive queues in use, if the driver tells.
    pub fn rx_queues(&self, name: &str) -> Option<u32> {
        let mut channels = Channels { cmd: ETHTOOL_GCHANNELS, ..Default::default() };
        self.ask(name, &mut channels)?;
        Some(channels.rx + channels.combined).filter(|&queues| queues > 0)
    }

    /// Speed in bits per second, if there is a link and the driver tells.
    pub fn speed(&self, name: &str) -> Option<u64> {
        const UNKNOWN: u32 = u32::MAX;
        let mut settings = Settings { cmd: ETHTOOL_GSET, ..Default::default() };
        self.ask(name, &mut settings)?;
        let megabits = u32::from(settings.speed_hi) << 16 | u32::from(settings.speed);
        (megabits != UNKNOWN && megabits != u32::from(u16::MAX) && megabits != 0)
            .then(|| u64::from(megabits) * 1_000_000)
    }

    /// Whether the device takes VLAN tags out of received frames.
    pub fn strips_vlan_tags(&self, name: &str) -> bool {
        let mut value = Value { cmd: ETHTOOL_GFLAGS, ..Default::default() };
        self.ask(name, &mut value).is_some() && value.data & ETH_FLAG_RXVLAN != 0
    }

    /// The driver's name.
    pub fn driver(&self, name: &str) -> Option<String> {
        let mut info = DriverInfo { cmd: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] };
        self.ask(name, &mut info)?;
        let end = info.driver.iter().position(|&byte| byte == 0)?;
        Some(String::from_utf8_lossy(&info.driver[..end]).into_owned())
    }

    /// Runs one request; `request` is one of the structures above. `None` where the driver has no answer.
    fn ask<T>(&self, name: &str, request: &mut T) -> Option<()> {
        // SAFETY: all zeros are a valid `ifreq`.
        let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.len() >= ifreq.ifr_name.len() {
            return None;
        }
        for (to, from) in ifreq.ifr_name.iter_mut().zip(name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        ifreq.ifr_ifru.ifru_data = std::ptr::from_mut(request).cast();
        // SAFETY: `ifru_data` points to the structure that the command in its first field says.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut ifreq) };
        (result == 0).then_some(())
    }
}
