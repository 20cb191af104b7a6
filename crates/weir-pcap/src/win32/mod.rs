//! WinPcap's extensions, under their names and with their meanings: `include/weir/win32-extensions.h` declares them.
//!
//! A function that needs a capture on a device returns -1 with a text for every other handle.

pub mod list;
pub mod live_dump;
pub mod mode;
pub mod open;
pub mod queue;
pub mod sampling;
pub mod source;
pub mod tuning;

use std::ffi::c_int;

use crate::abi::PCAP_ERROR;
use crate::handle::{Handle, NOT_ACTIVATED, Pcap, Source, Special};

impl Handle {
    fn special(&mut self) -> &mut Special {
        self.special.get_or_insert_default()
    }

    /// Answers that only a capture on a device can do this.
    fn needs_device(&self, pcap: &Pcap, what: &str) -> c_int {
        let why = match self.source {
            _ if pcap.foreign.is_some() => "the system's libpcap serves this device",
            Source::Created(_) => return pcap.fail(PCAP_ERROR, NOT_ACTIVATED),
            Source::Dead => "the handle is of pcap_open_dead",
            Source::File(_) => "the handle reads a file",
            Source::Dumping(_) => "pcap_live_dump is writing the packets to a file",
            Source::Live(_) => "the handle captures on a device",
            Source::Foreign => "the system's libpcap serves this device",
        };
        pcap.fail(PCAP_ERROR, &format!("cannot {what}: {why}"))
    }
}
