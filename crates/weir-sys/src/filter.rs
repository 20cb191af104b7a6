//! Filters of the `clsact` and `ingress` queueing disciplines (rtnetlink(7), tc(8)): other users of the packets there.

use crate::CallError;
use crate::netlink::{DUMP, ROUTE, Request, ask, attribute, attributes, text, word};

const RTM_NEWTFILTER: u16 = 44;
const RTM_GETTFILTER: u16 = 46;
/// `struct tcmsg`: family, padding, index, handle, parent, info.
const HEADER: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_ID: u16 = 11;
/// `TC_H_CLSACT` with `TC_H_MIN_INGRESS` and `TC_H_MIN_EGRESS`.
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;

/// The direction of packets at a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Packets that the interface receives.
    Ingress,
    /// Packets that the host sends through it.
    Egress,
}

/// One filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// `bpf`, `flower`, `matchall`, ... .
    pub kind: String,
    /// Priority; lower ones run first.
    pub priority: u16,
    /// Name of a `bpf` filter.
    pub name: Option<String>,
    /// Program ID of a `bpf` filter.
    pub program: Option<u32>,
}

/// Returns the filters on one side of the interface with index `interface`, in order. An interface without such a
/// queueing discipline has none.
///
/// # Errors
///
/// The error of the netlink socket.
pub fn filters(interface: u32, side: Side) -> Result<Vec<Filter>, CallError> {
    let mut header = [0; HEADER];
    header[4..8].copy_from_slice(&interface.to_ne_bytes());
    let parent = match side {
        Side::Ingress => INGRESS,
        Side::Egress => EGRESS,
    };
    header[12..16].copy_from_slice(&parent.to_ne_bytes());
    let request = Request::new(RTM_GETTFILTER, DUMP, &header);
    let mut filters = Vec::new();
    ask(ROUTE, &request, RTM_NEWTFILTER, |message| filters.extend(parse(message, parent))).map_err(
        |error| CallError::new(format!("list filters of interface {interface} (rtnetlink)"), error),
    )?;
    Ok(filters)
}

/// Parses a filter; `None` for an entry that is only a filter's chain or protocol.
fn parse(message: &[u8], parent: u32) -> Option<Filter> {
    let (header, rest) = message.split_at_checked(HEADER)?;
    let (handle, its_parent, info) = (word(&header[8..]), word(&header[12..]), word(&header[16..]));
    // A kernel without clsact lists the filters of the root.
    if handle == 0 || its_parent != parent {
        return None;
    }
    let options = attribute(rest, TCA_OPTIONS).unwrap_or_default();
    let kind = attribute(rest, TCA_KIND).map(text)?;
    // u32 lists its hash tables, too.
    if kind == "u32" && handle << 12 == 0 {
        return None;
    }
    let bpf = |wanted| attributes(options).find(|&(found, _)| found == wanted).filter(|_| kind == "bpf");
    Some(Filter {
        name: bpf(TCA_BPF_NAME).map(|(_, value)| text(value)),
        program: bpf(TCA_BPF_ID).map(|(_, value)| word(value)),
        priority: u16::try_from(info >> 16).unwrap_or(u16::MAX),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_of_most_hosts_has_none_and_that_is_no_error() {
        for side in [Side::Ingress, Side::Egress] {
            let filters = filters(1, side).expect("netlink answers");
            assert!(filters.iter().all(|filter| !filter.kind.is_empty()), "{filters:?}");
        }
    }

    #[test]
    fn cut_off_messages_are_none() {
        assert_eq!(parse(&[0; HEADER - 1], INGRESS), None);
        assert_eq!(parse(&[0; HEADER], INGRESS), None);
    }
}
