/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* A packet's flow as a number, for steering and sampling. Later fragments have the number of their first.
 *
 * crates/weir/src/live/flow.rs defines a flow: two endpoints (addresses and ports), in either direction, and the
 * protocol. handlers/tests/steering.rs in that crate compares the two implementations.
 *
 * Every packet has a number. The search ends at a truncated header, and the headers before it decide. */
#pragma once
#include "packet/walk.h"

const volatile bool inner_flows = false; /* the innermost flow decides, up to LEVELS - 1 tunnels deep */

/* The flows of fragmented datagrams whose first fragment has arrived, by a hash of the datagram. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, __u64);
	__type(value, __u64);
	__uint(max_entries, 1); /* the loader sets more when flows matter */
} datagrams SEC(".maps");

#define LEVELS 3 /* a packet, a packet inside it, and one inside that */

static __always_inline __u64 flow_of(const struct network *network, const __be16 ports[2])
{
	__u64 one = scatter(flow_seed ^ network->source ^ ports[0]);
	__u64 other = scatter(flow_seed ^ network->destination ^ ports[1]);
	return scatter(one + other + network->protocol);
}

/* Hashes the Ethernet addresses of a packet that is not IP. */
static __always_inline __u64 link_of(CONTEXT *ctx)
{
	struct {
		__u16 words[6];
	} addresses;
	if (!ethernet || !PEEK(ctx, 0, &addresses))
		return 0;
	const __u16 *words = addresses.words;
	__u64 one = (__u64)words[0] << 32 | (__u32)words[1] << 16 | words[2];
	__u64 other = (__u64)words[3] << 32 | (__u32)words[4] << 16 | words[5];
	return scatter(scatter(flow_seed ^ one) + scatter(flow_seed ^ other));
}

/* Returns the hash of the packet's flow. `first`: the writer's first queue, which counts for all its queues. */
static __always_inline __u64 flow_hash(CONTEXT *ctx, __u32 first)
{
	__u64 hash = 0, begun[LEVELS] = {};
	__u64 *known = NULL;
	__u32 at = 0;
	__be16 kind = outermost(ctx);
#pragma clang loop unroll(disable)
	for (int level = 0; level < (inner_flows ? LEVELS : 1); level++) {
		struct network network = {};
		struct {
			__be16 ports[2];
		} transport = {};
		enum found found = find_network(ctx, at, kind, &network);
		if (found != FOUND) {
			if (level == 0 && found == NOTHING)
				hash = link_of(ctx);
			break;
		}
		if (network.later) {
			hash = network.datagram;
			known = bpf_map_lookup_elem(&datagrams, &network.datagram);
			if (!known) {
				struct queue *queue = bpf_map_lookup_elem(&queues, &first);
				if (queue)
					queue->orphans++;
			}
			break;
		}
		if (has_ports(network.protocol) && !PEEK(ctx, network.next, &transport))
			transport.ports[0] = transport.ports[1] = 0;
		hash = flow_of(&network, transport.ports);
		begun[level] = forget(ctx, network.datagram);
		if (!enter(ctx, &network, transport.ports[1], &at, &kind))
			break;
		at = forget(ctx, at);
		kind = forget(ctx, kind);
	}
	if (known)
		hash = *known;
#pragma unroll
	for (int level = 0; level < LEVELS; level++)
		if (begun[level])
			bpf_map_update_elem(&datagrams, &begun[level], &hash, BPF_ANY);
	return hash;
}
