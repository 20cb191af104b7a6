//! The device of a capture, as the kernel describes it.

use std::ffi::{CStr, CString, c_int};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use rustix::io::Errno;
use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::Refusal;
use crate::abi::*;
use crate::foreign;
use crate::stdio::text_of;

/// `ARPHRD_` numbers (linux/if_arp.h): Ethernet, loopback, and interfaces whose packets begin with the IP header.
const ETHERNET: u16 = 1;
const LOOPBACK: u16 = 772;
const IP: [u16; 4] = [519, 768, 776, 0xfffe];

/// `DLT_` numbers.
pub(super) const EN10MB: c_int = 1;
pub(super) const RAW: c_int = 12;
pub(super) const LINUX_SLL: c_int = 113;
pub(super) const LINUX_SLL2: c_int = 276;
const DOCSIS: c_int = 143;

/// Whether an interface is there, asked after it went down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Up,
    Down,
    Gone,
}

/// A device.
#[derive(Debug)]
pub(super) struct Device {
    name: CString,
    /// `None`: all interfaces.
    pub(super) index: Option<u32>,
    hardware: u16,
    pub(super) mtu: u32,
}

impl Device {
    /// Finds a device that is up.
    pub(super) fn find(name: &CStr) -> Result<Self, Refusal> {
        if name.to_bytes() == b"any" {
            return Ok(Self { name: name.to_owned(), index: None, hardware: 0, mtu: 65_536 });
        }
        let none = || {
            let text = foreign::missing(name).unwrap_or_else(|| "No such device exists".to_owned());
            Refusal::new(PCAP_ERROR_NO_SUCH_DEVICE, text)
        };
        let question = Question::new(name).ok_or_else(none)?;
        let ask = |what, number| match question.ask(number) {
            Ok(answer) => Ok(answer),
            Err(Errno::NODEV | Errno::NXIO) => Err(none()),
            Err(error) => Err(Refusal::from(format!("{what}: {}", text_of(&error.into())))),
        };
        let flags = ask("SIOCGIFFLAGS", libc::SIOCGIFFLAGS)?;
        // SAFETY: the kernel has written the flags.
        let flags = c_int::from(unsafe { flags.ifr_ifru.ifru_flags });
        if flags & libc::IFF_UP == 0 {
            return Err(Refusal::new(PCAP_ERROR_IFACE_NOT_UP, "That device is not up"));
        }
        let index = ask("SIOCGIFINDEX", libc::SIOCGIFINDEX)?;
        let hardware = ask("SIOCGIFHWADDR", libc::SIOCGIFHWADDR)?;
        let mtu = ask("SIOCGIFMTU", libc::SIOCGIFMTU)?;
        Ok(Self {
            name: name.to_owned(),
            // SAFETY: the kernel has written the index.
            index: u32::try_from(unsafe { index.ifr_ifru.ifru_ifindex }).ok(),
            // SAFETY: the kernel has written the address.
            hardware: unsafe { hardware.ifr_ifru.ifru_hwaddr.sa_family },
            // SAFETY: the kernel has written the MTU.
            mtu: u32::try_from(unsafe { mtu.ifr_ifru.ifru_mtu }).unwrap_or(65_536),
        })
    }

    /// Returns whether there is such a device, up or down.
    pub(super) fn exists(name: &CStr) -> bool {
        let index = || Question::new(name)?.ask(libc::SIOCGIFINDEX).ok();
        name.to_bytes() == b"any" || index().is_some()
    }

    pub(super) fn name(&self) -> std::borrow::Cow<'_, str> {
        self.name.to_string_lossy()
    }

    pub(super) fn is_any(&self) -> bool {
        self.index.is_none()
    }

    /// Returns the `DLT_` numbers of its packets, the usual one first.
    pub(super) fn link_types(&self) -> &'static [c_int] {
        match self.hardware {
            _ if self.is_any() => &[LINUX_SLL, LINUX_SLL2],
            // A cable modem's Ethernet carries DOCSIS frames, if the user says so.
            ETHERNET => &[EN10MB, DOCSIS],
            LOOPBACK => &[EN10MB],
            hardware if IP.contains(&hardware) => &[RAW],
            _ => &[LINUX_SLL, LINUX_SLL2],
        }
    }

    /// Looks for the interface, which may have another name by now, through a socket of its namespace.
    pub(super) fn presence(&self, socket: impl AsFd) -> Presence {
        let Some(index) = self.index else { return Presence::Up };
        let name = index_to_name(socket, index).ok().and_then(|name| CString::new(name).ok());
        let Some(name) = name else { return Presence::Gone };
        let flags = Question::new(&name).map(|question| question.ask(libc::SIOCGIFFLAGS));
        match flags {
            // SAFETY: the kernel has written the flags.
            Some(Ok(flags)) if c_int::from(unsafe { flags.ifr_ifru.ifru_flags }) & libc::IFF_UP != 0 => {
                Presence::Up
            }
            // If it has just disappeared, the next look will tell.
            _ => Presence::Down,
        }
    }

    /// Returns the packets that the device has lost, those that libpcap counts.
    pub(super) fn losses(&self) -> u64 {
        let Ok(name) = self.name.to_str() else { return 0 };
        let count = |what: &str| -> Option<u64> {
            let text = fs::read_to_string(format!("/sys/class/net/{name}/statistics/{what}")).ok()?;
            text.trim().parse().ok()
        };
        let counts = ["rx_missed_errors", "rx_fifo_errors"].map(|what| count(what).unwrap_or_default());
        counts.iter().sum()
    }
}

/// A question about a device (netdevice(7)).
struct Question {
    socket: std::os::fd::OwnedFd,
    name: [libc::c_char; libc::IFNAMSIZ],
}

impl Question {
    /// `None`: no device has such a name.
    fn new(name: &CStr) -> Option<Self> {
        let bytes = name.to_bytes();
        let mut place = [0; libc::IFNAMSIZ];
        if bytes.is_empty() || bytes.len() >= place.len() {
            return None;
        }
        for (place, &byte) in place.iter_mut().zip(bytes) {
            *place = byte.cast_signed();
        }
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
        Some(Self { socket, name: place })
    }

    fn ask(&self, number: libc::Ioctl) -> Result<libc::ifreq, Errno> {
        let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_ifindex: 0 };
        let mut request = libc::ifreq { ifr_name: self.name, ifr_ifru };
        // SAFETY: all these questions take an ifreq.
        match unsafe { libc::ioctl(self.socket.as_raw_fd(), number, &raw mut request) } {
            0 => Ok(request),
            _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        }
    }
}
