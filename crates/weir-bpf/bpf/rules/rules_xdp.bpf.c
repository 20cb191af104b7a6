/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Rules by XDP: each packet is counted for the first rule that it meets, and passes, goes no further, or goes back.
 *
 * Input:   struct xdp_md, linear or with fragments.
 * Action:  the rule's; XDP_PASS without one.
 * Maps:    classify.h; rules, rule_counters.
 * Kernel:  6.1. */
#define CONTEXT struct xdp_md
#include "packet/buffers.h"
#include "rules/fields.h"

/* By condition: the rule whose condition it is. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} rules SEC(".maps");

struct rule_counter {
	__u64 packets, bytes;
	__u64 last; /* CLOCK_MONOTONIC as of the last tick, ns */
	__u64 action;
};

/* By rule; the last is for packets without a rule. Each CPU has its own, which it alone writes. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct rule_counter);
	__uint(max_entries, 1);
} rule_counters SEC(".maps");

const volatile __u32 no_rule = 0;

/* Swaps the MAC addresses, so that a switch takes the packet back to where it came from. */
static __always_inline void turn(struct xdp_md *ctx)
{
	__u16 *half = (void *)(long)ctx->data, one;
	if ((void *)(half + ADDRESSES / sizeof(*half)) > (void *)(long)ctx->data_end)
		return;
#pragma clang loop unroll(full)
	for (int at = 0; at < 3; at++) {
		one = half[at];
		half[at] = half[at + 3];
		half[at + 3] = one;
	}
}

SEC("xdp")
int rules_xdp(struct xdp_md *ctx)
{
	struct fields fields = {};
	__u32 rule = no_rule;
	__u64 length = packet_length(ctx);
	find_fields(ctx, &fields);
	__u32 condition = classify(ctx, &fields, length, 0);
	if (condition != NO_CONDITION) {
		__u32 *number = bpf_map_lookup_elem(&rules, &condition);
		if (number)
			rule = *number;
	}
	struct rule_counter *counter = bpf_map_lookup_elem(&rule_counters, &rule);
	if (!counter)
		return XDP_ABORTED;
	counter->packets++;
	counter->bytes += length;
	counter->last = bpf_ktime_get_coarse_ns();
	__u64 action = counter->action;
	if (action == XDP_TX)
		turn(ctx);
	return action;
}

char _license[] SEC("license") = "Dual MIT/GPL";
