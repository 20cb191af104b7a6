/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* What becomes of a packet by its rules: it is counted for the first one that it meets, which has a fate for it. A program
 * defines CONTEXT and `load` first. The programs of both directions share the maps. */
#pragma once
#include "rules/act.h"
#include "rules/fields.h"

/* By condition: the rule whose condition it is. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} rules SEC(".maps");

/* Finds the first condition that a packet meets by its fields, or NO_CONDITION, and notes those before it for which a filter has to
 * be asked; the upper half of the answer is whether there are any.
 *
 * A separate function, to have a stack frame of its own: filters use most of their caller's. */
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

/* Returns the rule of a condition. */
static __always_inline __u32 rule_of(__u32 condition)
{
	if (condition == NO_CONDITION)
		return no_rule;
	__u32 *rule = bpf_map_lookup_elem(&rules, &condition);
	return rule ? *rule : no_rule;
}

/* Decides about a packet. `tag`: a stripped VLAN tag, as in classify.h. */
static __always_inline enum rule_fate decide(CONTEXT *ctx, enum direction direction, __u64 length, __u64 tag,
                                             __u32 *interface)
{
	__u64 fate = FATE_PASS;
	if (remembers())
		fate = recall(ctx, length, tag, direction);
	if (!(fate & IS_DECIDED))
		fate = act(ctx, rule_of(classify(ctx, length, tag)), length);
	*interface = fate >> 32;
	return (__u32)fate & ~IS_DECIDED;
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
