/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Steering: each writer has a queue per target and chooses one for each packet. A queue still has a single writer, and
 * the packets of one target are spread over as many queues as there are writers. */
#pragma once
#include "pool/sample.h"
#include "shared.h"

const volatile __u32 steering = STEER_NONE;
const volatile __u32 targets = 1; /* queues per writer */

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

/* Returns the hash of the packet's flow, if steering or sampling needs it. */
static __always_inline __u64 needed_hash(CONTEXT *ctx, __u32 writer)
{
	if (steering == STEER_FLOW || steering == STEER_INNER || sampling == SAMPLE_FLOWS)
		return flow_hash(ctx, first_queue(writer));
	return 0;
}

/* Returns the queue for a packet. `flow`: its `needed_hash`. `tagged`: the outermost VLAN tag is beside the frame and its
 * contents are `tci`. */
static __always_inline __u32 steer(CONTEXT *ctx, __u32 writer, __u64 flow, bool tagged, __u16 tci)
{
	__u32 first = first_queue(writer);
	switch (steering) {
	case STEER_FLOW:
	case STEER_INNER:
		return first + ((flow >> 32) * targets >> 32);
	case STEER_ROUND_ROBIN:
		return first + next_target(first);
	case STEER_VLAN:
		return first + vlan_target(ctx, tagged, tci);
	}
	return first;
}
