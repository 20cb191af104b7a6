/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Rules by XDP, for received packets: each passes, goes no further, goes back, or leaves through another interface.
 *
 * Input:   struct xdp_md, linear or with fragments.
 * Action:  the rule's; XDP_PASS without one.
 * Maps:    classify.h, rules.h.
 * Kernel:  6.1. */
#define CONTEXT struct xdp_md
#include "packet/buffers.h"
#include "rules/rules.h"

static __always_inline void turn(struct xdp_md *ctx)
{
	__u16 *half = (void *)(long)ctx->data;
	if ((void *)(half + ADDRESSES / sizeof(*half)) <= (void *)(long)ctx->data_end)
		swap_addresses(half);
}

SEC("xdp")
int rules_xdp(struct xdp_md *ctx)
{
	__u64 fate = decide(ctx, RECEIVED, packet_length(ctx), 0);
	switch ((__u32)fate) {
	case FATE_BLOCK:
		return XDP_DROP;
	case FATE_BOUNCE:
		turn(ctx);
		return XDP_TX;
	case FATE_REFLECT:
		return bpf_redirect(fate >> 32, 0);
	default:
		return XDP_PASS;
	}
}

char _license[] SEC("license") = "Dual MIT/GPL";
