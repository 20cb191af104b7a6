//! What was sent, and why no more.

use std::io;
use std::ops::AddAssign;
use std::time::Duration;

use crate::live::error::command;

/// Longest time that a packet waits for room before the device.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Their bytes, with link-layer headers.
    pub bytes: u64,
}

impl AddAssign for Sent {
    fn add_assign(&mut self, more: Self) {
        self.packets += more.packets;
        self.bytes += more.bytes;
    }
}

/// An error that ends a call that sends.
#[derive(Debug, thiserror::Error)]
#[error("cannot send on `{name}`: {reason}{}", try_this(.name, .reason))]
#[non_exhaustive]
pub struct SendError {
    /// The interface.
    pub name: String,
    /// What this call sent before the error.
    pub sent: Sent,
    /// What is wrong.
    pub reason: SendReason,
}

/// Why a packet cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendReason {
    /// The packet is longer than the MTU and the link-layer header.
    #[error("a packet has {bytes} bytes; the interface takes up to {most}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest length.
        most: usize,
        /// The MTU that the packet needs.
        mtu: usize,
    },
    /// The packet is shorter than the link-layer header.
    #[error("a packet has {bytes} bytes; the shortest has {least}")]
    TooShort {
        /// Its length.
        bytes: usize,
        /// The shortest length.
        least: usize,
    },
    /// The interface is down.
    #[error("the interface is down")]
    Down,
    /// The interface no longer exists.
    #[error("the interface is gone")]
    Gone,
    /// The queue before the device has been full for 30 s.
    #[error("the interface has accepted nothing for {} s", PATIENCE.as_secs())]
    Stuck,
    /// The network namespace of the interface cannot be entered.
    #[error("{why}")]
    Unreachable {
        /// Why not.
        why: String,
    },
    /// The kernel's answer is another error.
    #[error("{}", io::Error::from_raw_os_error(*.errno))]
    Refused {
        /// The kernel's number for it.
        errno: i32,
    },
}

/// Returns what to try, as the end of a message.
fn try_this(label: &str, reason: &SendReason) -> String {
    let (inside, name) = command::place(label);
    match reason {
        SendReason::TooLong { mtu, .. } => format!("; try `{inside}ip link set {name} mtu {mtu}`"),
        SendReason::TooShort { .. } => "; try a whole packet, from its link-layer header on".to_owned(),
        SendReason::Down => format!("; try `{inside}ip link set {name} up`"),
        SendReason::Gone => "; try again once it is back".to_owned(),
        SendReason::Stuck => format!("; try `{inside}ip -s link show {name}`"),
        SendReason::Unreachable { .. } | SendReason::Refused { .. } => String::new(),
    }
}
