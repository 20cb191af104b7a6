//! The `xdp+tc` source: xdp for received packets, tc for sent ones. The queues of xdp come first.

use std::sync::Arc;
use std::time::Duration;

use weir_bpf::Strays;
use weir_ring::{Counters, Fill};
use weir_sys::CallError;
use weir_sys::bpf::XdpHook;
use weir_sys::cpu::Processors;

use super::programmed::{self, Programmed};
use super::{Queue, Source, tc, xdp};
use crate::live::filter_control::Gate;
use crate::live::interface::Device;
use crate::live::request::Settings;
use crate::live::request::memory;
use crate::live::ruled::InForce;
use crate::live::wait::Notifier;
use crate::{Error, InterfaceWarning};

#[derive(Debug)]
pub(crate) struct XdpTc {
    name: String,
    xdp: Programmed,
    tc: Programmed,
}

/// An open source with its description.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) source: XdpTc,
    pub(crate) snap_len: u32,
    pub(crate) detail: String,
    pub(crate) warnings: Vec<InterfaceWarning>,
}

/// Opens both sources on `device`.
pub(crate) fn open(device: &Device, id: u32, settings: &Settings) -> Result<Opened, Error> {
    let any_xdp =
        [XdpHook::Native, XdpHook::Generic].map(|hook| Ok(vec![xdp::need(device, settings, hook)?]));
    let any_xdp = any_xdp.into_iter().collect::<Result<_, Error>>()?;
    let any_tc = vec![vec![tc::need(device, settings, Processors::online()?.count())]];
    let sizes = memory::shares_of([any_xdp, any_tc], settings.pool)?;
    let [of_xdp, of_tc] = sizes.map(|pool| Settings { pool, ..settings.clone() });
    let tc = tc::load(device, id, &of_tc)?;
    let xdp = xdp::open(device, id, &of_xdp, false, Some(&tc.source))?;
    let tc = tc.attach(device, &of_tc)?;
    Ok(Opened {
        snap_len: xdp.snap_len.max(tc.snap_len),
        detail: format!("{}; {}", xdp.detail, tc.detail),
        warnings: xdp.warnings,
        source: XdpTc { name: device.link.name.clone(), xdp: xdp.source, tc: tc.source },
    })
}

impl XdpTc {
    /// Returns the source that has `queue`, and the queue's number there.
    fn find(&self, queue: u32) -> (&Programmed, u32) {
        match queue.checked_sub(self.xdp.queues()) {
            Some(queue) => (&self.tc, queue),
            None => (&self.xdp, queue),
        }
    }
}

impl Source for XdpTc {
    fn queues(&self) -> u32 {
        self.xdp.queues() + self.tc.queues()
    }

    fn give_queues(&mut self) -> Vec<Box<dyn Queue>> {
        let mut queues = self.xdp.give_queues();
        queues.extend(self.tc.give_queues());
        queues
    }

    fn notifiers(&self) -> Vec<Arc<dyn Notifier>> {
        let mut notifiers = self.xdp.notifiers();
        notifiers.extend(self.tc.notifiers());
        notifiers
    }

    fn detach(&mut self) -> Result<(), Error> {
        let xdp = self.xdp.detach();
        self.tc.detach().and(xdp)
    }

    fn settle(&self) -> Option<Result<(), CallError>> {
        self.xdp.settle().or_else(|| self.tc.settle())
    }

    fn finish(&mut self) -> Result<(), Error> {
        let xdp = self.xdp.finish();
        self.tc.finish().and(xdp)
    }

    fn counters(&self, queue: u32) -> Counters {
        let (source, queue) = self.find(queue);
        source.counters(queue)
    }

    fn fill(&self, queue: u32) -> Fill {
        let (source, queue) = self.find(queue);
        source.fill(queue)
    }

    fn memory(&self) -> u64 {
        self.xdp.memory() + self.tc.memory()
    }

    fn rules(&mut self) -> Option<&mut InForce> {
        self.xdp.rules_in_force()
    }

    fn gate(&self) -> Arc<dyn Gate> {
        programmed::gate(&self.name, &[&self.xdp, &self.tc])
    }

    fn strays(&self) -> Strays {
        self.xdp.strays() + self.tc.strays()
    }

    fn lag(&self) -> Duration {
        self.xdp.lag().max(self.tc.lag())
    }

    fn tick(&mut self) -> Result<(), Error> {
        self.xdp.tick()?;
        self.tc.tick()
    }
}
