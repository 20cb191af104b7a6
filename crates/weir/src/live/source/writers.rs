//! Which contexts fill the queues of native XDP, depending on the driver.
//!
//! A driver passes the number of a receive queue to the program, but not every driver runs the program for only one
//! packet of that queue at a time. On one CPU each does, as the program runs with bottom halves disabled.

use crate::live::interface::Device;
use crate::live::settings::SourceChoice;
use crate::{Error, Unsupported};

/// What is known about native XDP on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Native {
    /// Each receive queue is polled by one NAPI context.
    Queues,
    /// Nothing is known. A CPU is a single writer in any case.
    Unknown,
    /// Several contexts may share a receive queue, for this reason.
    Processors(&'static str),
    /// Packets of other interfaces arrive too and cannot be told apart, for this reason.
    Nowhere(&'static str),
}

/// Drivers (by ethtool's name) that register each receive queue with its interface and number (`xdp_rxq_info_reg`) and
/// run the program only from the one NAPI context that polls the queue. igb, veth, virtio_net and vmxnet3 were tested
/// (`docs/kernels.md`); for the others this comes from their source code.
const ONE_A_QUEUE: [&str; 23] = [
    "atlantic",
    "bnxt_en",
    "ena",
    "fsl_enetc",
    "gve",
    "i40e",
    "iavf",
    "ice",
    "igb",
    "igc",
    "ixgbe",
    "ixgbevf",
    "mana",
    "mlx4_en",
    "mlx5_core",
    "mvneta",
    "mvpp2",
    "nfp",
    "qede",
    "st_gmac",
    "veth",
    "virtio_net",
    "vmxnet3",
];

/// Returns what is known about the driver of `device`.
pub(crate) fn native(device: &Device) -> Native {
    match device.driver.as_deref() {
        Some(driver) if ONE_A_QUEUE.contains(&driver) => Native::Queues,
        // bond_xdp_set (drivers/net/bonding/bond_main.c)
        Some("bonding") => Native::Processors("a bond runs the program on each of its ports"),
        // netvsc_vf_setxdp (drivers/net/hyperv/netvsc_bpf.c)
        Some("hv_netvsc") => {
            Native::Processors("the driver also runs the program on the interface's virtual function")
        }
        // tun_build_skb (drivers/net/tun.c)
        Some("tun") => Native::Processors("the program runs in the process that writes the packets"),
        // mtk_create_page_pool (drivers/net/ethernet/mediatek/mtk_eth_soc.c): receive queues belong to no interface.
        Some("mtk_soc_eth") => Native::Nowhere("the driver runs one program for all its interfaces"),
        _ => Native::Unknown,
    }
}

/// Fails if packets of other interfaces would arrive, too.
pub(crate) fn check_native(device: &Device) -> Result<(), Error> {
    let Native::Nowhere(why) = native(device) else { return Ok(()) };
    Err(Error::Unsupported {
        name: device.link.name.clone(),
        cause: Unsupported::NativeXdp { why },
        sources: &[SourceChoice::Tc],
        otherwise: "",
    })
}

/// Whether a packet may exceed the device's buffer although the program only accepts packets in one buffer.
pub(crate) fn beyond_buffers(device: &Device) -> bool {
    // A GSO packet written to the device arrives in one piece.
    device.driver.as_deref() == Some("tun")
}
