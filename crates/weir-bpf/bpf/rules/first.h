/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The first packets of each flow, in both directions together, as crates/weir-rules/src/state/flows.rs has them. */
#pragma once
#include "rules/limit.h"

const volatile __u64 flow_idle = 0; /* after such a silence, ns, a flow begins anew */

struct flow {
	__u64 packets, last;
};

/* By flow and rule (`action`). Those that have been silent for so long stay until the process removes them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct bucket_key);
	__type(value, struct flow);
	__uint(max_entries, 1);
} flows SEC(".maps");

/* Counts a packet of a rule's flow, and returns whether it is among the first `most`. A packet of no flow is, and so is one whose flow
 * finds no room. */
static __noinline __u32 is_among_first(struct passage *passage, __u32 rule, __u64 most)
{
	struct bucket_key key;
	if (!passage->is_flow)
		return true;
	find_sharers(passage, LIMIT_FLOW);
	key.packets = passage->other;
	key.action = rule;
	struct flow *flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow) {
		struct flow first = {.packets = 1, .last = passage->now};
		if (!bpf_map_update_elem(&flows, &key, &first, BPF_NOEXIST))
			return most > 0;
		/* Another CPU may have been faster. */
		flow = bpf_map_lookup_elem(&flows, &key);
		if (!flow) {
			UNKEPT(flows);
			return true;
		}
	}
	__u64 now = passage->now, last = flow->last;
	if (now > last) {
		if (now - last > flow_idle)
			flow->packets = 0;
		flow->last = now;
	}
	return __sync_fetch_and_add(&flow->packets, 1) < most;
}
