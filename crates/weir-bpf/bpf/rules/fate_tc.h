/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* What tc does with a packet that has a fate by its rules.
 *
 * A received packet goes back by leaving, and a sent one by being received. So it meets these programs again, and would go back
 * again; so would one that two interfaces reflect to each other. It is therefore marked, and a marked packet goes on.
 *
 * The mark is `tc_index`: one number (`turned`) for packets that leave, the next for those that are received. The process chooses it
 * anew each time that it loads programs. */
#pragma once
#include <linux/pkt_cls.h>
#include "packet/skb.h"
#include "rules/swap.h"
#include "shared.h"

/* Returns whether another program of these has decided on the packet. If so, takes the mark off. */
static __always_inline bool is_decided(struct __sk_buff *ctx, enum direction direction, __u32 turned)
{
	__u32 mark = ctx->tc_index;
	if (likely(!mark) || (mark != turned && mark != turned + 1))
		return false;
	ctx->tc_index = 0;
	return mark == turned + (direction == RECEIVED);
}

static __noinline int bounce(struct __sk_buff *ctx, enum direction direction, __u32 turned)
{
	__u16 addresses[ADDRESSES / sizeof(__u16)];
	if (!fetch_addresses(ctx, addresses))
		return TC_ACT_SHOT;
	swap_addresses(addresses);
	/* Not directly: a program that writes so copies each packet first of which there is a clone, as of all of TCP. */
	if (bpf_skb_store_bytes(ctx, 0, addresses, sizeof(addresses), 0))
		return TC_ACT_SHOT;
	ctx->tc_index = turned + (direction == SENT);
	return bpf_redirect(ctx->ifindex, direction == SENT ? BPF_F_INGRESS : 0);
}

/* Returns the action. */
static __always_inline int carry_out(struct __sk_buff *ctx, enum direction direction, __u32 fate, __u32 interface,
                                     __u32 turned)
{
	switch (fate) {
	case FATE_BLOCK:
		return TC_ACT_SHOT;
	case FATE_BOUNCE:
		return bounce(ctx, direction, turned);
	case FATE_REFLECT:
		ctx->tc_index = turned;
		return bpf_redirect(interface, 0);
	default:
		return TC_ACT_UNSPEC;
	}
}
