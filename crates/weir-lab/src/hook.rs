//! The smallest receivers: XDP programs that only count, or that check each frame.

use std::thread;
use std::time::{Duration, Instant};

use weir_bpf::lab::{CHECKED, Check, Checked, Count, Verdict};
use weir_sys::bpf::{XdpHook, XdpLink};

use crate::{Error, Port, Traffic};

/// A counting XDP program, attached to a port in native mode for as long as this lives.
#[derive(Debug)]
pub struct Hook {
    count: Count,
    _link: XdpLink,
}

impl Hook {
    /// Attaches a program that drops every packet (the limit for anything that receives) or passes every packet to the
    /// stack (the limit for anything that lets it through).
    ///
    /// # Errors
    ///
    /// No privilege (`CAP_BPF`, `CAP_NET_ADMIN`), or another XDP program is attached already.
    pub fn attach(port: &Port, verdict: Verdict) -> Result<Self, Error> {
        let count = Count::load(verdict, port.queues)?;
        let _link = port.netns.run(|| XdpLink::attach(count.program(), port.index, XdpHook::Native))?;
        Ok(Self { count, _link })
    }

    /// Packets seen so far.
    pub fn packets(&self) -> u64 {
        self.by_queue().iter().sum()
    }

    /// Packets seen so far, by receive queue.
    pub fn by_queue(&self) -> Vec<u64> {
        self.count.packets()
    }

    /// Waits until `packets` were seen, at most for `patience`; gives what was seen. Frames are still on their way when
    /// their sender has returned.
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

/// Looks at each byte of each frame that comes to a port, and at their order, at the full rate; then drops it.
#[derive(Debug)]
pub struct FrameCheck {
    check: Check,
    _link: XdpLink,
}

impl FrameCheck {
    /// Attaches the program, in native mode, for as long as this lives. `traffic`: untagged frames of 60 bytes.
    ///
    /// # Errors
    ///
    /// Other traffic, no privilege (`CAP_BPF`, `CAP_NET_ADMIN`), or another XDP program is attached already.
    pub fn attach(port: &Port, traffic: &Traffic) -> Result<Self, Error> {
        let bytes = CHECKED as u64;
        Error::check_range("frame size", traffic.size() as u64, bytes, bytes)?;
        let frame = traffic.frame(0);
        let frame = frame.first_chunk().expect("that size was checked");
        let check = Check::load(frame, traffic.flow_count(), traffic.is_scattered(), port.queues)?;
        let _link = port.netns.run(|| XdpLink::attach(check.program(), port.index, XdpHook::Native))?;
        Ok(Self { check, _link })
    }

    /// What has come so far.
    pub fn checked(&self) -> Checked {
        self.check.checked()
    }
}
