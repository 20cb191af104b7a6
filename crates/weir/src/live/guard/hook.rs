//! Attaches the programs of rules: for received packets by XDP or tc, for sent ones by tc.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use weir_bpf::rules::{self, Places, Received};
use weir_sys::CallError;
use weir_sys::bpf::{TcxLink, XdpHook, XdpLink};

use super::pins::{AnyLink, Left, Pins, Place};
use super::taken::{Before, Kept, Undone, not_by_filters};
use super::{GuardBuilder, OnExit};
use crate::live::interface::monitored::MonitoredInterface;
use crate::live::interface::{Device, Tags};
use crate::live::ruled::{Loader, Placed, Site};
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
    kept: Kept,
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
    /// Rules were in force already that a guard had left.
    pub(super) took_over: bool,
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
    // A trial of rules leaves what is in force.
    let pins = if asked.dry_run { None } else { Pins::of(monitored, asked.on_exit)? };
    let left = pins.as_ref().map(Pins::left).transpose()?.unwrap_or_default();
    let mut opener = Opener { monitored, device, asked, pins, left };
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
    pins: Option<Pins>,
    left: Left,
}

impl Opener<'_> {
    /// By XDP in the driver, unless something speaks against it.
    fn auto(&mut self) -> Result<(Placed, How), Error> {
        let why = if self.is_busy() {
            "another XDP program is attached".to_owned()
        } else if let Some(why) = self.asked.rules.against_xdp(self.device.driver.as_deref()) {
            why.to_owned()
        } else if self.device.tags != Tags::InFrame {
            "the device strips VLAN tags, which xdp would not see".to_owned()
        } else {
            match self.native("received packets are decided before the host spends memory on them".to_owned())
            {
                Err(Error::Unsupported { cause, .. }) => format!("xdp would be faster, but {cause}"),
                other => return other,
            }
        };
        self.without_xdp(Some(Received::Tc), why)
    }

    /// By XDP, in the driver if possible, otherwise in the stack.
    fn xdp(&mut self, why: String) -> Result<(Placed, How), Error> {
        if self.is_busy() {
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

    /// Returns whether an XDP program is there that is not to be taken over.
    fn is_busy(&self) -> bool {
        self.device.link.xdp_program.is_some() && self.left.xdp.is_none()
    }

    fn native(&mut self, why: String) -> Result<(Placed, How), Error> {
        if self.left.xdp.is_some() && self.device.link.xdp.native.is_none() {
            // The link stays where it is.
            return self.attached(Some((XdpHook::Generic, true)), None, why);
        }
        writers::check_native(self.device)?;
        let fragments = xdp::takes_fragments(self.device);
        self.attached(Some((XdpHook::Native, fragments)), None, why)
    }

    /// Returns the interface that all packets come from, if programs must not read it from them.
    fn only(&self, hook: XdpHook) -> Option<u32> {
        let is_only = hook == XdpHook::Native && matches!(writers::native(self.device), Native::Queues);
        is_only.then(|| self.monitored.index())
    }

    fn without_xdp(&mut self, received: Option<Received>, why: String) -> Result<(Placed, How), Error> {
        self.attached(None, received, why)
    }

    /// Attaches to `hook`, which takes packets in several buffers or not, or as `received` says.
    fn attached(
        &mut self,
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
        let loader = self.loader(Places { received, sent, back: None }, hook.is_some())?;
        let loaded = loader.load(&self.asked.rules, false)?;
        let took_over = !self.left.is_empty();
        let (hooks, detail) = self.hooks(&loaded.programs, hook.map(|(hook, _)| hook))?;
        let kind = received.map(|received| match received {
            Received::Xdp { .. } => SourceKind::Xdp,
            Received::Tc => SourceKind::Tc,
        });
        let lost = hook.is_some() && self.device.tags != Tags::InFrame;
        let warnings = lost.then(|| xdp::without_tags(self.device)).into_iter().collect();
        let how = How { received: kind, sent, detail, why, warnings, took_over };
        Ok((Placed { site: Box::new(hooks), loaded, loader }, how))
    }

    fn loader(&self, places: Places, by_xdp: bool) -> Result<Loader, Error> {
        Ok(Loader {
            name: self.monitored.name().to_owned(),
            namespace: self.monitored.namespace.clone(),
            receiver: self.device.receiver()?,
            keep_tags: (by_xdp && self.device.tags != Tags::InFrame).then(|| self.device.leave_tags()),
            places,
            dry_run: self.asked.dry_run,
            log: self.asked.log,
            exact: self.asked.exact,
            behind: Vec::new(),
        })
    }

    /// Attaches loaded programs, or puts them into the links that were left; says how.
    fn hooks(&mut self, programs: &rules::Rules, hook: Option<XdpHook>) -> Result<(Hooks, String), Error> {
        let (received, sent) = (programs.received.as_ref(), programs.sent.as_ref());
        let (received, sent) = (received.map(OwnedFd::as_fd), sent.map(OwnedFd::as_fd));
        let by_xdp = hook.zip(received);
        let ingress = received.filter(|_| by_xdp.is_none());
        let mut places = Vec::new();
        places.extend(by_xdp.map(|_| Place::Xdp));
        places.extend(ingress.map(|_| Place::Ingress));
        places.extend(sent.map(|_| Place::Egress));
        let before = Before::of(&self.left, &places, self.asked.on_trial)?;
        match self.put(by_xdp, [ingress, sent]) {
            Ok((xdp, tc, detail)) => {
                let unused = std::mem::take(&mut self.left);
                let kept = Kept::new(self.pins.take(), self.asked.on_exit, places, before, unused);
                let mut hooks = Hooks { xdp, tc, kept };
                if !self.asked.on_trial {
                    hooks.accept()?;
                }
                Ok((hooks, detail))
            }
            Err(error) => {
                // The first error counts.
                let _put_back = before.put_back(|place| self.left.link(place));
                Err(error)
            }
        }
    }

    /// Attaches programs, by XDP and by tc.
    fn put(
        &mut self,
        by_xdp: Option<(XdpHook, BorrowedFd<'_>)>,
        by_tc: [Option<BorrowedFd<'_>>; 2],
    ) -> Result<(Option<XdpLink>, Option<Hold>, String), Error> {
        let index = self.monitored.index();
        let mut details = Vec::new();
        let mut attached = None;
        if let Some((hook, program)) = by_xdp {
            let refused = |error| xdp::refused(self.device, error);
            match &self.left.xdp {
                Some(link) => link.exchange(program).map_err(refused)?,
                None => {
                    let link = self.monitored.inside(|| XdpLink::attach(program, index, hook))?;
                    attached = Some(link.map_err(refused)?);
                }
            }
            let kind = if hook == XdpHook::Native { "native" } else { "generic" };
            details.push(format!("{kind} XDP for received packets"));
        }
        let mut hold = None;
        if by_tc.iter().any(Option::is_some) {
            let refused = |error| tc::refused(self.device, error);
            let links = [&self.left.ingress, &self.left.egress];
            let left =
                links.into_iter().zip(by_tc).filter_map(|(link, program)| Some((link.as_ref()?, program?)));
            left.into_iter().try_for_each(|(link, program)| link.exchange(program)).map_err(refused)?;
            let missing = |side: usize| by_tc[side].filter(|_| links[side].is_none());
            let missing = [missing(0), missing(1)];
            let mut new = Hold::Links(Vec::new());
            if missing.iter().any(Option::is_some) {
                let attach = || Hold::attach(missing[0], missing[1], index, self.asked.tc_filters);
                new = self.monitored.inside(attach)?.map_err(refused)?;
            }
            if matches!(new, Hold::Filters(_)) && self.asked.on_exit == OnExit::Closed {
                return Err(not_by_filters());
            }
            let packets = match by_tc.map(|program| program.is_some()) {
                [true, true] => "received and sent",
                [true, false] => "received",
                _ => "sent",
            };
            details.push(format!("{} for {packets} packets", new.name()));
            hold = Some(new);
        }
        // From here on nothing fails.
        let xdp = if by_xdp.is_some() { self.left.xdp.take().or(attached) } else { None };
        if let Some(Hold::Links(links)) = &mut hold {
            let [ingress, egress] = by_tc.map(|program| program.is_some());
            let mut new = std::mem::take(links).into_iter();
            let mut one = |wanted: bool, left: &mut Option<TcxLink>| {
                wanted.then(|| left.take().or_else(|| new.next())).flatten()
            };
            let ingress = one(ingress, &mut self.left.ingress);
            let egress = one(egress, &mut self.left.egress);
            *links = ingress.into_iter().chain(egress).collect();
        }
        Ok((xdp, hold, details.join(", ")))
    }
}

impl Site for Hooks {
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

    /// Accepts rules that were on trial, and sees to it that they stay when the process ends, or do not.
    fn accept(&mut self) -> Result<(), Error> {
        let Self { xdp, tc, kept } = self;
        let places = kept.places().to_vec();
        kept.settle(|place| link(xdp.as_ref(), tc.as_ref(), &places, place))
    }

    fn stay(&self) -> bool {
        self.kept.stays()
    }

    /// Those on trial give way to what was in force before.
    fn end(&mut self, gone: bool) -> Result<(), CallError> {
        if self.stay() {
            if gone {
                self.kept.forget();
            }
            return Ok(());
        }
        let undone = self.undo()?;
        let (xdp, tc) = (self.xdp.take(), self.tc.take());
        match (undone, tc) {
            // Dropping a link does not detach what is in force again.
            (Undone::Now, Some(Hold::Links(_)) | None) => Ok(()),
            (Undone::Now, Some(mut filters)) => off(filters.detach()),
            (Undone::Needless, tc) => {
                let xdp = xdp.map_or(Ok(()), |link| off(link.detach()));
                let tc = tc.map_or(Ok(()), |mut hold| off(hold.detach()));
                xdp.and(tc)
            }
        }
    }
}

impl Hooks {
    fn undo(&mut self) -> Result<Undone, CallError> {
        let Self { xdp, tc, kept } = self;
        let places = kept.places().to_vec();
        kept.undo(|place| link(xdp.as_ref(), tc.as_ref(), &places, place))
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _off = self.undo();
    }
}

/// Returns the link of a place; tc has those of `places` that are its own, in order.
fn link<'a>(
    xdp: Option<&'a XdpLink>,
    tc: Option<&'a Hold>,
    places: &[Place],
    place: Place,
) -> Option<AnyLink<'a>> {
    if place == Place::Xdp {
        return xdp.map(AnyLink::Xdp);
    }
    let Some(Hold::Links(links)) = tc else { return None };
    let number = places.iter().filter(|place| **place != Place::Xdp).position(|one| *one == place)?;
    links.get(number).map(AnyLink::Tcx)
}
