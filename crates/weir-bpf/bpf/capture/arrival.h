/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* What the `af_xdp` source's program tells the process about a packet. */
#pragma once
#include <linux/types.h>

/* The metadata in front of a packet. The process reads it with weir-bpf/src/capture/af_xdp/arrival.rs. */
struct arrival {
	__u64 timestamp; /* nanoseconds since the Unix epoch; 0: none taken */
	__be16 protocol; /* of the VLAN tag that the device has stripped; 0: none */
	__be16 tci;
	__u32 mark;   /* ARRIVAL: written for this packet, not left over */
	__u32 length; /* of the packet, in all its buffers */
	__u32 unused;
};
