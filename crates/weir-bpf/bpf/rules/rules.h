/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* What becomes of a packet by its rules: it is counted for the first one that it meets, which has a fate for it. A program
 * defines CONTEXT and `load` first. The programs of both directions share the maps. */
#pragma once
#include "rules/continue.h"
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
 * Filters use most of their caller's stack. So what is done before and after them is in functions that have stack frames of their
 * own, and `decide` keeps hardly more than it has registers for. */
static __always_inline __u64 search_by(CONTEXT *ctx, __u64 tag, enum direction direction, bool has_tags)
{
	struct fields fields = {};
	__u32 of_tags[MOST_RULE_TAGS];
	struct vectors vectors = {.tags = of_tags, .has_tags = has_tags};
	__u64 tags = 0;
	const __u8 *block = bpf_map_lookup_elem(&tables, &only);
	struct candidates *notes = NULL;
	bool has_notes = false;
	find_fields(ctx, tag, &fields, has_tags, &tags);
	if (!block || !find_vectors(block, &fields, direction, tags, &vectors))
		return NO_CONDITION;
	if (shape.rest) {
		notes = bpf_map_lookup_elem(&candidates, &only);
		if (!notes)
			return NO_CONDITION;
	}
	__u32 condition = find_condition(block, &vectors, notes, &has_notes);
	if (!shape.rest)
		return condition;
	notes->found = condition | (__u64)has_notes << 32;
	/* The verifier does not know what is in a map, and so sees one answer instead of many. */
	return *(volatile __u64 *)&notes->found;
}

/* A packet takes no time for tags where no condition is about them: the verifier removes the other function. */
static __noinline __u64 search(CONTEXT *ctx, __u64 tag, enum direction direction)
{
	return search_by(ctx, tag, direction, false);
}

static __noinline __u64 search_with_tags(CONTEXT *ctx, __u64 tag, enum direction direction)
{
	return search_by(ctx, tag, direction, true);
}

/* Returns the first condition that a packet meets by filters and fields, and forgets what was noted. */
static __noinline __u32 first_of(struct candidates *notes, __u32 by_filters)
{
	notes->answer = by_filters;
	forget_notes(notes);
	__u32 answer = *(volatile __u32 *)&notes->answer;
	return answer != NO_CONDITION ? answer : notes->found;
}

/* Returns the first condition that a packet meets, by all that it asks for; NO_CONDITION: none. */
static __always_inline __u32 classify(CONTEXT *ctx, enum direction direction, __u64 length, __u64 tag)
{
	__u64 found = shape.tags.used ? search_with_tags(ctx, tag, direction) : search(ctx, tag, direction);
	if (shape.rest && found >> 32) {
		struct candidates *notes = bpf_map_lookup_elem(&candidates, &only);
		if (notes)
			return first_of(notes, place_first(ctx, notes->words, length, tag));
	}
	return found;
}

/* Returns the rule of a condition. */
static __noinline __u32 rule_of(__u32 condition)
{
	if (condition >= shape.conditions)
		return no_rule;
	__u32 *rule = bpf_map_lookup_elem(&rules, &condition);
	return rule ? *rule : no_rule;
}

/* Returns what is done with a packet that has this fate. */
static __always_inline __u64 carried_out(__u64 fate)
{
	return dry_run ? FATE_PASS | (fate & IS_CAPTURED) : fate;
}

/* Decides about a packet: returns its fate, the interface that this names in the upper half, and IS_CAPTURED. `tag`: a stripped
 * VLAN tag, as in classify.h. */
static __always_inline __u64 decide(CONTEXT *ctx, enum direction direction, __u64 length, __u64 tag)
{
	/* Clang would leave out an argument that is always 0, which filters use. */
	asm volatile("" : "+r"(tag));
	if (remembers()) {
		__u64 fate = recall(ctx, length, tag, direction);
		if (fate & IS_DECIDED)
			return carried_out(fate & ~(__u64)IS_DECIDED);
	}
	__u32 rule = rule_of(classify(ctx, direction, length, tag));
	if (continuing) {
		struct continued *all = bpf_map_lookup_elem(&continued, &only);
		if (all)
			place_continuing(ctx, all, length, tag);
		act_before(ctx, rule, length);
	}
	return carried_out(act(ctx, rule, length));
}
