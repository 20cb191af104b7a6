//! Attaches the programs of rules: for received packets by XDP or tc, for sent ones by tc.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use weir_bpf::rules::{self, Places, Received};
use weir_sys::CallError;
use weir_sys::bpf::{XdpHook, XdpLink};

use super::GuardBuilder;
use crate::live::interface::monitored::MonitoredInterface;
use crate::live::interface::{Device, Tags};
use crate::live::ruled::{Loader, Place, Placed};
use crate::live::settings::SourceChoice;
use crate::live::source::programmed::{Attachment as _, off};
use crate::live::source::tc::{self, Hold};
use crate::live::source::writers::{self, Native};
use crate::live::source::xdp;
use crate::{Direction, Error, InterfaceWarning, SourceKind, Unsupported};

/// What attaches the programs.
#[derive(Debug)]
pub(super) struct Hooks {
    xdp: Option<XdpLink>,
    tc: Option<Hold>,
}

/// How they are attached.
#[derive(Debug)]
pub(super) struct How {
    /// What decides about received packets.
    pub(super) received: Option<SourceKind>,
    pub(super) sent: bool,
    pub(super) detail: String,
    pub(super) why: String,
    pub(super) warnings: Vec<InterfaceWarning>,
}

/// Loads and attaches the rules that were asked for.
pub(super) fn attach(monitored: &MonitoredInterface, asked: &GuardBuilder) -> Result<(Placed, How), Error> {
    let device = &monitored.device;
    if !device.is_ethernet() {
        return Err(Error::Unsupported {
            name: device.link.name.clone(),
            cause: Unsupported::NoEthernet,
            sources: &[],
            otherwise: "guard the interface below it",
        });
    }
    let opener = Opener { monitored, device, asked };
    let as_requested = || "as requested".to_owned();
    match asked.source {
        _ if asked.direction == Direction::Out => {
            opener.without_xdp(None, "xdp sees no sent packets".to_owned())
        }
        SourceChoice::Xdp => opener.xdp(as_requested()),
        SourceChoice::Tc => opener.without_xdp(Some(Received::Tc), as_requested()),
        _ => opener.auto(),
    }
}

struct Opener<'a> {
    monitored: &'a MonitoredInterface,
    device: &'a Device,
    asked: &'a GuardBuilder,
}

impl Opener<'_> {
    /// By XDP in the driver, unless something speaks against it.
    fn auto(&self) -> Result<(Placed, How), Error> {
        let by_tc = |why: String| self.without_xdp(Some(Received::Tc), why);
        if self.device.link.xdp_program.is_some() {
            return by_tc("another XDP program is attached".to_owned());
        }
        if let Some(why) = self.asked.rules.against_xdp(self.device.driver.as_deref()) {
            return by_tc(why.to_owned());
        }
        if self.device.tags != Tags::InFrame {
            return by_tc("the device strips VLAN tags, which xdp would not see".to_owned());
        }
        match self.native("received packets are decided before the host spends memory on them".to_owned()) {
            Err(Error::Unsupported { cause, .. }) => by_tc(format!("xdp would be faster, but {cause}")),
            other => other,
        }
    }

    /// By XDP, in the driver if possible, otherwise in the stack.
    fn xdp(&self, why: String) -> Result<(Placed, How), Error> {
        if self.device.link.xdp_program.is_some() {
            return Err(xdp::busy(self.device));
        }
        match self.native(why.clone()) {
            Err(Error::Unsupported { cause, .. }) => {
                let (placed, mut how) = self.attached(Some((XdpHook::Generic, true)), None, why)?;
                how.detail = format!("{}; not native: {cause}", how.detail);
                Ok((placed, how))
            }
            other => other,
        }
    }

    fn native(&self, why: String) -> Result<(Placed, How), Error> {
        writers::check_native(self.device)?;
        let fragments = xdp::takes_fragments(self.device);
        self.attached(Some((XdpHook::Native, fragments)), None, why)
    }

    /// Returns the interface that all packets come from, if programs must not read it from them.
    fn only(&self, hook: XdpHook) -> Option<u32> {
        let is_only = hook == XdpHook::Native && matches!(writers::native(self.device), Native::Queues);
        is_only.then(|| self.monitored.index())
    }

    fn without_xdp(&self, received: Option<Received>, why: String) -> Result<(Placed, How), Error> {
        self.attached(None, received, why)
    }

    /// Attaches to `hook`, which takes packets in several buffers or not, or as `received` says.
    fn attached(
        &self,
        hook: Option<(XdpHook, bool)>,
        received: Option<Received>,
        why: String,
    ) -> Result<(Placed, How), Error> {
        let of_hook = |(hook, fragments)| Received::Xdp { fragments, interface: self.only(hook) };
        let received = hook.map(of_hook).or(received);
        // What is sent on loopback is also received there: decide once.
        let sent = match self.asked.direction {
            Direction::In => false,
            Direction::Out => true,
            Direction::Both => !self.device.link.is_loopback(),
        };
        let loader = self.loader(Places { received, sent }, hook.is_some())?;
        let loaded = loader.load(&self.asked.rules, false)?;
        let (hooks, detail) = self.hooks(&loaded.programs, hook.map(|(hook, _)| hook))?;
        let kind = received.map(|received| match received {
            Received::Xdp { .. } => SourceKind::Xdp,
            Received::Tc => SourceKind::Tc,
        });
        let lost = hook.is_some() && self.device.tags != Tags::InFrame;
        let warnings = lost.then(|| xdp::without_tags(self.device)).into_iter().collect();
        Ok((
            Placed { place: Box::new(hooks), loaded, loader },
            How { received: kind, sent, detail, why, warnings },
        ))
    }

    fn loader(&self, places: Places, by_xdp: bool) -> Result<Loader, Error> {
        let loader = Loader {
            name: self.monitored.name().to_owned(),
            namespace: self.monitored.namespace.clone(),
            receiver: self.device.receiver()?,
            places,
            dry_run: self.asked.dry_run,
            log: self.asked.log,
            exact: self.asked.exact,
            behind: Vec::new(),
        };
        if by_xdp && self.device.tags != Tags::InFrame {
            loader.check_tags(&self.asked.rules, self.device)?;
        }
        Ok(loader)
    }

    /// Attaches loaded programs; says how.
    fn hooks(&self, programs: &rules::Rules, hook: Option<XdpHook>) -> Result<(Hooks, String), Error> {
        let index = self.monitored.index();
        let (received, sent) = (programs.received.as_ref(), programs.sent.as_ref());
        let (received, sent) = (received.map(OwnedFd::as_fd), sent.map(OwnedFd::as_fd));
        let mut details = Vec::new();
        let xdp = match (hook, received) {
            (Some(hook), Some(program)) => {
                let link = self.monitored.inside(|| XdpLink::attach(program, index, hook))?;
                let kind = if hook == XdpHook::Native { "native" } else { "generic" };
                details.push(format!("{kind} XDP for received packets"));
                Some(link.map_err(|error| xdp::refused(self.device, error))?)
            }
            _ => None,
        };
        let ingress = received.filter(|_| xdp.is_none());
        let tc = if ingress.is_some() || sent.is_some() {
            let hold = self.monitored.inside(|| Hold::attach(ingress, sent, index, self.asked.tc_filters))?;
            let hold = hold.map_err(|error| tc::refused(self.device, error))?;
            let packets = match (ingress.is_some(), sent.is_some()) {
                (true, true) => "received and sent",
                (true, false) => "received",
                _ => "sent",
            };
            details.push(format!("{} for {packets} packets", hold.name()));
            Some(hold)
        } else {
            None
        };
        Ok((Hooks { xdp, tc }, details.join(", ")))
    }
}

impl Place for Hooks {
    fn is_fixed(&self) -> bool {
        matches!(self.tc, Some(Hold::Filters(_)))
    }

    fn put(&self, programs: &rules::Rules) -> Result<(), CallError> {
        let (received, sent) = (programs.received.as_ref(), programs.sent.as_ref());
        if let Some((link, program)) = self.xdp.as_ref().zip(received) {
            link.exchange(program.as_fd())?;
        }
        let ingress = received.filter(|_| self.xdp.is_none());
        let programs: Vec<BorrowedFd<'_>> =
            [ingress, sent].into_iter().flatten().map(OwnedFd::as_fd).collect();
        self.tc.as_ref().map_or(Ok(()), |hold| hold.exchange(&programs))
    }

    /// Detaches all programs.
    fn clear(&mut self) -> Result<(), CallError> {
        let xdp = self.xdp.take().map_or(Ok(()), |link| off(link.detach()));
        let tc = self.tc.take().map_or(Ok(()), |mut hold| off(hold.detach()));
        xdp.and(tc)
    }
}
