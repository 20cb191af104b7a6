//! A tap or tun interface, which receives what is written to it (linux/if_tun.h), for experiments in a private namespace.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use crate::CallError;
use crate::link::Links;

const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
const IFF_TUN: libc::c_short = 0x0001;
const IFF_TAP: libc::c_short = 0x0002;
const IFF_NO_PI: libc::c_short = 0x1000;

/// The process's end of a tap interface; dropping it removes the interface. Several threads may write at a time.
#[derive(Debug)]
pub struct Tap {
    file: File,
    index: u32,
}

impl Tap {
    /// Creates the interface `name` in this thread's network namespace and brings it up.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_NET_ADMIN`, `ENOENT` without the driver, `EBUSY` if the name is taken.
    pub fn create(name: &str) -> Result<Self, CallError> {
        Self::of_kind(name, IFF_TAP)
    }

    /// Creates a tun interface, whose packets have no link-layer header.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub fn create_tun(name: &str) -> Result<Self, CallError> {
        Self::of_kind(name, IFF_TUN)
    }

    fn of_kind(name: &str, kind: libc::c_short) -> Result<Self, CallError> {
        const PATH: &str = "/dev/net/tun";
        let failed = |error| CallError::new(format!("make the interface {name}"), error);
        // Who does not wait has its frames met by XDP in the driver (`tun_can_build_skb`).
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(PATH);
        let file = file.map_err(failed)?;
        // SAFETY: all zeros are a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.len() >= request.ifr_name.len() {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        request.ifr_ifru.ifru_flags = kind | IFF_NO_PI;
        // SAFETY: the kernel reads and writes only an `ifreq` there.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) };
        if result < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        let links = Links::open()?;
        links.bring_up(name)?;
        Ok(Self { file, index: links.get(name)?.index })
    }

    /// Returns the interface's index.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Makes the interface receive a frame.
    ///
    /// # Errors
    ///
    /// `EIO`: the interface is down.
    pub fn receive(&self, frame: &[u8]) -> io::Result<()> {
        (&self.file).write_all(frame)
    }

    /// Takes a packet that the interface sends; returns its length.
    ///
    /// # Errors
    ///
    /// `EAGAIN`: there is none.
    pub fn sent(&self, packet: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(packet)
    }
}
