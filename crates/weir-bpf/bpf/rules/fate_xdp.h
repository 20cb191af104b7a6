/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* What XDP does with a packet that has a fate by its rules. */
#pragma once
#include "packet/buffers.h"
#include "rules/swap.h"
#include "shared.h"

static __always_inline void turn(struct xdp_md *ctx)
{
	__u16 *half = (void *)(long)ctx->data;
	if ((void *)(half + ADDRESSES / sizeof(*half)) <= (void *)(long)ctx->data_end)
		swap_addresses(half);
}

/* Returns the action. */
static __always_inline int carry_out(struct xdp_md *ctx, __u32 fate, __u32 interface)
{
	switch (fate) {
	case FATE_BLOCK:
		return XDP_DROP;
	case FATE_BOUNCE:
		turn(ctx);
		return XDP_TX;
	case FATE_REFLECT:
		return bpf_redirect(interface, 0);
	default:
		return XDP_PASS;
	}
}
