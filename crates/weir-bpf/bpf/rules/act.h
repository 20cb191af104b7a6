/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* What a rule does with a packet that meets it. */
#pragma once
#include "rules/exact.h"
#include "rules/first.h"
#include "rules/limit.h"
#include "rules/log.h"

struct rule_counter {
	__u64 packets, bytes;
	__u64 learned_packets,
	        learned_bytes;          /* by exact rules that it has made; of the last one: by those of the process */
	__u64 last;                     /* CLOCK_MONOTONIC as of the last tick, ns */
	__u64 captured;                 /* of `packets`, those that a capture is to take */
	__u64 over_packets, over_bytes; /* of `packets`, those beyond the limit of their fate */
	__u64 number; /* of CAPTURE_SAMPLE: the first of so many packets; of CAPTURE_FIRST: so many of each flow */
	__u32 fate;   /* enum rule_fate */
	__u32 interface;
	__u32 capture; /* enum rule_capture */
	__u32 zero;
};

/* By rule; the last is for packets without a rule. Each CPU has its own, which it alone writes. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct rule_counter);
	__uint(max_entries, 1);
} rule_counters SEC(".maps");

/* What a rule does besides. */
struct rule_actions {
	struct limit limits[LIMITED];
	__u64 lasting; /* of an exact rule that it makes, ns; 0: it makes none */
	__u32 fate;    /* the exact rule's */
	__u32 interface;
	__u32 capture;
	__u32 both; /* in both directions */
	__u32 logs;
	__u32 idle; /* each packet of the exact rule begins that time anew */
};

/* By rule. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct rule_actions);
	__uint(max_entries, 1);
} rule_actions SEC(".maps");

const volatile __u32 no_rule = 0;
const volatile bool dry_run = false;  /* every packet goes on, whatever its fate */
const volatile bool captures = false; /* there is a capture, which takes packets by rules */

/* What rules decide is a number, whose upper half is the interface that a fate names. In the lower half: */
#define FATE 0xffu
#define IS_CAPTURED (1u << 30) /* a capture is to take the packet */
#define IS_DECIDED (1u << 31)  /* by an exact rule */

/* Whether rules do more than to count packets and to have a fate for them. */
static __always_inline bool remembers(void)
{
	return learns || limits || logs || firsts;
}

/* A fate, and the interface that it may name, as one number. */
static __always_inline __u64 fate_of(__u32 fate, __u32 interface)
{
	return fate | (__u64)interface << 32;
}

/* Makes exact rules of a packet. */
static __noinline __u32 learn(struct passage *passage, const struct rule_actions *actions, __u32 rule)
{
	if (!passage->is_flow) {
		UNKEPT(no_flow);
		return 0;
	}
	__u64 until = passage->now + actions->lasting;
	struct exact_rule exact = {
	        .until = until < passage->now ? ~0ull : until,
	        .idle = actions->idle ? actions->lasting : 0,
	        .rule = rule,
	        .fate = actions->fate,
	        .interface = actions->interface,
	        .capture = actions->capture,
	};
	bool no_room = add_exact(&passage->exact, &exact, passage->now) == TAUGHT_NO_ROOM;
	if (actions->both) {
		reverse(passage);
		no_room |= add_exact(&passage->other, &exact, passage->now) == TAUGHT_NO_ROOM;
	}
	if (no_room)
		UNKEPT(learned);
	return 0;
}

/* Returns whether a capture is to take a packet, which its rule has counted already. */
static __noinline __u32 is_captured(const struct rule_counter *counter, __u32 rule)
{
	if (counter->capture != CAPTURE_SAMPLE && counter->capture != CAPTURE_FIRST)
		return counter->capture == CAPTURE_ALL;
	__u64 number = counter->number;
	if (counter->capture == CAPTURE_SAMPLE)
		return number <= 1 || (counter->packets - 1) % number == 0;
	struct passage *passage = firsts ? this_passage() : NULL;
	return !passage || is_among_first(passage, rule, number);
}

/* Counts a packet for a rule that it meets, and carries out what the rule does besides. Returns what the rule decides. */
static __noinline __u64 act(CONTEXT *ctx, __u32 rule, __u64 length)
{
	struct rule_counter *counter = bpf_map_lookup_elem(&rule_counters, &rule);
	if (!counter)
		return FATE_PASS;
	counter->packets++;
	counter->bytes += length;
	counter->last = bpf_ktime_get_coarse_ns();
	__u64 fate = fate_of(counter->fate, counter->interface);
	__u64 captured = 0;
	if (captures && is_captured(counter, rule)) {
		counter->captured++;
		captured = IS_CAPTURED;
	}
	if (!remembers())
		return fate | captured;
	const struct rule_actions *actions = bpf_map_lookup_elem(&rule_actions, &rule);
	struct passage *passage = this_passage();
	if (!actions || !passage)
		return fate | captured;
	__u32 action = rule * LIMITED;
	if (learns && actions->lasting) {
		if (!limits || is_over(passage, &actions->limits[LIMITED_LEARN], action + LIMITED_LEARN))
			learn(passage, actions, rule);
	}
	bool is_logged = false;
	if (logs && actions->logs)
		is_logged = !limits || is_over(passage, &actions->limits[LIMITED_LOG], action + LIMITED_LOG);
	if (limits && actions->limits[LIMITED_FATE].key != LIMIT_NONE) {
		if (is_over(passage, &actions->limits[LIMITED_FATE], action + LIMITED_FATE)) {
			counter->over_packets++;
			counter->over_bytes += length;
		} else {
			fate = FATE_PASS;
		}
	}
	if (logs && (is_logged || (log_others && fate != FATE_PASS)))
		log_packet(ctx, passage, rule, fate, false);
	return fate | captured;
}

/* Finds what rules need to know of a packet, and whether an exact rule is in force, whose fate it returns. A separate function, to
 * have a stack frame of its own: filters use most of their caller's. */
static __noinline __u64 recall(CONTEXT *ctx, __u64 length, __u64 tag, enum direction direction)
{
	struct passage *passage = this_passage();
	if (!passage)
		return FATE_PASS;
	find_passage(ctx, tag, length, direction, passage);
	struct exact_rule *exact = learns ? find_exact(passage) : NULL;
	if (!exact)
		return FATE_PASS;
	put_off(exact, passage->now);
	__u32 rule = exact->rule;
	if (logs && log_others && exact->fate != FATE_PASS)
		log_packet(ctx, passage, rule, fate_of(exact->fate, exact->interface), true);
	if (rule == NO_RULE) {
		count_exact(exact, length, passage->now);
		rule = no_rule;
	}
	struct rule_counter *counter = bpf_map_lookup_elem(&rule_counters, &rule);
	if (counter) {
		counter->learned_packets++;
		counter->learned_bytes += length;
		counter->last = bpf_ktime_get_coarse_ns();
	}
	return fate_of(exact->fate | IS_DECIDED | (captures && exact->capture ? IS_CAPTURED : 0), exact->interface);
}
