/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The VLAN tag that a device took off a packet, as its driver tells it. */
#pragma once
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern int bpf_xdp_metadata_rx_vlan_tag(const struct xdp_md *ctx, __be16 *vlan_proto, __u16 *vlan_tci) __ksym __weak;

struct tag {
	bool there;
	__be16 protocol;
	__u16 tci; /* host byte order */
};

static const struct tag untagged;

/* For programs that are bound to the device, as the call demands: they may not use tail calls. */
static __always_inline struct tag ask(struct xdp_md *ctx)
{
	struct tag tag = {};
	if (bpf_xdp_metadata_rx_vlan_tag(ctx, &tag.protocol, &tag.tci))
		return untagged;
	tag.there = true;
	return tag;
}
