//! Driver support for XDP and AF_XDP, from the kernel's generic netlink family `netdev` (Linux 6.3;
//! `Documentation/netlink/specs/netdev.yaml`).

use crate::CallError;
use crate::netlink::{DUMP, GENERIC, Request, ask, attribute, attributes, long, word};

/// The XDP abilities of one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpAbilities {
    /// Interface index.
    pub interface: u32,
    /// `NETDEV_XDP_ACT_*`.
    features: u64,
    /// `NETDEV_XDP_RX_METADATA_*`.
    metadata: u64,
    /// Buffers that a packet may span with a zero-copy AF_XDP socket.
    pub zero_copy_buffers: u32,
}

impl XdpAbilities {
    /// Returns whether the driver runs XDP programs.
    pub fn native(&self) -> bool {
        self.features & 1 != 0
    }

    /// Returns whether programs may redirect packets, so that AF_XDP works.
    pub fn redirect(&self) -> bool {
        self.features & 1 << 1 != 0
    }

    /// Returns whether packets can be redirected to the interface.
    pub fn redirect_target(&self) -> bool {
        self.features & 1 << 2 != 0
    }

    /// Returns whether AF_XDP works without copying.
    pub fn zero_copy(&self) -> bool {
        self.features & 1 << 3 != 0
    }

    /// Returns whether programs can run on the card itself.
    pub fn offload(&self) -> bool {
        self.features & 1 << 4 != 0
    }

    /// Returns whether packets may span several buffers, for an MTU above a page.
    pub fn several_buffers(&self) -> bool {
        self.features & 1 << 5 != 0
    }

    /// Returns whether programs may read the card's timestamp.
    pub fn time_stamp(&self) -> bool {
        self.metadata & 1 != 0
    }

    /// Returns whether programs may read the card's hash.
    pub fn hash(&self) -> bool {
        self.metadata & 1 << 1 != 0
    }

    /// Returns whether programs may read the VLAN tag that the card has stripped.
    pub fn vlan_tag(&self) -> bool {
        self.metadata & 1 << 2 != 0
    }
}

/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_*` (linux/genetlink.h).
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// `struct genlmsghdr`: command, version, two reserved bytes.
const HEADER: usize = 4;

const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_A_DEV_XDP_ZC_MAX_SEGS: u16 = 4;
const NETDEV_A_DEV_XDP_RX_METADATA_FEATURES: u16 = 5;

/// Returns the abilities of all interfaces in this thread's network namespace. `None`: the kernel is too old for this
/// family.
///
/// # Errors
///
/// The error of the netlink socket.
pub fn xdp_abilities() -> Result<Option<Vec<XdpAbilities>>, CallError> {
    let failed = |error| CallError::new("query XDP features (generic netlink, family netdev)", error);
    let request = Request::new(GENL_ID_CTRL, 0, &[CTRL_CMD_GETFAMILY, 1, 0, 0])
        .attribute(CTRL_ATTR_FAMILY_NAME, b"netdev\0");
    let mut family = None;
    let found = ask(GENERIC, &request, GENL_ID_CTRL, |message| {
        let id = attribute(message.get(HEADER..).unwrap_or_default(), CTRL_ATTR_FAMILY_ID);
        family = id.and_then(|id| Some(u16::from_ne_bytes(id.get(..2)?.try_into().ok()?)));
    });
    match found {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        other => other.map_err(failed)?,
    }
    let Some(family) = family else { return Ok(None) };
    let mut abilities = Vec::new();
    let request = Request::new(family, DUMP, &[NETDEV_CMD_DEV_GET, 1, 0, 0]);
    ask(GENERIC, &request, family, |message| {
        abilities.push(parse(message.get(HEADER..).unwrap_or_default()))
    })
    .map_err(failed)?;
    Ok(Some(abilities))
}

fn parse(message: &[u8]) -> XdpAbilities {
    let mut abilities = XdpAbilities::default();
    for (kind, value) in attributes(message) {
        match kind {
            NETDEV_A_DEV_IFINDEX => abilities.interface = word(value),
            NETDEV_A_DEV_XDP_FEATURES => abilities.features = long(value),
            NETDEV_A_DEV_XDP_ZC_MAX_SEGS => abilities.zero_copy_buffers = word(value),
            NETDEV_A_DEV_XDP_RX_METADATA_FEATURES => abilities.metadata = long(value),
            _ => {}
        }
    }
    abilities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_no_xdp_of_its_own() {
        let Some(all) = xdp_abilities().expect("netlink answers") else { return };
        let lo =
            all.iter().find(|abilities| abilities.interface == 1).expect("each namespace has a loopback");
        assert!(!lo.native() && !lo.zero_copy(), "{lo:?}");
    }
}
