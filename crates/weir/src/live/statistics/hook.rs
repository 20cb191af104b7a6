//! Loads and attaches the programs that count.

use std::os::fd::{AsFd as _, OwnedFd};

use weir_bpf::filter::FilterError as LoadingFailed;
use weir_bpf::stat::{AttachPoint, By, Counters, Details, KeyField, Programs, Xdp, idle};
use weir_filter::graph::Graph;
use weir_filter::set::Set;
use weir_sys::bpf::{XdpHook, XdpLink};

use super::{StatisticsBuilder, Switch};
use crate::filter::{Compiled, Receiver};
use crate::live::error::not_loaded;
use crate::live::filter_control;
use crate::live::interface::monitored::MonitoredInterface;
use crate::live::interface::queues;
use crate::live::interface::{Device, Tags};
use crate::live::settings::{Mode, SourceChoice};
use crate::live::source::programmed::Attachment;
use crate::live::source::tc::{self, Hold};
use crate::live::source::writers::{self, Native};
use crate::live::source::xdp;
use crate::{Error, Filter, InterfaceWarning, Setting, SourceKind, TagUse, Unsupported};

/// Attached programs and their counters.
#[derive(Debug)]
pub(super) struct Hooked {
    pub(super) counters: Counters,
    /// `None` once it is stopped.
    pub(super) attachment: Option<Box<dyn Attachment>>,
    /// With tc.
    pub(super) switch: Option<Switch>,
}

/// How they are attached.
#[derive(Debug)]
pub(super) struct How {
    pub(super) source: SourceKind,
    pub(super) detail: String,
    pub(super) why: String,
    pub(super) warnings: Vec<InterfaceWarning>,
}

/// Attaches the programs that count what was asked for.
pub(super) fn attach(
    monitored: &MonitoredInterface,
    asked: &StatisticsBuilder,
) -> Result<(Hooked, How), Error> {
    let opener = Opener { monitored, device: &monitored.device, asked };
    let as_requested = || "as requested".to_owned();
    let attached = match asked.source {
        SourceChoice::Xdp => opener.xdp(as_requested()),
        SourceChoice::Auto if monitored.device.chosen.is_some() => {
            opener.xdp("only xdp knows receive queues".to_owned())
        }
        SourceChoice::Auto if asked.mode == Mode::Exclusive => {
            opener.xdp("only xdp can keep packets from the host".to_owned())
        }
        SourceChoice::Auto => match opener.tc("it counts both directions, with any driver".to_owned()) {
            Err(Error::Unsupported { cause, .. }) => opener.xdp(format!("tc would fit, but {cause}")),
            other => other,
        },
        _ => opener.tc(as_requested()),
    };
    attached.map_err(advised)
}

/// Takes advice to use a source that cannot count out of an error.
fn advised(error: Error) -> Error {
    match error {
        Error::Load { name: Some(name), source } if !source.is_permission() && !source.is_memory() => {
            Error::Unsupported { name, cause: Unsupported::Program(source), sources: &[], otherwise: "" }
        }
        Error::Unsupported { name, cause, sources: [SourceChoice::AfPacket], otherwise } => {
            Error::Unsupported { name, cause, sources: &[SourceChoice::Xdp], otherwise }
        }
        other => other,
    }
}

struct Opener<'a> {
    monitored: &'a MonitoredInterface,
    device: &'a Device,
    asked: &'a StatisticsBuilder,
}

impl Opener<'_> {
    fn tc(&self, why: String) -> Result<(Hooked, How), Error> {
        // What is sent on loopback is also received there: count it once.
        let egress = !self.device.link.is_loopback();
        let programs = self.load(&AttachPoint::Tc { ingress: true, egress })?;
        let idle =
            idle().map_err(|refused| filter_control::not_loaded(self.monitored.name(), refused.into()))?;
        let (received, sent) = (programs.received.as_ref(), programs.sent.as_ref());
        let (received, sent) = (received.map(OwnedFd::as_fd), sent.map(OwnedFd::as_fd));
        let index = self.monitored.index();
        let hold = self.monitored.inside(|| Hold::attach(received, sent, index, self.asked.tc_filters))?;
        let hold = hold.map_err(|error| tc::refused(self.device, error))?;
        let sides = if egress { "ingress and egress" } else { "ingress" };
        let detail = format!("{} {sides}", hold.name());
        let how = How { source: SourceKind::Tc, detail, why, warnings: Vec::new() };
        let counting = [programs.received, programs.sent].into_iter().flatten().collect();
        let switch = Switch::new(self.monitored.name(), hold, counting, idle);
        let attachment: Box<dyn Attachment> = Box::new(switch.clone());
        let switch = Some(switch);
        Ok((Hooked { counters: programs.counters, attachment: Some(attachment), switch }, how))
    }

    /// Attaches in the driver if possible, otherwise in the stack.
    fn xdp(&self, why: String) -> Result<(Hooked, How), Error> {
        if self.device.link.xdp_program.is_some() {
            return Err(xdp::busy(self.device));
        }
        match self.native(why.clone()) {
            Err(Error::Unsupported { cause, .. }) => {
                let (hooked, mut how) = self.blind(XdpHook::Generic, why)?;
                how.detail = format!("{}; not native: {cause}", how.detail);
                Ok((hooked, how))
            }
            other => other,
        }
    }

    fn native(&self, why: String) -> Result<(Hooked, How), Error> {
        writers::check_native(self.device)?;
        // Bind the program to the device, so that it can ask the driver for stripped tags; if that fails, do without.
        match self.device.tags {
            Tags::Told(_) => match self.attached(XdpHook::Native, true, why.clone()) {
                Err(Error::Load { source, .. }) if !source.is_permission() && !source.is_memory() => {
                    self.blind(XdpHook::Native, why)
                }
                other => other,
            },
            _ => self.blind(XdpHook::Native, why),
        }
    }

    /// Attaches a program that does not get stripped tags.
    fn blind(&self, hook: XdpHook, why: String) -> Result<(Hooked, How), Error> {
        let lost = self.device.tags != Tags::InFrame;
        if lost {
            if self.asked.fields.contains(&KeyField::Vlan) {
                return Err(self.device.tags_needed(TagUse::Counting, Mode::Pass));
            }
            for (name, compiled) in self.compiled(false)? {
                if compiled.asks_for_tags() {
                    let needed = TagUse::Filter { name: Some(name.to_owned()) };
                    return Err(self.device.tags_needed(needed, Mode::Pass));
                }
            }
        }
        let (hooked, mut how) = self.attached(hook, false, why)?;
        how.warnings.extend(lost.then(|| xdp::without_tags(self.device)));
        Ok((hooked, how))
    }

    fn attached(&self, hook: XdpHook, tags: bool, why: String) -> Result<(Hooked, How), Error> {
        let native = hook == XdpHook::Native;
        let by_queue = native && writers::native(self.device) == Native::Queues;
        let program = Xdp {
            fragments: !native || xdp::takes_fragments(self.device),
            from: by_queue.then(|| self.device.driven()),
            chosen: self.device.chosen,
            tags_of: tags.then_some(self.monitored.index()),
            exclusive: self.asked.mode == Mode::Exclusive,
        };
        let programs = self.load(&AttachPoint::Xdp(program))?;
        let attached = programs.received.as_ref().expect("it was loaded").as_fd();
        let index = self.monitored.index();
        let link = self.monitored.inside(|| XdpLink::attach(attached, index, hook))?;
        let link = link.map_err(|error| xdp::refused(self.device, error))?;
        let note = queues::note(self.device).map(|note| format!("; {note}")).unwrap_or_default();
        let kind = if native { "native" } else { "generic" };
        let end = if program.exclusive { ", which go no further" } else { "" };
        let detail = format!("{kind} XDP, received packets only{end}{note}");
        let how = How { source: SourceKind::Xdp, detail, why, warnings: Vec::new() };
        Ok((Hooked { counters: programs.counters, attachment: Some(Box::new(link)), switch: None }, how))
    }

    fn load(&self, place: &AttachPoint) -> Result<Programs, Error> {
        let compiled = self.compiled(!place.tag_is_inside())?;
        let filters = compiled.iter().map(|(_, one)| (&one.graph, &one.ast.sets[..]));
        let filters: Vec<(&Graph, &[Set])> = filters.collect();
        let by = (!self.asked.fields.is_empty()).then(|| By {
            fields: self.asked.fields.clone(),
            most: self.asked.most_keys,
            ethernet: self.device.is_ethernet(),
        });
        let details = Details { by, sizes: self.asked.sizes, gaps: self.asked.gaps };
        // A program that is bound to a device is loaded in the device's namespace.
        let loaded = self.monitored.inside(|| Programs::load(place, &filters, &details))?;
        loaded.map_err(|error| match error {
            LoadingFailed::Load(error) => not_loaded(self.monitored.name(), error),
            error if error.is_too_much() => {
                let why = "cannot count these filters at once: all together are too much for the kernel's verifier; try \
                           fewer, or sets instead of many terms";
                Error::setting(Setting::Filters, why)
            }
            error => filter_control::not_loaded(self.monitored.name(), error),
        })
    }

    /// Compiles the filters. If tags are inside the packet, other metadata is used only if an expression needs it.
    fn compiled(&self, tags_beside: bool) -> Result<Vec<(&str, Compiled)>, Error> {
        let receiver = self.device.receiver()?;
        let bare = Receiver { metadata: false, ..receiver };
        let one = |filter: &Filter| {
            let compiled = if tags_beside { None } else { filter.compile(bare).ok() };
            compiled.map_or_else(|| filter.compile(receiver), Ok)
        };
        let each = self.asked.filters.iter().map(|(name, filter)| {
            let compiled = one(filter).map_err(|error| error.on(self.monitored.name()))?;
            Ok((name.as_str(), compiled))
        });
        each.collect()
    }
}
