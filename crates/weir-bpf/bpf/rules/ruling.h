/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* What rules in front of a capture's program (before.h) have decided about a packet, for the program that ends its way. */
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "shared.h"

struct ruling {
	__u32 fate; /* enum rule_fate */
	__u32 interface;
	__u32 captured;
	__u32 turned; /* tc: what marks packets that go back or elsewhere (fate_tc.h) */
};

/* A CPU has one, for the packet at hand: bottom halves are disabled from the rules to the end of its way. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct ruling);
	__uint(max_entries, 1);
} rulings SEC(".maps");

static const __u32 the_ruling = 0;

static __always_inline struct ruling *this_ruling(void)
{
	return bpf_map_lookup_elem(&rulings, &the_ruling);
}
