/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Statistics by tc: counts packets between an interface and the network stack, and lets them pass.
 *
 * Input:   struct __sk_buff as in tc.bpf.c.
 * Action:  TC_ACT_UNSPEC.
 * Maps:    stat.h.
 * Kernel:  6.1. */
#include <linux/pkt_cls.h>
#include "packet/skb.h"
#include "stat/stat.h"

static __always_inline int count_buffer(struct __sk_buff *ctx, __u32 direction)
{
	bool tagged = ctx->vlan_present;
	__u64 tag = packed(tagged, ctx->vlan_proto, ctx->vlan_tci);
	count(ctx, direction, ctx->len + (tagged ? TAG : 0), tag);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int stat_ingress(struct __sk_buff *ctx)
{
	return count_buffer(ctx, RECEIVED);
}

SEC("tc")
int stat_egress(struct __sk_buff *ctx)
{
	return count_buffer(ctx, SENT);
}

char _license[] SEC("license") = "Dual MIT/GPL";
