//! Captures on devices.
//!
//! A packet socket with a ring of the kernel's (`TPACKET_V3`) is read in place, without a thread of ours: a program may
//! fork and go on in the child, and no handler of its signals runs in a thread that it does not know.

mod bell;
mod device;
mod form;
mod open;
mod socket;

use std::ffi::c_int;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use weir_filter::cbpf::Program;

pub(crate) use self::bell::{Bell, ring};
use self::device::Device;
use self::socket::Socket;
use crate::abi::*;
use crate::filter::Filter;
use crate::savefile::Packet;

/// A capture on a device.
pub(crate) struct Live {
    device: Device,
    socket: Socket,
    bell: Bell,
    /// Whether reading never waits.
    pub(crate) nonblocking: bool,
    /// Losses before the socket, counted by the device, when the capture began.
    lost_before: u64,
}

/// An error for C: a code, and its text.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: c_int,
    pub(crate) text: String,
}

impl Refusal {
    fn new(code: c_int, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self { code: PCAP_ERROR, text }
    }
}

impl Live {
    /// Takes the next packet that `filter` accepts into `to`; returns whether there is one yet.
    #[inline]
    pub(crate) fn next(&mut self, filter: Option<&Filter>, to: &mut Packet) -> bool {
        self.socket.next(filter, to)
    }

    /// Waits until there may be packets, or somebody rings the bell. A signal may end it early.
    pub(crate) fn wait(&mut self) -> Result<(), String> {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(&self.bell, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(format!("can't poll on packet socket: {error}")),
        }
        let trouble = fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        self.bell.silence();
        if trouble { self.health() } else { Ok(()) }
    }

    /// Returns an error if no packet will arrive any more.
    pub(crate) fn health(&self) -> Result<(), String> {
        match self.socket.health() {
            Ok(()) => Ok(()),
            // Packets arrive again once it is up.
            Err(error) if error.errno() == libc::ENETDOWN => Ok(()),
            Err(error) if error.errno() == libc::ENODEV => Err("The interface disappeared".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Sets the filter in the kernel, if it takes the program; packets that arrived before it are filtered here.
    pub(crate) fn set_filter(&mut self, program: &Program) {
        self.socket.set_filter(program);
    }

    /// Selects received or sent packets, by a `PCAP_D_` number.
    pub(crate) fn set_direction(&mut self, direction: c_int) {
        self.socket.direction = direction;
    }

    /// Sends a packet; returns its length.
    pub(crate) fn send(&self, packet: &[u8]) -> Result<usize, String> {
        if self.device.is_any() {
            return Err("Sending packets isn't supported on the \"any\" device".to_owned());
        }
        self.socket.send(packet)
    }

    /// Counts packets since the capture began.
    pub(crate) fn stats(&mut self) -> Result<PcapStat, String> {
        let counts = self.socket.counts()?;
        let lost = self.device.losses().saturating_sub(self.lost_before);
        // C has 32 bits; a number that does not fit stays the largest.
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(PcapStat {
            ps_recv: number(counts.packets),
            ps_drop: number(counts.drops),
            ps_ifdrop: number(lost),
        })
    }

    /// Returns the link types, the present one first.
    pub(crate) fn link_types(&self) -> &'static [c_int] {
        self.device.link_types()
    }

    /// Returns whether filters know a packet's metadata, such as its VLAN tag.
    pub(crate) fn has_metadata(&self) -> bool {
        self.socket.has_metadata()
    }

    /// Chooses one of the link types.
    pub(crate) fn set_link_type(&mut self, link_type: c_int) {
        self.socket.set_link_type(link_type);
    }

    /// Returns the size of the longest packet with its header.
    pub(crate) fn buffer_size(&self) -> c_int {
        self.socket.snap_len()
    }

    /// Returns the descriptor that is readable once there are packets.
    pub(crate) fn descriptor(&self) -> c_int {
        self.socket.as_fd().as_raw_fd()
    }

    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
