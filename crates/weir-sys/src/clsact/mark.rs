//! How a filter says whose it is, and whether anybody will still take it off.
//!
//! Its name has a number that no other has, and who answers for it holds a socket whose abstract name (unix(7)) has the same
//! one: that goes with the last process that has it open, however this ends, and no other process can be taken for it. Such
//! names are of a network namespace, as interfaces are.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with};

const PREFIX: &str = "weir-";
/// Behind the number: the discipline was made for this filter.
const OWN: &str = "-own";

/// What the filters of one guard are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    number: u64,
    /// The discipline came with them, and goes with them.
    pub(super) own: bool,
}

/// Whoever has this open answers for the filters.
#[derive(Debug)]
pub(super) struct Alive {
    socket: OwnedFd,
}

impl Mark {
    /// A number that no other filter has.
    pub(super) fn new(own: bool) -> Self {
        Self { number: RandomState::new().hash_one(std::process::id()), own }
    }

    /// The mark in a filter's name.
    pub(super) fn of(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(PREFIX)?;
        let number = rest.strip_suffix(OWN).unwrap_or(rest);
        let plain = number.len() == 16 && number.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = plain.then(|| u64::from_str_radix(number, 16).ok())??;
        Some(Self { number, own: rest.ends_with(OWN) })
    }

    /// The filter's name.
    pub(super) fn name(self) -> String {
        format!("{PREFIX}{:016x}{}", self.number, if self.own { OWN } else { "" })
    }

    /// The filter's handle: one that nobody else is likely to choose.
    pub(super) fn handle(self) -> u32 {
        const WEIR: u32 = 0x7700_0000;
        WEIR | (self.number >> 40) as u32
    }

    /// Answers for the filters from now on, in this thread's network namespace.
    pub(super) fn hold(self) -> io::Result<Alive> {
        let socket = socket()?;
        bind(&socket, &self.address()?)?;
        Ok(Alive { socket })
    }

    /// Nobody in this thread's network namespace answers for the filters any more. Where that cannot be told, somebody does.
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
