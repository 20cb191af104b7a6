//! Who may fill the queues of native XDP: what is known of drivers.
//!
//! A driver runs the program with the number of a receive queue, but not each runs it for one packet of that queue at a time.
//! On a processor it always does: the program runs with bottom halves disabled.

use crate::interface::Device;

/// What is certain of native XDP on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Native {
    /// One NAPI context has a receive queue.
    Queues,
    /// Nothing: a processor is one writer in any case.
    Unknown,
    /// Several have, for this reason.
    Processors(&'static str),
    /// Packets of other interfaces come as well, and cannot be told apart.
    Nowhere(&'static str),
}

/// Drivers (by ethtool's name) that register each receive queue with its interface and number (`xdp_rxq_info_reg`) and poll it
/// from one NAPI context, which is all that runs the program. igb, veth, virtio_net and vmxnet3 were tried
/// (`docs/kernels.md`); the others are known by their sources alone.
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

/// What is known of the driver of `device`.
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
        Some("tun") => Native::Processors("the program runs in the process that writes"),
        // mtk_create_page_pool (drivers/net/ethernet/mediatek/mtk_eth_soc.c): receive queues are those of no interface.
        Some("mtk_soc_eth") => Native::Nowhere("the driver runs one program for all its interfaces"),
        _ => Native::Unknown,
    }
}

/// Whether a packet may be longer than a buffer of the device, though the program takes packets in one buffer alone.
pub(crate) fn beyond_buffers(device: &Device) -> bool {
    // What was written to it as a super-frame is met in one piece.
    device.driver.as_deref() == Some("tun")
}
