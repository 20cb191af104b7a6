/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Rules by XDP, for received packets: each passes, goes no further, goes back, or leaves through another interface.
 *
 * rules_xdp   attached by itself
 * before_xdp  in front of a capture's program (before.h)
 *
 * Input:   struct xdp_md, linear or with fragments.
 * Action:  the rule's; XDP_PASS without one.
 * Maps:    classify.h, rules.h; in front of a capture gate.h, ruling.h.
 * Kernel:  6.1. */
#define CONTEXT struct xdp_md
#include "packet/buffers.h"
#include "rules/before.h"
#include "rules/fate_xdp.h"

SEC("xdp")
int rules_xdp(struct xdp_md *ctx)
{
	__u64 decision = decide(ctx, RECEIVED, packet_length(ctx), 0);
	return carry_out(ctx, decision & FATE, decision >> 32);
}

SEC("xdp")
int before_xdp(struct xdp_md *ctx)
{
	go_on(ctx, FIRST, 0, decide(ctx, RECEIVED, packet_length(ctx), 0));
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
