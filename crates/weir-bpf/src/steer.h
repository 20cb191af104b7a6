/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Steering: each writer has a queue per target and chooses one for each packet. A queue still has a single writer, and
 * the packets of one target are spread over as many queues as there are writers.
 *
 * Every packet has a target. The search ends at a truncated header, and the headers before it decide. */
#pragma once
#include "flow.h"

#define STEER_NONE 0
#define STEER_FLOW 1        /* by the outermost flow */
#define STEER_INNER 2       /* by the innermost flow, up to LEVELS - 1 tunnels deep */
#define STEER_ROUND_ROBIN 3 /* in turn */
#define STEER_VLAN 4        /* by the outermost VLAN ID, modulo the number of targets */

const volatile __u32 steering = STEER_NONE;
const volatile __u32 targets = 1; /* queues per writer */

/* The targets of fragmented datagrams whose first fragment has arrived, by a hash of the datagram. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, __u64);
	__type(value, __u32);
	__uint(max_entries, 1); /* the loader sets more when steering by flow */
} datagrams SEC(".maps");

#define LEVELS 3 /* a packet, a packet inside it, and one inside that */

/* Returns the target of the packet's flow. `first`: the writer's first queue, which counts for all its queues. */
static __noinline __u32 flow_target(CONTEXT *ctx, __u32 first)
{
	__u64 hash = 0, begun[LEVELS] = {};
	__u32 at = 0, *known = NULL;
	__be16 kind = outermost(ctx);
#pragma clang loop unroll(disable)
	for (int level = 0; level < (steering == STEER_INNER ? LEVELS : 1); level++) {
		struct network network;
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
	__u32 target = known ? *known : (hash >> 32) * targets >> 32;
#pragma unroll
	for (int level = 0; level < LEVELS; level++)
		if (begun[level])
			bpf_map_update_elem(&datagrams, &begun[level], &target, BPF_ANY);
	return target;
}

static __always_inline __u32 next_target(__u32 first)
{
	struct queue *queue = bpf_map_lookup_elem(&queues, &first);
	if (!queue)
		return 0;
	__u32 target = queue->turn;
	queue->turn = target + 1 == targets ? 0 : target + 1;
	return target;
}

static __always_inline __u32 vlan_target(CONTEXT *ctx, bool tagged, __u16 tci)
{
	struct {
		__be16 type, tci;
	} tag;
	if (!tagged) {
		if (!ethernet || !PEEK(ctx, ADDRESSES, &tag) || !is_tag(tag.type))
			return 0;
		tci = bpf_ntohs(tag.tci);
	}
	return (tci & 0xfff) % targets;
}

/* Returns the first of a writer's queues, which counts packets that have no target. */
static __always_inline __u32 first_queue(__u32 writer)
{
	return writer * targets;
}

/* Returns the queue for a packet. `tagged`: the outermost VLAN tag is beside the frame and its contents are `tci`. */
static __always_inline __u32 steer(CONTEXT *ctx, __u32 writer, bool tagged, __u16 tci)
{
	__u32 first = first_queue(writer);
	switch (steering) {
	case STEER_FLOW:
	case STEER_INNER:
		return first + flow_target(ctx, first);
	case STEER_ROUND_ROBIN:
		return first + next_target(first);
	case STEER_VLAN:
		return first + vlan_target(ctx, tagged, tci);
	}
	return first;
}
