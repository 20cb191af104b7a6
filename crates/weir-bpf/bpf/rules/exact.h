/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Exact rules: each is for one direction of a flow, in its VLAN, and in force until some time, which its packets may put off. They
 * are learned from packets, or inserted by the process. */
#pragma once
#include "rules/passage.h"

#define EEXIST 17 /* asm-generic/errno-base.h */

struct exact_rule {
	__u64 until; /* CLOCK_MONOTONIC, ns */
	__u64 idle;  /* each packet puts the end off until it was silent so long, ns; 0: none does */
	__u64 packets, bytes, last;
	__u32 rule; /* that has made it; NO_RULE: the process */
	__u32 fate; /* enum rule_fate */
	__u32 interface;
	__u32 capture;
};

/* Those that are over stay until the process removes them, or until there is something else to learn from the flow. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct key);
	__type(value, struct exact_rule);
	__uint(max_entries, 1);
} exact_rules SEC(".maps");

/* What becomes of a packet to learn from. */
enum taught { TAUGHT_NEW, TAUGHT_KNOWN, TAUGHT_NO_ROOM };

/* Makes an exact rule, unless there is one in force. */
static __noinline __u32 add_exact(const struct key *key, const struct exact_rule *rule, __u64 now)
{
	struct exact_rule *there = bpf_map_lookup_elem(&exact_rules, key);
	if (there && now < there->until)
		return TAUGHT_KNOWN;
	/* Another CPU may be faster: then its rule is in force. */
	long error = bpf_map_update_elem(&exact_rules, key, rule, there ? BPF_ANY : BPF_NOEXIST);
	if (!error)
		return TAUGHT_NEW;
	return error == -EEXIST ? TAUGHT_KNOWN : TAUGHT_NO_ROOM;
}

/* Returns the exact rule in force for a packet, or NULL. */
static __always_inline struct exact_rule *find_exact(const struct passage *passage)
{
	struct exact_rule *rule;
	if (!passage->is_flow)
		return NULL;
	rule = bpf_map_lookup_elem(&exact_rules, &passage->exact);
	return rule && passage->now < rule->until ? rule : NULL;
}

/* Puts off the end of a rule that ends when it is idle.
 *
 * An entry that was removed meanwhile may be another rule's by now, since the kernel uses it again at once: the end changes only
 * if it is still the one that was read. If two CPUs do so at a time, the second may change nothing, and the end is as long after
 * the first one's packet, which came at the same moment. */
static __always_inline void put_off(struct exact_rule *rule, __u64 now)
{
	__u64 until = rule->until, idle = rule->idle;
	if (idle)
		__sync_val_compare_and_swap(&rule->until, until, now + idle < now ? ~0ull : now + idle);
}

/* Counts a packet for it. Several CPUs may do so at a time. */
static __always_inline void count_exact(struct exact_rule *rule, __u64 length, __u64 now)
{
	__sync_fetch_and_add(&rule->packets, 1);
	__sync_fetch_and_add(&rule->bytes, length);
	rule->last = now;
}
