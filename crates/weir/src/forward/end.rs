//! One of the two interfaces: its properties, and changes to it.

use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use weir_sys::link::{Link, LinkChange, set_promiscuous};
use weir_sys::packet::Promiscuous;

use super::account::SendCounters;
use super::directory::make_directory;
use crate::account::NicCounters;
use crate::live::command;
use crate::live::error::NEEDS;
use crate::live::event::{Change, Event, Known};
use crate::live::interface::Device;
use crate::live::request::Wanted;
use crate::live::site::{self, Site};
use crate::live::source::writers::{self, Native};
use crate::live::source::xdp;
use crate::{Error, Namespace, Setting};

/// An interface that is being watched.
#[derive(Debug)]
pub(super) struct End {
    id: u32,
    namespace: Option<Namespace>,
    pub(super) device: Device,
    site: Site,
    known: Known,
    began: Link,
    now: Link,
    gone: bool,
    promiscuous: Option<Promiscuous>,
}

impl End {
    pub(super) fn find(wanted: &Wanted, id: u32) -> Result<Self, Error> {
        if wanted.is_any() {
            return Err(Error::setting(Setting::Ends, "cannot forward to or from `any`; name an interface"));
        }
        let site = Site::open(wanted.namespace.as_ref())?;
        let device = site::inside(wanted.namespace.as_ref(), || Device::find(wanted))??;
        let link = Link { name: wanted.name.clone(), ..device.link.clone() };
        Ok(Self {
            id,
            namespace: wanted.namespace.clone(),
            known: Known::of(&link),
            began: link.clone(),
            now: link,
            device,
            site,
            gone: false,
            promiscuous: None,
        })
    }

    /// The name as given by the user.
    pub(super) fn name(&self) -> &str {
        &self.device.link.name
    }

    pub(super) fn index(&self) -> u32 {
        self.device.link.index
    }

    /// Opens its namespace again.
    pub(super) fn site(&self) -> Result<Site, Error> {
        Site::open(self.namespace.as_ref())
    }

    /// Runs `work` in its namespace.
    pub(super) fn inside<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, Error> {
        site::inside(self.namespace.as_ref(), work)
    }

    /// Makes the interface promiscuous: while this process lives, or, with `lasting`, until forwarding is ended.
    /// `lasting` is a directory to be created as a mark of that.
    pub(super) fn make_promiscuous(&mut self, lasting: Option<PathBuf>) -> Result<(), Error> {
        let index = self.index();
        let refused = |error: weir_sys::CallError| match Errno::from_raw_os_error(error.errno()) {
            Errno::PERM => {
                let operation = format!("enable promiscuous mode on `{}`", self.name());
                Error::Privilege { operation, needs: NEEDS }
            }
            _ => error.into(),
        };
        match lasting {
            Some(_) if self.began.is_promiscuous() => Ok(()),
            Some(mark) => {
                make_directory(&mark)?;
                self.inside(|| set_promiscuous(index, true))?.map_err(refused)
            }
            None => {
                let promiscuous = self.inside(|| Promiscuous::new(index))?.map_err(refused)?;
                self.promiscuous = Some(promiscuous);
                Ok(())
            }
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Returns what to report at the start.
    pub(super) fn first_event(&self) -> Option<Event> {
        self.known.lacks_carrier().then(|| self.event(Change::NoCarrier))
    }

    /// Returns what has changed since the last call.
    pub(super) fn listen(&mut self) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        for change in self.site.changes()? {
            match change {
                LinkChange::Is(link) if link.index == self.index() => events.extend(self.follow(link)),
                LinkChange::Gone(link) if link.index == self.index() => {
                    self.now = link;
                    events.extend(self.end());
                }
                LinkChange::Missed => {
                    let links = self.site.links()?;
                    match links.into_iter().find(|link| link.index == self.index()) {
                        Some(link) => events.extend(self.follow(link)),
                        None => events.extend(self.end()),
                    }
                }
                _ => {}
            }
        }
        if !self.gone && self.site.is_over() {
            events.extend(self.end());
            self.site.close();
        }
        Ok(events)
    }

    fn follow(&mut self, link: Link) -> Vec<Event> {
        let changes = self.known.follow(&link);
        self.now = link;
        changes.into_iter().map(|change| self.event(change)).collect()
    }

    fn end(&mut self) -> Option<Event> {
        let known = std::mem::replace(&mut self.gone, true);
        (!known).then(|| self.event(Change::Gone))
    }

    fn event(&self, change: Change) -> Event {
        Event { interface: self.id, name: self.name().to_owned(), change }
    }

    /// Returns a descriptor that is readable when something has changed.
    pub(super) fn fd(&self) -> Option<PollFd<'_>> {
        Some(PollFd::from_borrowed_fd(self.site.fd()?, PollFlags::IN))
    }

    /// Reads the device's own counters.
    pub(super) fn count(&mut self) -> Result<(), Error> {
        let index = self.index();
        if let Some(link) = self.site.links()?.into_iter().find(|link| link.index == index) {
            self.now = link;
        }
        Ok(())
    }

    /// Returns its losses while receiving.
    pub(super) fn nic(&self) -> NicCounters {
        let grown = |of: fn(&Link) -> u64| of(&self.now).saturating_sub(of(&self.began));
        NicCounters {
            missed: grown(|link| link.rx_missed),
            fifo_errors: grown(|link| link.rx_fifo_errors),
            dropped: grown(|link| link.rx_dropped),
        }
    }

    /// Returns its losses while sending.
    pub(super) fn sender(&self) -> SendCounters {
        let grown = |of: fn(&Link) -> u64| of(&self.now).saturating_sub(of(&self.began));
        SendCounters { errors: grown(|link| link.tx_errors), dropped: grown(|link| link.tx_dropped) }
    }
}

/// Rejects combinations that do not work, before anything is attached.
pub(super) fn check(ends: &[End; 2], both: bool) -> Result<(), Error> {
    let [from, to] = ends;
    let (from_name, to_name) = (from.name(), to.name());
    if from.index() == to.index() && from.site.identity == to.site.identity {
        let why = format!("cannot forward `{from_name}` to itself: name two interfaces");
        return Err(Error::setting(Setting::Ends, why));
    }
    for end in ends {
        if !end.device.link.is_up() {
            return Err(Error::InterfaceDown { name: end.name().to_owned() });
        }
    }
    let (here, there) = (from.device.link_type()?, to.device.link_type()?);
    if here != there {
        let what = format!(
            "`{from_name}` has link type {here}, `{to_name}` has {there}: cannot forward between different link types"
        );
        return Err(Error::Forward { what, mend: "name two Ethernet interfaces".into() });
    }
    let ways: &[_] = if both { &[(from, to), (to, from)] } else { &[(from, to)] };
    for (from, to) in ways {
        receives(from)?;
        sends(to)?;
        fits(from, to)?;
    }
    Ok(())
}

/// Checks that a program can be attached to the interface.
fn receives(end: &End) -> Result<(), Error> {
    if end.device.link.xdp_program.is_some() {
        return Err(refused(xdp::busy(&end.device)));
    }
    if let Native::Processors(why) | Native::Nowhere(why) = writers::native(&end.device) {
        let what = format!(
            "`{}`: {why}; packets of one queue may therefore arrive on several CPUs at once",
            end.name()
        );
        let mend = "forward from a port below it, or use a bridge".into();
        return Err(Error::Forward { what, mend });
    }
    if end.device.abilities.is_some_and(|can| !can.redirect()) {
        let driver = end.device.driver.as_deref().unwrap_or("unknown");
        let what = format!("`{}`: its driver ({driver}) cannot redirect packets in native XDP", end.name());
        return Err(Error::ForwardDriver { what, mend: "a Linux bridge works with any interface" });
    }
    Ok(())
}

/// Converts an error so that its advice fits forwarding, which has no other way to attach.
pub(super) fn refused(error: Error) -> Error {
    match &error {
        Error::Busy { name, .. } => {
            let (inside, device) = command::place(name);
            let mend = format!("to see whose it is: {inside}bpftool net show dev {device}");
            Error::Forward { what: error.to_string(), mend }
        }
        Error::Unsupported { .. } => {
            Error::ForwardDriver { what: error.to_string(), mend: "try a smaller MTU or fewer queues" }
        }
        _ => error,
    }
}

/// Checks that the interface can send redirected packets.
fn sends(end: &End) -> Result<(), Error> {
    if end.device.abilities.is_none_or(|can| can.redirect_target()) {
        return Ok(());
    }
    let name = end.name();
    if end.device.driver.as_deref() == Some("veth") {
        let what = format!(
            "`{name}` accepts no redirected packets: veth requires GRO or an XDP program on its other end"
        );
        let mend = "enable GRO on the other end while it is up: ethtool -K PEER gro on".into();
        return Err(Error::Forward { what, mend });
    }
    let driver = end.device.driver.as_deref().unwrap_or("unknown");
    let what = format!("`{name}`: its driver ({driver}) accepts no redirected packets in this configuration");
    let (inside, device) = command::place(name);
    let mend = format!(
        "some drivers require an XDP program on the interface, or a queue per CPU: {inside}ethtool -l \
         {device}"
    );
    Err(Error::Forward { what, mend })
}

/// Checks that packets of one interface fit through the other.
fn fits(from: &End, to: &End) -> Result<(), Error> {
    let (here, there) = (from.device.link.mtu, to.device.link.mtu);
    if here <= there {
        return Ok(());
    }
    let what =
        format!("packets from `{}` (MTU {here}) are too long for `{}` (MTU {there})", from.name(), to.name());
    let (inside, device) = command::place(to.name());
    Err(Error::Forward { what, mend: format!("{inside}ip link set {device} mtu {here}") })
}
