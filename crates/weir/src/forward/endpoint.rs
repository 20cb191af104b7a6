//! One of the two interfaces: what forwarding demands of it.

use std::path::Path;

use weir_sys::link::{Link, set_promiscuous};

use super::stats::SendCounters;
use crate::live::bpffs::make_directory;
use crate::live::error::Problem;
use crate::live::error::command;
use crate::live::interface::monitored::MonitoredInterface;
use crate::live::namespace::context::NamespaceContext;
use crate::live::request::Wanted;
use crate::live::source::writers::{self, Native};
use crate::live::source::xdp;
use crate::{Error, Setting};

/// One of the two interfaces.
pub(super) type Endpoint = MonitoredInterface;

/// Finds an interface. Its events have the number `id`.
pub(super) fn find(wanted: &Wanted, id: u32) -> Result<Endpoint, Error> {
    if wanted.is_any() {
        return Err(Error::setting(Setting::Endpoints, "cannot forward to or from `any`; name an interface"));
    }
    MonitoredInterface::find(wanted, id)
}

/// Opens the interface's namespace again.
pub(super) fn context(endpoint: &Endpoint) -> Result<NamespaceContext, Error> {
    NamespaceContext::open(endpoint.namespace.as_ref())
}

/// Makes the interface promiscuous until forwarding is ended, with or without this process. `mark` is a directory to be
/// created as a mark of that.
pub(super) fn make_promiscuous(endpoint: &Endpoint, mark: &Path) -> Result<(), Error> {
    if endpoint.began.is_promiscuous() {
        return Ok(());
    }
    make_directory(mark)?;
    let index = endpoint.index();
    endpoint.inside(|| set_promiscuous(index, true))?.map_err(|error| endpoint.not_promiscuous(error))
}

/// Returns the device's losses while sending.
pub(super) fn losses_sending(endpoint: &Endpoint) -> SendCounters {
    let grown = |of: fn(&Link) -> u64| of(&endpoint.now).saturating_sub(of(&endpoint.began));
    SendCounters { errors: grown(|link| link.tx_errors), dropped: grown(|link| link.tx_dropped) }
}

/// Rejects combinations that do not work, before anything is attached, with all that has to be changed. `tags`: checks that
/// packets from an interface keep their VLAN tags.
pub(super) fn check(
    endpoints: &[Endpoint; 2],
    both: bool,
    tags: impl Fn(&Endpoint) -> Result<(), Error>,
) -> Result<(), Error> {
    let [from, to] = endpoints;
    let (from_name, to_name) = (from.name(), to.name());
    if from.index() == to.index() && from.context.identity == to.context.identity {
        let why = format!("cannot forward `{from_name}` to itself: name two interfaces");
        return Err(Error::setting(Setting::Endpoints, why));
    }
    for endpoint in endpoints {
        if !endpoint.device.link.is_up() {
            return Err(Error::InterfaceDown { name: endpoint.name().to_owned() });
        }
    }
    let (here, there) = (from.device.link_type()?, to.device.link_type()?);
    if here != there {
        let what = format!(
            "`{from_name}` has link type {here}, `{to_name}` has {there}: cannot forward between different link types"
        );
        return Err(Error::Forward(Problem::new(what, "name two Ethernet interfaces")));
    }
    let directions: &[_] = if both { &[(from, to), (to, from)] } else { &[(from, to)] };
    let checks =
        directions.iter().flat_map(|(from, to)| [receives(from), tags(from), sends(to), fits(from, to)]);
    let faults = checks.filter_map(Result::err).collect();
    together(faults, directions.iter().flat_map(|(from, to)| doubts(from, to)))
}

/// Returns all that has to be changed in one error.
fn together(mut faults: Vec<Error>, doubts: impl Iterator<Item = Error>) -> Result<(), Error> {
    // If a driver does not do it, changing the rest is in vain.
    if let Some(place) = faults.iter().position(|fault| matches!(fault, Error::ForwardDriver { .. })) {
        return Err(faults.swap_remove(place));
    }
    // Whoever has to change the other end of a veth is told of the rest of it at once.
    if faults.iter().any(|fault| matches!(fault, Error::ForwardTags { .. })) {
        faults.extend(doubts);
    }
    match faults.len() {
        0 => Ok(()),
        1 => Err(faults.remove(0)),
        _ => Err(Error::ForwardFaults { faults }),
    }
}

/// Checks that a program can be attached to the interface.
fn receives(endpoint: &Endpoint) -> Result<(), Error> {
    if endpoint.device.link.xdp_program.is_some() {
        return Err(refused(xdp::busy(&endpoint.device)));
    }
    if let Native::Processors(why) | Native::Nowhere(why) = writers::native(&endpoint.device) {
        let what = format!(
            "`{}`: {why}; packets of one queue may therefore arrive on several CPUs at once",
            endpoint.name()
        );
        let remedy = "forward from a port below it, or use a bridge";
        return Err(Error::Forward(Problem::new(what, remedy)));
    }
    if endpoint.device.abilities.is_some_and(|can| !can.redirect()) {
        let driver = endpoint.device.driver.as_deref().unwrap_or("unknown");
        let what =
            format!("`{}`: its driver ({driver}) cannot redirect packets in native XDP", endpoint.name());
        return Err(Error::ForwardDriver(Problem::new(what, "a Linux bridge works with any interface")));
    }
    Ok(())
}

/// Converts an error so that its advice fits forwarding, which has no other way to attach.
pub(super) fn refused(error: Error) -> Error {
    let remedy = match &error {
        Error::Busy { holder: Some(holder), .. } => format!("end process {}", holder.pid),
        Error::Busy { name, .. } => {
            let (inside, device) = command::place(name);
            format!("to see whose it is: {inside}bpftool net show dev {device}")
        }
        Error::Unsupported { .. } => {
            return Error::ForwardDriver(Problem::of(error, "try a smaller MTU or fewer queues"));
        }
        _ => return error,
    };
    Error::Forward(Problem::of(error, remedy))
}

/// Checks that the interface can send redirected packets.
fn sends(endpoint: &Endpoint) -> Result<(), Error> {
    if endpoint.device.takes_redirected() != Some(false) {
        return Ok(());
    }
    let name = endpoint.name();
    if endpoint.device.driver.as_deref() == Some("veth") {
        let what = format!(
            "`{name}` accepts no redirected packets: veth requires GRO or an XDP program on its other end"
        );
        let remedy = format!("enable GRO there while it is up: {}", endpoint.device.peer_with("gro on"));
        return Err(Error::Forward(Problem::new(what, remedy)));
    }
    let driver = endpoint.device.driver.as_deref().unwrap_or("unknown");
    let what = format!("`{name}`: its driver ({driver}) accepts no redirected packets in this configuration");
    let (inside, device) = command::place(name);
    let remedy = format!(
        "some drivers require an XDP program on the interface, or a queue per CPU: {inside}ethtool -l \
         {device}"
    );
    Err(Error::Forward(Problem::new(what, remedy)))
}

/// Returns what is no reason to refuse: packets may not be accepted, or their checksums stay incomplete.
pub(super) fn doubts(from: &Endpoint, to: &Endpoint) -> impl Iterator<Item = Error> {
    let is_veth = |endpoint: &Endpoint| endpoint.device.driver.as_deref() == Some("veth");
    let redirected = (is_veth(to) && to.device.takes_redirected().is_none()).then(|| {
        Error::Forward(Problem::new(
            format!("this kernel does not report whether {} accepts redirected packets", to.name()),
            format!("to be sure that it does: {}", to.device.peer_with("gro on")),
        ))
    });
    let unfinished = from.device.peer.as_ref().is_none_or(|peer| peer.checksums);
    let checksums = (is_veth(from) && unfinished).then(|| {
        Error::Forward(Problem::new(
            format!(
                "the other end of {} leaves checksums to its device, so they stay incomplete",
                from.name()
            ),
            format!("to have them computed: {}", from.device.peer_with("tx off")),
        ))
    });
    redirected.into_iter().chain(checksums)
}

/// Checks that packets of one interface fit through the other.
fn fits(from: &Endpoint, to: &Endpoint) -> Result<(), Error> {
    let (here, there) = (from.device.link.mtu, to.device.link.mtu);
    if here <= there {
        return Ok(());
    }
    let what =
        format!("packets from `{}` (MTU {here}) are too long for `{}` (MTU {there})", from.name(), to.name());
    let (inside, device) = command::place(to.name());
    Err(Error::Forward(Problem::new(what, format!("{inside}ip link set {device} mtu {here}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_other_end_leaves_to_its_device_is_told_with_its_tags() {
        let fault = |what: &str| Error::Forward(Problem::new(what, format!("fix {what}")));
        let tags = || Error::ForwardTags { name: "v0".into(), keep: "ethtool -K v1".into(), filtered: false };
        let told = |faults, doubts: Vec<Error>| {
            together(faults, doubts.into_iter()).map_err(|error| error.hint().expect("a hint"))
        };
        let doubt = || vec![fault("checksums")];
        assert_eq!(told(vec![], doubt()), Ok(()));
        assert_eq!(told(vec![fault("mtu")], doubt()), Err("fix mtu".into()));
        let all = "to keep the tags: ethtool -K v1; or accept the loss of the tags; then: fix mtu; then: fix checksums";
        assert_eq!(told(vec![tags(), fault("mtu")], doubt()), Err(all.into()));
        let driver = Error::ForwardDriver(Problem::new("lo", "a bridge"));
        assert_eq!(told(vec![tags(), driver], doubt()), Err("a bridge".into()));
    }
}
