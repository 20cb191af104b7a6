//! The choice of a source for an interface.

use weir_sys::bpf::XdpHook;
use weir_sys::cpu::Processors;
use weir_sys::netdev::{self, XdpAbilities};

use crate::live::interface::queues;
use crate::live::interface::{Device, Interface, Tags, Usage};
use crate::live::namespace::context::inside;
use crate::live::request::memory::Alternatives;
use crate::live::request::{Settings, Wanted};
use crate::live::settings::{Mode, SourceChoice};
use crate::live::source::{Source, af_packet, af_xdp, tc, xdp, xdp_tc};
use crate::{
    Direction, Error, Filter, InterfaceWarning, ModeKind, Namespace, Setting, SourceKind, Unsupported,
};

type Opening = Result<(Box<dyn Source>, Interface), Error>;

/// Opens the requested source on `device`; with `auto`, the most suitable one, and says why.
pub(crate) fn open(device: &Device, id: u32, settings: &Settings) -> Opening {
    if !device.link.is_up() {
        return Err(Error::InterfaceDown { name: device.link.name.clone() });
    }
    queues::check(device, settings)?;
    let opener = Opener { device, id, settings, link_type: device.link_type()? };
    let asked = || "as requested".to_owned();
    let refused = |one, other, why: &str| Err(Error::conflict(one, other, why));
    let exclusive = settings.mode == Mode::Exclusive;
    let source = Setting::Source(settings.source);
    let mode = Setting::Mode(settings.mode);
    let direction = Setting::Direction(settings.direction);
    if device.any {
        return match settings.source {
            SourceChoice::Auto | SourceChoice::AfPacket if exclusive => {
                refused(Setting::Interface, mode, "`any` cannot take packets away from the host")
            }
            SourceChoice::Auto | SourceChoice::AfPacket if settings.segment => refused(
                Setting::Segment,
                Setting::Interface,
                "only packets of a named interface can be split into segments",
            ),
            SourceChoice::Auto | SourceChoice::AfPacket if settings.left_out_mark.is_some() => refused(
                Setting::LeaveOutMark,
                Setting::Interface,
                "only the tc source sees the marks of packets, and it captures on named interfaces",
            ),
            SourceChoice::Auto | SourceChoice::AfPacket if settings.steering.is_some() => refused(
                Setting::Steer,
                Setting::Interface,
                "only packets of a named interface can be steered",
            ),
            SourceChoice::Auto => opener.af_packet(ANY.to_owned()),
            SourceChoice::AfPacket => opener.af_packet(asked()),
            SourceChoice::Xdp | SourceChoice::Tc | SourceChoice::XdpTc | SourceChoice::AfXdp => {
                Err(Error::Unsupported {
                    name: device.link.name.clone(),
                    cause: Unsupported::AllInterfaces,
                    sources: &[SourceChoice::AfPacket],
                    otherwise: "name the interfaces",
                })
            }
        };
    }
    match (settings.source, settings.direction) {
        (SourceChoice::Xdp, Direction::Out) => {
            refused(source, direction, "the xdp source sees received packets only, not sent ones")
        }
        (SourceChoice::Tc, _) if exclusive => {
            refused(source, mode, "the tc source cannot take packets away from the host")
        }
        (SourceChoice::XdpTc, _) if exclusive => refused(
            source,
            mode,
            "the xdp+tc source leaves packets to the host; the xdp source can take received ones away",
        ),
        (SourceChoice::XdpTc, _) if device.link.is_loopback() => refused(
            source,
            Setting::Interface,
            "the xdp+tc source would capture each loopback packet twice; the tc source captures it once",
        ),
        (SourceChoice::XdpTc, Direction::In | Direction::Out) => refused(
            source,
            direction,
            "the xdp+tc source captures both directions; for one, use the xdp or tc source",
        ),
        (SourceChoice::AfPacket, _) if exclusive => {
            refused(source, mode, "the af_packet source cannot take packets away from the host")
        }
        (SourceChoice::AfXdp, Direction::Out) => {
            refused(source, direction, "the af_xdp source sees received packets only, not sent ones")
        }
        (SourceChoice::AfXdp, _) if !exclusive => refused(
            source,
            mode,
            "the af_xdp source takes packets away from the host; choose exclusive mode, or the xdp source",
        ),
        (SourceChoice::Xdp | SourceChoice::XdpTc | SourceChoice::AfPacket | SourceChoice::AfXdp, _)
            if settings.segment =>
        {
            refused(Setting::Segment, source, "only the tc source can split packets into segments")
        }
        (SourceChoice::AfPacket | SourceChoice::AfXdp, _) if settings.steering.is_some() => {
            refused(Setting::Steer, source, "only the sources xdp and tc can steer packets")
        }
        (SourceChoice::Xdp | SourceChoice::AfPacket | SourceChoice::AfXdp, _)
            if settings.left_out_mark.is_some() =>
        {
            refused(
                Setting::LeaveOutMark,
                source,
                "only the sources tc and xdp+tc see the marks of sent packets",
            )
        }
        (SourceChoice::Auto, _) if settings.left_out_mark.is_some() && exclusive => refused(
            Setting::LeaveOutMark,
            mode,
            "only the sources tc and xdp+tc see the marks of packets, and they leave packets to the host",
        ),
        (SourceChoice::Auto, _) if settings.left_out_mark.is_some() && device.chosen.is_some() => refused(
            Setting::LeaveOutMark,
            Setting::Queues,
            "the source that knows receive queues, xdp, does not see the marks of packets",
        ),
        (SourceChoice::Auto, _) if settings.segment && exclusive => refused(
            Setting::Segment,
            mode,
            "only the tc source can split packets into segments, and it leaves packets to the host",
        ),
        (SourceChoice::Xdp, _) => opener.xdp(false, asked()),
        (SourceChoice::Tc, _) => opener.tc(asked()),
        (SourceChoice::XdpTc, _) => opener.xdp_tc(asked()),
        (SourceChoice::AfPacket, _) => opener.af_packet(asked()),
        (SourceChoice::AfXdp, _) => opener.af_xdp(asked()),
        (SourceChoice::Auto, _) => opener.auto(),
    }
}

/// Returns the memory needed by the source that [`open`] tries first, or by those it falls back to.
pub(crate) fn needs(device: &Device, settings: &Settings) -> Result<Alternatives, Error> {
    let xdp = |hook| xdp::need(device, settings, hook).map(|need| vec![need]);
    let tc = || Ok::<_, Error>(vec![tc::need(device, settings, Processors::online()?.count())]);
    let af_packet = || vec![af_packet::need(device, settings)];
    Ok(match settings.source {
        SourceChoice::Auto if device.any => vec![af_packet()],
        SourceChoice::Auto if device.chosen.is_some() => vec![xdp(XdpHook::Native)?, xdp(XdpHook::Generic)?],
        SourceChoice::Auto => match prefer(device, settings).0 {
            Fit::Xdp => vec![xdp(XdpHook::Native)?, tc()?, af_packet()],
            Fit::Tc => vec![tc()?, af_packet()],
        },
        SourceChoice::Xdp => vec![xdp(XdpHook::Native)?, xdp(XdpHook::Generic)?],
        SourceChoice::Tc => vec![tc()?],
        SourceChoice::XdpTc => {
            let with = |hook| Ok::<_, Error>([xdp(hook)?, tc()?].concat());
            vec![with(XdpHook::Native)?, with(XdpHook::Generic)?]
        }
        SourceChoice::AfPacket => vec![af_packet()],
        SourceChoice::AfXdp => {
            [XdpHook::Native, XdpHook::Generic].map(|hook| vec![af_xdp::need(device, settings, hook)]).into()
        }
    })
}

/// Opens any source on one interface.
pub(crate) struct Opener<'a> {
    pub(crate) device: &'a Device,
    pub(crate) id: u32,
    pub(crate) settings: &'a Settings,
    pub(crate) link_type: u16,
}

impl Opener<'_> {
    fn xdp(&self, native_only: bool, why: String) -> Opening {
        let opened = xdp::open(self.device, self.id, self.settings, native_only, None);
        let opened = opened.map_err(|error| queues::advised(self.device, error))?;
        let described = self.describe(SourceKind::Xdp, opened.source, opened.snap_len, opened.detail, why);
        Ok(warned(described, opened.warnings))
    }

    fn tc(&self, why: String) -> Opening {
        let opened = tc::open(self.device, self.id, self.settings)?;
        Ok(self.describe(SourceKind::Tc, opened.source, opened.snap_len, opened.detail, why))
    }

    fn xdp_tc(&self, why: String) -> Opening {
        let opened = xdp_tc::open(self.device, self.id, self.settings)?;
        let described = self.describe(SourceKind::XdpTc, opened.source, opened.snap_len, opened.detail, why);
        Ok(warned(described, opened.warnings))
    }

    fn af_packet(&self, why: String) -> Opening {
        let opened = af_packet::open(self.device, self.id, self.settings)?;
        let described =
            self.describe(SourceKind::AfPacket, opened.source, opened.snap_len, opened.detail, why);
        Ok(warned(described, opened.warnings))
    }

    fn af_xdp(&self, why: String) -> Opening {
        let opened = af_xdp::open(self.device, self.id, self.settings);
        let opened = opened.map_err(|error| queues::advised(self.device, error))?;
        let described = self.describe(SourceKind::AfXdp, opened.source, opened.snap_len, opened.detail, why);
        Ok(warned(described, opened.warnings))
    }

    /// Opens the most suitable source or, if it is not available, the next one, with the reason.
    fn auto(&self) -> Opening {
        let (first, mut why) = prefer(self.device, self.settings);
        if self.device.chosen.is_some() {
            return self.xdp(false, why);
        }
        let mut warnings = Vec::new();
        if first == Fit::Xdp {
            match self.xdp(true, why.clone()) {
                Err(error) if self.settings.mode == Mode::Pass && !is_final(&error) => {
                    why = format!("xdp would fit ({why}), but failed: {}", first_line(&error));
                    warnings.extend(slower(SourceKind::Xdp, &error));
                }
                other => return other,
            }
        }
        let opened = match self.tc(why.clone()) {
            Err(error)
                if !self.settings.segment
                    && self.settings.left_out_mark.is_none()
                    && self.settings.steering.is_none()
                    && self.settings.rules.as_ref().is_none_or(|rules| rules.check_copies().is_ok())
                    && !is_final(&error) =>
            {
                let but = if first == Fit::Xdp { "tc" } else { "tc would fit, but" };
                warnings.extend(slower(SourceKind::Tc, &error));
                self.af_packet(format!("{why}; {but} failed: {}", first_line(&error)))
            }
            other => other,
        };
        opened.map(|opened| warned(opened, warnings))
    }

    pub(crate) fn describe(
        &self,
        kind: SourceKind,
        source: impl Source + 'static,
        snap_len: u32,
        detail: String,
        why: String,
    ) -> (Box<dyn Source>, Interface) {
        let link = &self.device.link;
        let interface = Interface {
            id: self.id,
            name: link.name.clone(),
            description: self.device.description.clone(),
            link_type: self.link_type,
            snap_len,
            speed_bits: self.device.speed_bits,
            mac: link.address.as_slice().try_into().ok().filter(|_| link.hardware == 1),
            source: kind,
            mode: match self.settings.mode {
                Mode::Pass => ModeKind::Pass,
                Mode::Exclusive => ModeKind::Exclusive,
            },
            detail,
            why,
            queues: source.queues(),
            targets: self.settings.targets(),
            filter: self.settings.filter.as_ref().map(Filter::label),
            sample: self.settings.sampling.map(|sampling| sampling.sample),
            filter_is_never: self.device.filter.as_ref().is_some_and(|filter| filter.is_never()),
            warnings: Vec::new(),
            tags_lost: false,
        };
        (Box::new(source), interface)
    }
}

/// Puts `warnings` before the ones that the interface has.
fn warned(
    (source, mut interface): (Box<dyn Source>, Interface),
    warnings: Vec<InterfaceWarning>,
) -> (Box<dyn Source>, Interface) {
    interface.tags_lost |= warnings.iter().any(|one| matches!(one, InterfaceWarning::TagsLost { .. }));
    interface.warnings.splice(..0, warnings);
    (source, interface)
}

/// What `auto` would choose on an interface, if that can be determined without trying.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// Xdp or tc, or af_packet for `any`. If the kernel rejects it, the next of tc and af_packet is used.
    pub source: SourceKind,
    /// Why this source.
    pub why: String,
}

/// Returns what [`SourceChoice::Auto`] would choose on the interface `name` of `namespace`, or of this thread's
/// namespace, with all other options at [`Builder`](crate::Builder)'s defaults. Nothing is opened.
///
/// # Errors
///
/// The interface is unknown or down, or no source can capture on its kind.
pub fn choice(namespace: Option<&Namespace>, name: &str) -> Result<Choice, Error> {
    let wanted = Wanted { namespace: namespace.cloned(), name: name.to_owned(), queues: None };
    let device = inside(namespace, || Device::find(&wanted))??;
    if !device.link.is_up() {
        return Err(Error::InterfaceDown { name: device.link.name });
    }
    device.link_type()?;
    if device.any {
        return Ok(Choice { source: SourceKind::AfPacket, why: ANY.to_owned() });
    }
    let (fit, why) = prefer(&device, &Settings::default());
    Ok(match (fit, obstacle(&device)?) {
        (Fit::Tc, _) => Choice { source: SourceKind::Tc, why },
        (Fit::Xdp, None) => Choice { source: SourceKind::Xdp, why },
        (Fit::Xdp, Some(but)) => {
            Choice { source: SourceKind::Tc, why: format!("xdp would fit ({why}), but {but}") }
        }
    })
}

/// Returns the command that makes VLAN tags visible to xdp on the interface `name` of `namespace`, or of this thread's
/// namespace. Returns `None` if xdp sees the tags, or the driver reports them.
///
/// # Errors
///
/// The interface is unknown.
pub fn tag_unknown(namespace: Option<&Namespace>, name: &str) -> Result<Option<String>, Error> {
    let wanted = Wanted { namespace: namespace.cloned(), name: name.to_owned(), queues: None };
    let device = inside(namespace, || Device::find(&wanted))??;
    Ok(matches!(device.tags, Tags::Unreported(_)).then(|| device.leave_tags()))
}

/// Returns what is known in advance to keep `auto` from using xdp.
fn obstacle(device: &Device) -> Result<Option<&'static str>, Error> {
    if device.link.xdp_program.is_some() {
        return Ok(Some("another XDP program is attached"));
    }
    let native = |all: Vec<XdpAbilities>| {
        all.iter().any(|abilities| abilities.interface == device.link.index && abilities.native())
    };
    Ok((!netdev::xdp_abilities()?.is_none_or(native)).then_some("the driver has no native XDP"))
}

/// Why there is only one source for all interfaces.
const ANY: &str = "one socket captures all interfaces";

/// What `auto` tries first. If tc is not available, af_packet is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Xdp,
    Tc,
}

/// Chooses for `auto`: never disturb an interface that the host uses, see both directions, but be fast on a mirror port.
fn prefer(device: &Device, settings: &Settings) -> (Fit, String) {
    let (fit, why) = if device.chosen.is_some() {
        (Fit::Xdp, "only xdp knows receive queues")
    } else if settings.mode == Mode::Exclusive {
        (Fit::Xdp, "only xdp can take packets away from the host")
    } else if !device.is_ethernet() {
        (Fit::Tc, "its frames have no Ethernet header")
    } else if device.link.is_loopback() {
        (Fit::Tc, "it is the loopback interface")
    } else if settings.segment {
        (Fit::Tc, "only tc can split packets into segments")
    } else if settings.left_out_mark.is_some() {
        (Fit::Tc, "only tc sees the marks of packets")
    } else if settings.rules.is_some() && device.tags != Tags::InFrame {
        (Fit::Tc, "the device strips VLAN tags, which rules would not see in xdp")
    } else if let Some(why) =
        settings.rules.as_ref().and_then(|rules| rules.against_xdp(device.driver.as_deref()))
    {
        (Fit::Tc, why)
    } else if settings.direction == Direction::Out {
        (Fit::Tc, "xdp does not see sent packets")
    } else if device.usage == Usage::Host {
        (Fit::Tc, "the host uses the interface: tc captures both directions and leaves its traffic alone")
    } else if device.usage == Usage::Software && settings.direction == Direction::Both {
        (Fit::Tc, "a software interface: tc captures both directions")
    } else if device.usage == Usage::Unknown && settings.direction == Direction::Both {
        let why = "tc captures both directions; if this is a mirror port, xdp, which sees received packets, is faster";
        (Fit::Tc, why)
    } else if let Tags::Unreported(_) = device.tags {
        let why = format!(
            "the device strips VLAN tags and its driver does not report them to XDP; to use xdp: {}",
            device.leave_tags()
        );
        return (Fit::Tc, why);
    } else if settings.direction == Direction::In {
        (Fit::Xdp, "it has no address and is not bridged: nothing of the host is disturbed")
    } else {
        (Fit::Xdp, "a mirror port: it has no address, is not bridged, and has sent next to nothing")
    };
    (fit, why.to_owned())
}

/// Returns the warning of `auto` if it continues without `source` because its programs were rejected, and the next
/// source is slower. An interface or driver that lacks what a source needs is mentioned as the reason instead, without
/// a warning.
fn slower(source: SourceKind, error: &Error) -> Option<InterfaceWarning> {
    let needs = match *error {
        Error::Privilege { needs, .. } => Some(needs),
        Error::Load { .. } | Error::FilterRefused { .. } => None,
        _ => return None,
    };
    Some(InterfaceWarning::Slower { failed: source, why: first_line(error), needs })
}

/// Returns the error without the kernel's messages.
fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Whether another source would fail in the same way.
fn is_final(error: &Error) -> bool {
    matches!(error, Error::Shape(_) | Error::InterfaceGone { .. } | Error::Corrupt { .. })
}

#[cfg(test)]
mod tests {
    use weir_sys::ethtool::Stripping;
    use weir_sys::link::Link;

    use super::*;

    /// A mirror port of igb, which strips tags and cannot report them.
    fn port(tags: Tags) -> Device {
        Device {
            link: Link { name: "enp1s0".into(), hardware: 1, mtu: 1500, ..Link::default() },
            driver: Some("igb".into()),
            rx_queues: 4,
            chosen: None,
            speed_bits: None,
            tags,
            peer: None,
            abilities: None,
            usage: Usage::Mirror,
            netmask: None,
            any: false,
            description: None,
            filter: None,
        }
    }

    #[test]
    fn auto_sees_both_directions_but_on_a_mirror_port() {
        let on = |usage, direction| {
            let settings = Settings { direction, ..Settings::default() };
            prefer(&Device { usage, ..port(Tags::InFrame) }, &settings).0
        };
        for usage in [Usage::Software, Usage::Unknown] {
            assert_eq!(on(usage, Direction::Both), Fit::Tc, "{usage:?}");
            assert_eq!(on(usage, Direction::In), Fit::Xdp, "{usage:?}: sent packets are not wanted");
        }
        assert_eq!(on(Usage::Host, Direction::In), Fit::Tc, "whose traffic is left alone");
        assert_eq!(on(Usage::Mirror, Direction::Both), Fit::Xdp);
    }

    #[test]
    fn auto_takes_no_source_that_loses_tags_and_says_what_keeps_them() {
        let both = Stripping { customer: true, service: true };
        let settings = Settings::default();
        for (stripping, remedy) in [
            (Stripping { service: false, ..both }, "ethtool -K enp1s0 rxvlan off"),
            (Stripping { customer: false, ..both }, "ethtool -K enp1s0 rx-vlan-stag-hw-parse off"),
            (both, "ethtool -K enp1s0 rxvlan off rx-vlan-stag-hw-parse off"),
        ] {
            let (fit, why) = prefer(&port(Tags::Unreported(stripping)), &settings);
            assert!(fit == Fit::Tc && why.ends_with(remedy), "{why}");
            assert_eq!(prefer(&port(Tags::Told(stripping)), &settings).0, Fit::Xdp);
        }
        assert_eq!(prefer(&port(Tags::InFrame), &settings).0, Fit::Xdp);
        // Only xdp can do that, with tags or without.
        let exclusive = Settings { mode: Mode::Exclusive, ..settings };
        assert_eq!(prefer(&port(Tags::Unreported(both)), &exclusive).0, Fit::Xdp);
    }
}
