//! Whether rules would cut what a host cannot do without: the login that somebody works in, or its neighbours.

use std::net::IpAddr;

use weir::Direction;
use weir_sys::address;
use weir_sys::cut_off::{self, Login};
use weir_sys::link;

use super::frames;
use super::live::{Frame, LiveRules};
use crate::failure::Failure;
use crate::interfaces::Chosen;
use crate::style;

/// The help of `--force`.
pub(crate) const FORCE: &str = "Allow rules that cut off the SSH connection of this shell";

/// Returns the frames of this direction.
fn of(direction: Direction, frames: Vec<Frame>) -> Vec<Frame> {
    let is_met = |frame: &Frame| match direction {
        Direction::In => !frame.sent,
        Direction::Out => frame.sent,
        Direction::Both => true,
    };
    frames.into_iter().filter(is_met).collect()
}

/// Returns the login by SSH that this process belongs to, if it goes through this interface.
pub(crate) fn login(chosen: &Chosen) -> Result<Option<Login>, Failure> {
    chosen.inside(|| cut_off::login_through(chosen.name()))?.map_err(Failure::new)
}

/// Refuses rules that would cut off the login by SSH that this process belongs to.
pub(crate) fn check_login(rules: &LiveRules, chosen: &Chosen, direction: Direction) -> Result<(), Failure> {
    let Some(login) = login(chosen)? else { return Ok(()) };
    let Some(rule) = rules.stopping(&of(direction, frames::of_login(&login))) else { return Ok(()) };
    let Login { client, server } = login;
    let what = format!(
        "cannot put these rules in force on {}: {rule} would cut off this shell, a connection from {client} to {server}",
        chosen.name()
    );
    let hint = format!(
        "let it pass by a rule before: `shell: host {} and tcp port {} -> pass`; --force overrides this",
        client.ip(),
        server.port()
    );
    Err(Failure::usage(style::visible(&what)).hint(hint))
}

/// Warns of rules by which the interface would not find its neighbours.
pub(crate) fn warn_of_neighbours(
    rules: &LiveRules,
    chosen: &Chosen,
    direction: Direction,
) -> Result<(), Failure> {
    let look = || {
        let links = link::links()?;
        let link = links.iter().find(|link| link.name == chosen.name() && !link.is_loopback());
        let index = link.map(|link| link.index);
        let addresses = address::addresses()?.into_iter().filter(|one| Some(one.interface) == index);
        Ok(addresses.map(|one| one.ip).collect())
    };
    let addresses: Result<Vec<IpAddr>, weir::CallError> = chosen.inside(look)?;
    let addresses = addresses.map_err(Failure::new)?;
    let first = |is: fn(&IpAddr) -> bool| addresses.iter().copied().find(is);
    let kinds = [
        (first(IpAddr::is_ipv4), "ARP", "arp"),
        (first(IpAddr::is_ipv6), "IPv6 neighbour discovery", "icmp6"),
    ];
    for (own, what, expression) in kinds {
        let frames = own.map(|own| of(direction, frames::of_neighbours(own))).unwrap_or_default();
        if let Some(rule) = rules.stopping(&frames) {
            let warning = style::stderr().yellow("warning");
            style::say(format_args!(
                "{warning}: {rule} blocks {what}, by which {} finds its neighbours; to let it pass, put before it: {expression} -> pass",
                chosen.name()
            ));
        }
    }
    Ok(())
}
