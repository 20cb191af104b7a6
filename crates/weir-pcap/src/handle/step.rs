//! A step of a loop.

use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Pcap;
use crate::cancel::{Wait, Woken};

/// What a step of a loop finds.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// A packet.
    Packet,
    /// No packet yet: wait, and take the step again.
    Wait(Wait),
    /// The file has ended.
    End,
    /// The device has no packet at present.
    Nothing,
    /// `pcap_breakloop` was called.
    Break,
    /// A status code.
    Failed(c_int),
}

/// What a step that is taken again knows of the times before.
#[derive(Clone, Copy)]
pub(crate) struct StepContext {
    /// Packets were already read in this call, so it does not wait, and a break stays for the next one.
    pub(crate) begun: bool,
    /// When it gives up; `None`: not yet known, or never.
    pub(crate) deadline: Option<Instant>,
    /// How the wait for which the last step has asked has ended.
    pub(crate) woken: Option<Woken>,
}

impl StepContext {
    /// Returns whether somebody has called `pcap_breakloop`, and forgets it unless it is for the next call.
    #[inline]
    pub(crate) fn is_broken(&self, pcap: &Pcap) -> bool {
        let broken = pcap.stop.load(Ordering::Relaxed);
        if broken && !self.begun {
            pcap.stop.store(false, Ordering::Relaxed);
        }
        broken
    }
}
