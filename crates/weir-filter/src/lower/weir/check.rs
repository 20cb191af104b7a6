//! Rejects terms that make no sense for a link type, and suggests others.

use std::ops::Range;

use super::link::Radio;
use super::place::Level;
use super::terms::accessors;
use crate::ast::{Ast, Direction, Primitive, Protocol, Term};
use crate::{Beside, Error, Options};

/// Returns an error if `term` does not apply to packets at `level`.
pub(super) fn check(ast: &Ast, term: &Term, level: &Level, options: &Options<'_>) -> Result<(), Error> {
    let refused = |message: &str| Err(Error::new(message, term.span.clone()));
    let addressed = level.link.has_addresses();
    let wlan = level.link.wlan.is_some();
    match &term.primitive {
        Primitive::Mac { direction, .. } | Primitive::MacIn { direction, .. } => {
            if !addressed {
                return refused("frames of this link type have no source and destination MAC addresses");
            }
            if wlan { Ok(()) } else { directed(*direction, &term.span) }
        }
        Primitive::Gateway { .. } if !addressed => {
            refused("`gateway` requires Ethernet addresses, which frames of this link type do not have")
        }
        Primitive::Broadcast(None | Some(Protocol::Link))
        | Primitive::Multicast(None | Some(Protocol::Link))
            if !addressed =>
        {
            refused("frames of this link type have no Ethernet addresses")
        }
        Primitive::Broadcast(None | Some(Protocol::Link | Protocol::Ip)) => {
            let of_ip = matches!(term.primitive, Primitive::Broadcast(Some(_)));
            match (of_ip, &term.primitive, options.netmask) {
                (true, Primitive::Broadcast(Some(Protocol::Ip)), None) => {
                    Err(Error::new("the network mask is unknown", term.span.clone()).help(
                        "live captures use the mask of the interface's IPv4 address; set it with --netmask \
                         255.255.255.0, or test for one address with `dst host 10.0.0.255`",
                    ))
                }
                _ => Ok(()),
            }
        }
        Primitive::Broadcast(_) => refused("only `ether` and `ip` have broadcast addresses"),
        Primitive::Multicast(protocol) => match protocol {
            None | Some(Protocol::Link | Protocol::Ip | Protocol::Ip6) => Ok(()),
            Some(_) => refused("only `ether`, `ip` and `ip6` have multicast addresses"),
        },
        Primitive::Host { protocol, direction, .. } | Primitive::HostIn { protocol, direction, .. } => {
            if !matches!(protocol, None | Some(Protocol::Ip | Protocol::Ip6 | Protocol::Arp | Protocol::Rarp))
            {
                return refused("only `ip`, `ip6`, `arp` and `rarp` have these addresses");
            }
            directed(*direction, &term.span)
        }
        Primitive::Port { direction, .. }
        | Primitive::PortIn { direction, .. }
        | Primitive::DecNetHost { direction, .. } => directed(*direction, &term.span),
        Primitive::Vlan(_) | Primitive::VlanIn { .. } if !level.link.has_tags() => {
            refused("frames of this link type have no VLAN tags")
        }
        Primitive::Proto { protocol, .. } => match protocol {
            None | Some(Protocol::Link | Protocol::Ip | Protocol::Ip6 | Protocol::Iso | Protocol::Isis) => {
                Ok(())
            }
            Some(_) => refused("only `ether`, `ip`, `ip6`, `iso` and `isis` have protocol numbers"),
        },
        Primitive::ProtoChain { protocol: Some(protocol), .. }
            if !matches!(protocol, Protocol::Ip | Protocol::Ip6) =>
        {
            refused("only `ip` and `ip6` have header chains")
        }
        Primitive::Protocol(Protocol::Link | Protocol::Radio) => {
            refused("the link-layer type cannot be tested: all packets of a file or interface share it")
        }
        Primitive::Inbound | Primitive::Outbound
            if options.metadata == Beside::Nothing && !matches!(options.link_type, 113 | 276) =>
        {
            refused("the direction of packets is unknown here")
        }
        Primitive::IfIndex(_) if options.metadata != Beside::All && options.link_type != 276 => {
            refused("the interface of packets is unknown here")
        }
        Primitive::Llc(_) if !level.link.has_tags() => refused("frames of this link type have no LLC header"),
        Primitive::ArcNet { .. } => refused("frames of this link type have no ARCNET addresses"),
        Primitive::WlanType { .. } | Primitive::WlanDirection(_) if !wlan => {
            refused("frames of this link type are not 802.11 frames")
        }
        Primitive::Atm(_) => refused("frames of this link type are not ATM cells"),
        Primitive::Mtp(_) => refused("frames of this link type are not SS7 messages"),
        Primitive::Relation { left, right, .. } => {
            let unknown = accessors(ast, [*left, *right]).into_iter().find(|(protocol, _)| match protocol {
                Protocol::Radio => matches!(level.link.wlan, None | Some(Radio::None)),
                Protocol::Ah => true,
                _ => false,
            });
            match unknown {
                Some((Protocol::Radio, _)) => refused("packets of this link type have no radio header"),
                Some(_) => refused("`ah[...]` is not supported: AH headers are only skipped"),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Rejects directions that only 802.11 has.
fn directed(direction: Direction, span: &Range<usize>) -> Result<(), Error> {
    match direction {
        Direction::Address(_) | Direction::Receiver | Direction::Transmitter => {
            Err(Error::new("only 802.11 frames have more than two addresses", span.clone()))
        }
        _ => Ok(()),
    }
}

/// Returns whether `ast` uses only words of pcap-filter(7), so that the dialect `pcap` understands it.
pub(super) fn is_of_pcap(ast: &Ast) -> bool {
    use crate::ast::Expr;
    let inner = ast.nodes.iter().any(|node| matches!(node, Expr::Inner(_)));
    let own = ast.terms.iter().any(|term| {
        matches!(
            term.primitive,
            Primitive::Tunnel
                | Primitive::HostIn { .. }
                | Primitive::MacIn { .. }
                | Primitive::PortIn { .. }
                | Primitive::VlanIn { .. }
        )
    });
    !inner && !own
}
