//! How a filter shows its owner, and whether a process will still remove it.
//!
//! The filter's name contains a unique number. The process responsible for the filter holds a socket whose abstract
//! name (unix(7)) contains the same number. The name disappears with the last process that has the socket open, however
//! that process ends, and no other process can be mistaken for it. Such names belong to a network namespace, as
//! interfaces do.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with};

const PREFIX: &str = "weir-";
/// Suffix of the number: the discipline was created for this filter.
const OWN: &str = "-own";

/// The mark in the names of one guard's filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    number: u64,
    /// The discipline was created with the filters, and is removed with them.
    pub(super) own: bool,
}

/// A socket held by the process that is responsible for the filters.
#[derive(Debug)]
pub(super) struct Alive {
    socket: OwnedFd,
}

impl Mark {
    /// Creates a mark with a number that no other filter has.
    pub(super) fn new(own: bool) -> Self {
        Self { number: RandomState::new().hash_one(std::process::id()), own }
    }

    /// Parses the mark in a filter's name.
    pub(super) fn of(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(PREFIX)?;
        let number = rest.strip_suffix(OWN).unwrap_or(rest);
        let plain = number.len() == 16 && number.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = plain.then(|| u64::from_str_radix(number, 16).ok())??;
        Some(Self { number, own: rest.ends_with(OWN) })
    }

    /// Returns the filter's name.
    pub(super) fn name(self) -> String {
        format!("{PREFIX}{:016x}{}", self.number, if self.own { OWN } else { "" })
    }

    /// Returns the filter's handle, which others are unlikely to choose.
    pub(super) fn handle(self) -> u32 {
        const WEIR: u32 = 0x7700_0000;
        WEIR | (self.number >> 40) as u32
    }

    /// Takes responsibility for the filters in this thread's network namespace.
    pub(super) fn hold(self) -> io::Result<Alive> {
        let socket = socket()?;
        bind(&socket, &self.address()?)?;
        Ok(Alive { socket })
    }

    /// Returns whether no process in this thread's network namespace is responsible for the filters any more; false in
    /// case of doubt.
    pub(super) fn is_left(self) -> bool {
        let asked = socket()
            .and_then(|socket| Ok(connect(&socket, &self.address()?)?))
            .map_err(|error| error.raw_os_error());
        asked == Err(Some(Errno::CONNREFUSED.raw_os_error()))
    }

    fn address(self) -> io::Result<SocketAddrUnix> {
        Ok(SocketAddrUnix::new_abstract_name(format!("weir-tc-{:016x}", self.number).as_bytes())?)
    }
}

impl AsRawFd for Alive {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ours_and_of_others() {
        for own in [true, false] {
            let mark = Mark::new(own);
            assert_eq!(Mark::of(&mark.name()), Some(mark));
        }
        for name in [
            "",
            "weir",
            "weir-",
            "weir-0123",
            "weir-0123456789abcdefg",
            "weir-+123456789abcdef",
            "other-0123456789abcdef",
        ] {
            assert_eq!(Mark::of(name), None, "{name}");
        }
    }

    #[test]
    fn a_mark_is_left_once_its_last_holder_is_gone() {
        let mark = Mark::new(false);
        assert!(mark.is_left());
        let alive = mark.hold().expect("nobody has it");
        let second = alive.socket.try_clone().expect("another holder");
        assert!(!mark.is_left());
        drop(alive);
        assert!(!mark.is_left());
        drop(second);
        assert!(mark.is_left());
    }
}
