/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Rules by tc, for packets in either direction between an interface and the network stack: each goes on, goes no further, goes
 * back, or leaves through another interface. The stack may have joined several packets to one, or not yet cut one into several
 * (GRO, GSO): that is one packet here.
 *
 * A received packet goes back by leaving, and a sent one by being received. So it meets these programs again, and would go back
 * again; so would one that two interfaces reflect to each other. It is therefore marked, and a marked packet goes on.
 *
 * Input:   struct __sk_buff as in tc.bpf.c.
 * Action:  TC_ACT_UNSPEC, TC_ACT_SHOT, or TC_ACT_REDIRECT.
 * Maps:    classify.h, rules.h.
 * Kernel:  6.1. */
#include <linux/pkt_cls.h>
#include "packet/skb.h"
#include "rules/rules.h"

/* What `tc_index` is of packets that go back, or elsewhere: one number for those that leave, the next for those that are
 * received. Chosen anew each time that programs are loaded. */
const volatile __u32 turned = 0;

/* Goes on with a packet that another program of these has decided on. */
static __always_inline bool is_decided(struct __sk_buff *ctx, enum direction direction)
{
	__u32 mark = ctx->tc_index;
	if (likely(!mark) || (mark != turned && mark != turned + 1))
		return false;
	ctx->tc_index = 0;
	return mark == turned + (direction == RECEIVED);
}

static __noinline int bounce(struct __sk_buff *ctx, enum direction direction)
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

static __always_inline int rule(struct __sk_buff *ctx, enum direction direction)
{
	if (is_decided(ctx, direction))
		return TC_ACT_UNSPEC;
	bool tagged = ctx->vlan_present;
	__u64 tag = packed(tagged, ctx->vlan_proto, ctx->vlan_tci);
	__u64 fate = decide(ctx, direction, ctx->len + (tagged ? TAG : 0), tag);
	switch ((__u32)fate) {
	case FATE_BLOCK:
		return TC_ACT_SHOT;
	case FATE_BOUNCE:
		return bounce(ctx, direction);
	case FATE_REFLECT:
		ctx->tc_index = turned;
		return bpf_redirect(fate >> 32, 0);
	default:
		return TC_ACT_UNSPEC;
	}
}

SEC("tc")
int rules_ingress(struct __sk_buff *ctx)
{
	return rule(ctx, RECEIVED);
}

SEC("tc")
int rules_egress(struct __sk_buff *ctx)
{
	return rule(ctx, SENT);
}

char _license[] SEC("license") = "Dual MIT/GPL";
