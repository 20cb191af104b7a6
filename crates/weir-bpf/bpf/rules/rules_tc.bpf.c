/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Rules by tc, for packets in either direction between an interface and the network stack: each goes on, goes no further, goes
 * back, or leaves through another interface. The stack may have joined several packets to one, or not yet cut one into several
 * (GRO, GSO): that is one packet here.
 *
 * rules_ingress, rules_egress    attached by themselves
 * before_ingress, before_egress  in front of a capture's programs (before.h)
 *
 * Input:   struct __sk_buff as in tc.bpf.c.
 * Action:  TC_ACT_UNSPEC, TC_ACT_SHOT, or TC_ACT_REDIRECT.
 * Maps:    classify.h, rules.h; in front of a capture gate.h, ruling.h.
 * Kernel:  6.1. */
#include "packet/skb.h"
#include "rules/before.h"
#include "rules/fate_tc.h"

const volatile __u32 turned = 0; /* as in fate_tc.h */

/* Decides about a packet. */
static __always_inline __u64 ruled(struct __sk_buff *ctx, enum direction direction)
{
	bool tagged = ctx->vlan_present;
	__u64 tag = packed(tagged, ctx->vlan_proto, ctx->vlan_tci);
	return decide(ctx, direction, ctx->len + (tagged ? TAG : 0), tag);
}

static __always_inline int rule(struct __sk_buff *ctx, enum direction direction)
{
	if (is_decided(ctx, direction, turned))
		return TC_ACT_UNSPEC;
	__u64 decision = ruled(ctx, direction);
	return carry_out(ctx, direction, decision & FATE, decision >> 32, turned);
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

SEC("tc")
int before_ingress(struct __sk_buff *ctx)
{
	if (!is_decided(ctx, RECEIVED, turned))
		go_on(ctx, FIRST, turned, ruled(ctx, RECEIVED));
	return TC_ACT_UNSPEC;
}

SEC("tc")
int before_egress(struct __sk_buff *ctx)
{
	if (!is_decided(ctx, SENT, turned))
		go_on(ctx, SECOND, turned, ruled(ctx, SENT));
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual MIT/GPL";
