/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* What rules need to know of a packet to remember something of it. It is in a map, not on the stack, most of which filters
 * use. */
#pragma once
#include "rules/classify.h"
#include "stat/key.h"
#include "shared.h"

/* Rules learn, have limits, log, or capture the first packets of flows; otherwise none of this is there. */
const volatile bool learns = false, limits = false, logs = false, firsts = false;

const volatile bool clock_is_given = false; /* for tests */

struct passage {
	struct key exact; /* one direction of a flow in its VLAN; all 0 but the VLAN if the packet is not IP */
	struct key other; /* another one, for a moment */
	__u64 now;        /* CLOCK_MONOTONIC, ns */
	__u64 given;      /* in its place, for tests */
	__u64 tag;        /* a stripped VLAN tag, as in classify.h */
	__u32 length;     /* on the wire */
	__u8 direction;   /* enum direction */
	bool is_flow;
};

/* A CPU has one, which it alone uses: bottom halves are disabled while a program runs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct passage);
	__uint(max_entries, 1);
} passages SEC(".maps");

/* Packets for which something could not be remembered. */
struct unkept {
	__u64 learned, no_flow, buckets, logged, flows;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct unkept);
	__uint(max_entries, 1);
} unkept SEC(".maps");

static __always_inline struct passage *this_passage(void)
{
	return bpf_map_lookup_elem(&passages, &only);
}

#define UNKEPT(what)                                                                                                   \
	({                                                                                                             \
		struct unkept *counters = bpf_map_lookup_elem(&unkept, &only);                                         \
		if (counters)                                                                                          \
			counters->what++;                                                                              \
	})

/* Finds all that of a packet. The fields of keys (`key_fields`) are VLAN, protocol, addresses and ports: ports that are not there
 * are 0. */
static __always_inline void find_passage(CONTEXT *ctx, __u64 tag, __u64 length, enum direction direction,
                                         struct passage *passage)
{
	passage->tag = tag;
	passage->length = length;
	passage->direction = direction;
	__builtin_memset(&passage->exact, 0, sizeof(passage->exact));
	find_key(ctx, tag, &passage->exact);
	passage->is_flow = passage->exact.there & BY_PROTOCOL;
	passage->exact.there &= BY_VLAN;
	passage->now = clock_is_given ? passage->given : bpf_ktime_get_ns();
}

static __always_inline void copy_address(__u8 *to, const __u8 *from)
{
	__builtin_memcpy(to, from, 16);
}

/* Makes `passage->other` the other direction. */
static __always_inline void reverse(struct passage *passage)
{
	struct key *other = &passage->other;
	const struct key *exact = &passage->exact;
	*other = *exact;
	copy_address(other->source, exact->destination);
	copy_address(other->destination, exact->source);
	other->source_port = exact->destination_port;
	other->destination_port = exact->source_port;
}
