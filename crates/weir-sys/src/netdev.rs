//! What a driver can do with XDP and AF_XDP: the kernel's generic netlink family `netdev` (Linux 6.3; its
//! `Documentation/netlink/specs/netdev.yaml`).

use crate::CallError;
use crate::netlink::{DUMP, GENERIC, Request, ask, attribute, attributes, long, word};

/// Abilities of one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpAbilities {
    /// Interface index.
    pub interface: u32,
    /// `NETDEV_XDP_ACT_*`.
    features: u64,
    /// `NETDEV_XDP_RX_METADATA_*`.
    metadata: u64,
    /// Buffers that a packet of a zero-copy AF_XDP socket may have.
    pub zero_copy_buffers: u32,
}

impl XdpAbilities {
    /// The driver runs XDP programs.
    pub fn native(&self) -> bool {
        self.features & 1 != 0
    }

    /// Programs may redirect packets, so AF_XDP works.
    pub fn redirect(&self) -> bool {
        self.features & 1 << 1 != 0
    }

    /// Packets can be redirected to it.
    pub fn redirect_target(&self) -> bool {
        self.features & 1 << 2 != 0
    }

    /// AF_XDP without a copy.
    pub fn zero_copy(&self) -> bool {
        self.features & 1 << 3 != 0
    }

    /// Programs run on the card itself.
    pub fn offload(&self) -> bool {
        self.features & 1 << 4 != 0
    }

    /// Packets may come in several buffers: an MTU above a page.
    pub fn several_buffers(&self) -> bool {
        self.features & 1 << 5 != 0
    }

    /// Programs may ask for the card's time stamp.
    pub fn time_stamp(&self) -> bool {
        self.metadata & 1 != 0
    }

    /// Programs may ask for the card's hash.
    pub fn hash(&self) -> bool {
        self.metadata & 1 << 1 != 0
    }

    /// Programs may ask for the VLAN tag that the card has stripped.
    pub fn vlan_tag(&self) -> bool {
        self.metadata & 1 << 2 != 0
    }
}

/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_*` (linux/genetlink.h).
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// `struct genlmsghdr`: command, version, two bytes reserved.
const HEADER: usize = 4;

const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_A_DEV_XDP_ZC_MAX_SEGS: u16 = 4;
const NETDEV_A_DEV_XDP_RX_METADATA_FEATURES: u16 = 5;

/// The abilities of all interfaces of this thread's network namespace. `None`: the kernel does not tell, being older
/// than this family.
///
/// # Errors
///
/// What the netlink socket says.
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
