//! Minimal receivers: XDP programs that only count, or that check every frame.

use std::thread;
use std::time::{Duration, Instant};

use weir_sys::bpf::{XdpHook, XdpLink};

use crate::programs::hooks::{Action, CHECKED, Check, Checked, Count};
use crate::{Error, Port, Traffic};

/// A counting XDP program, attached to a port in native mode until it is dropped.
#[derive(Debug)]
pub struct Hook {
    count: Count,
    _link: XdpLink,
}

impl Hook {
    /// Attaches a program that drops every packet (the upper limit for any receiver), passes every packet to the stack (the
    /// upper limit for anything that lets packets through), or drops it once its record was written (that for anything that copies).
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_BPF`, `CAP_NET_ADMIN`), or another XDP program is attached.
    pub fn attach(port: &Port, action: Action) -> Result<Self, Error> {
        let count = Count::load(action, port.queues)?;
        let _link = port.netns.run(|| XdpLink::attach(count.program(), port.index, XdpHook::Native))?;
        Ok(Self { count, _link })
    }

    /// Returns the first MiB that [`Action::Write`] has written of the first queue's packets.
    pub fn written(&self) -> Vec<u8> {
        self.count.written()
    }

    /// Returns the number of packets seen so far.
    pub fn packets(&self) -> u64 {
        self.by_queue().iter().sum()
    }

    /// Returns the number of packets seen so far on each receive queue.
    pub fn by_queue(&self) -> Vec<u64> {
        self.count.packets()
    }

    /// Waits up to `patience` for `packets` packets and returns the number seen. Frames may still be in transit when
    /// their sender returns.
    pub fn wait_for(&self, packets: u64, patience: Duration) -> u64 {
        let start = Instant::now();
        loop {
            let seen = self.packets();
            if seen >= packets || start.elapsed() > patience {
                return seen;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// An XDP program that checks every byte of every frame at a port, and their order, at full rate, and drops them.
#[derive(Debug)]
pub struct FrameCheck {
    check: Check,
    _link: XdpLink,
}

impl FrameCheck {
    /// Attaches the program in native mode until it is dropped. `traffic`: untagged frames of 60 bytes.
    ///
    /// # Errors
    ///
    /// Other traffic, missing privileges (`CAP_BPF`, `CAP_NET_ADMIN`), or another XDP program is attached.
    pub fn attach(port: &Port, traffic: &Traffic) -> Result<Self, Error> {
        let bytes = CHECKED as u64;
        Error::check_range("frame size", traffic.size() as u64, bytes, bytes)?;
        let check = Check::load(traffic.tables(), port.queues)?;
        let _link = port.netns.run(|| XdpLink::attach(check.program(), port.index, XdpHook::Native))?;
        Ok(Self { check, _link })
    }

    /// Returns the result so far.
    pub fn checked(&self) -> Checked {
        self.check.checked()
    }
}
