/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Rules that continue: each counts, learns and logs, and the next ones are asked. All of them are asked about a packet, since they
 * are few; those before the rule that decides act. */
#pragma once
#include "rules/act.h"

const volatile __u32 continuing = 0; /* how many there are */
const volatile __u32 continuing_rules[MOST_CONTINUING] = {};

/* The counters of code that counts for each filter the packets that it accepts: all 0 between packets. */
struct continued {
	struct {
		__u64 packets, bytes;
	} met[1 + MOST_CONTINUING];
};

/* A CPU has one, which it alone uses: bottom halves are disabled while a program runs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct continued);
	__uint(max_entries, 1);
} continued SEC(".maps");

/* Stands for the filters, and for what counts (weir-filter/src/emit/ebpf/counting.rs). `tag`: as in classify.h. */
static __noinline __u32 place_continuing(void *ctx, struct continued *all, __u64 length, __u64 tag)
{
	__u32 answer = OTHER_PLACE;
	/* `memory`: what takes this place writes counters. */
	asm volatile("" : "+r"(answer) : "r"(ctx), "r"(all), "r"(length), "r"(tag) : "memory");
	return answer;
}

/* Has those rules act whose filters have accepted the packet, if they come before the one that decides. */
static __noinline __u32 act_before(CONTEXT *ctx, __u32 decider, __u64 length)
{
	struct continued *all = bpf_map_lookup_elem(&continued, &only);
	if (!all)
		return 0;
#pragma clang loop unroll(disable)
	for (__u32 at = 0; at < MOST_CONTINUING && at < continuing; at++) {
		if (!all->met[1 + at].packets)
			continue;
		all->met[1 + at].packets = 0;
		if (continuing_rules[at] < decider)
			act(ctx, continuing_rules[at], length);
	}
	return 0;
}
