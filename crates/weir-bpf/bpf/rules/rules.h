/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* What becomes of a packet by its rules: it is counted for the first one that it meets, which has a fate for it. A program
 * defines CONTEXT and `load` first. The programs of both directions share the maps. */
#pragma once
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
	__u32 fate; /* enum rule_fate */
	__u32 interface;
};

/* By rule; the last is for packets without a rule. Each CPU has its own, which it alone writes: bottom halves are disabled while
 * a program runs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct rule_counter);
	__uint(max_entries, 1);
} rule_counters SEC(".maps");

const volatile __u32 no_rule = 0;

/* Finds the first condition that a packet meets by its fields, or NO_CONDITION, and notes those before it for which a filter has to
 * be asked; the upper half of the answer is whether there are any.
 *
 * This and `settle` are functions to have stack frames of their own: filters use most of their caller's stack. */
static __noinline __u64 search(CONTEXT *ctx, __u64 tag)
{
	__u32 zero = 0;
	struct fields fields = {};
	struct vectors vectors = {};
	const __u8 *block = bpf_map_lookup_elem(&tables, &zero);
	struct candidates *notes = NULL;
	bool has_notes = false;
	find_fields(ctx, tag, &fields);
	if (!block || !find_vectors(block, &fields, &vectors))
		return NO_CONDITION;
	if (shape.rest) {
		notes = bpf_map_lookup_elem(&candidates, &zero);
		if (!notes)
			return NO_CONDITION;
	}
	__u32 condition = find_condition(block, &vectors, notes, &has_notes);
	if (!shape.rest)
		return condition;
	notes->answer = condition | (__u64)has_notes << 32;
	return *(volatile __u64 *)&notes->answer;
}

/* Returns the first condition that a packet meets, by all that it asks for; NO_CONDITION: none. */
static __always_inline __u32 classify(CONTEXT *ctx, __u64 length, __u64 tag)
{
	__u64 found = search(ctx, tag);
	__u32 zero = 0, condition = found;
	if (shape.rest && found >> 32) {
		struct candidates *notes = bpf_map_lookup_elem(&candidates, &zero);
		if (notes) {
			/* Without this, clang would leave out an argument that is always 0. */
			asm volatile("" : "+r"(tag));
			notes->answer = place_first(ctx, notes->words, length, tag);
			forget_notes(notes);
			__u32 earlier = *(volatile __u64 *)&notes->answer;
			if (earlier != NO_CONDITION)
				condition = earlier;
		}
	}
	return condition < shape.conditions ? condition : NO_CONDITION;
}

/* Counts a packet for the rule of its condition, and returns its fate; the upper half is the interface that it may name. */
static __noinline __u64 settle(__u32 condition, __u64 length)
{
	__u32 rule = no_rule;
	if (condition != NO_CONDITION) {
		__u32 *number = bpf_map_lookup_elem(&rules, &condition);
		if (number)
			rule = *number;
	}
	struct rule_counter *counter = bpf_map_lookup_elem(&rule_counters, &rule);
	if (!counter)
		return FATE_PASS;
	counter->packets++;
	counter->bytes += length;
	counter->last = bpf_ktime_get_coarse_ns();
	return counter->fate | (__u64)counter->interface << 32;
}

/* Decides about a packet. `tag`: a stripped VLAN tag, as in classify.h. */
static __always_inline enum rule_fate decide(CONTEXT *ctx, __u64 length, __u64 tag, __u32 *interface)
{
	__u64 settled = settle(classify(ctx, length, tag), length);
	*interface = settled >> 32;
	return (__u32)settled;
}

/* Swaps the MAC addresses, so that a switch takes the packet back to where it came from. */
static __always_inline void swap_addresses(__u16 *half)
{
#pragma clang loop unroll(full)
	for (int at = 0; at < 3; at++) {
		__u16 one = half[at];
		half[at] = half[at + 3];
		half[at + 3] = one;
	}
}
