/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The practical limit of any engine with one copy: writes the bytes of a capture's records in sequence into as much memory,
 * and drops. No filter, no account but a number, nobody who reads.
 *
 * write_all Input: any packet; longer ones than LONGEST are not written. Action: XDP_DROP. Maps: `memory`, `places`.
 *           Kernel 5.18 (XDP with fragments). */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define CONTEXT struct xdp_md
#include "packet/copy.h"

#define CHUNK (1u << 20)
#define LONGEST 2048u
#define HEAD 28u /* bytes of an Enhanced Packet Block before its data; behind that there are four */

struct chunk {
	__u8 bytes[CHUNK + HEAD + LONGEST + 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct chunk);
	__uint(max_entries, 1); /* the loader sets chunks of all queues */
} memory SEC(".maps");

/* Where a queue writes next. Native XDP runs a queue's program in one NAPI context at a time. */
struct place {
	__u64 packets;
	__u32 chunk; /* of the queue */
	__u32 at;    /* bytes from the beginning of the chunk */
	__u64 unused[6];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct place);
	__uint(max_entries, 1); /* the loader sets the number of queues */
} places SEC(".maps");

const volatile __u32 chunks = 1; /* of a queue */

SEC("xdp.frags") int write_all(struct xdp_md *ctx)
{
	__u32 queue = ctx->rx_queue_index;
	struct place *place = bpf_map_lookup_elem(&places, &queue);
	if (!place)
		return XDP_DROP;
	place->packets++;
	__u32 index = queue * chunks + place->chunk;
	struct chunk *chunk = bpf_map_lookup_elem(&memory, &index);
	__u64 length = ctx->data_end - ctx->data;
	if (!chunk || length > LONGEST)
		return XDP_DROP;
	__u64 at = at_most(place->at, CHUNK);
	__u8 *record = chunk->bytes + at;
	__u64 padded = at_most((length + 3) & ~3ull, LONGEST);
	__u32 total = HEAD + padded + 4;
	__u32 *head = (__u32 *)record;
	head[0] = 6;
	head[1] = total;
	head[2] = 0;
	head[3] = 0;
	head[4] = 0;
	head[5] = length;
	head[6] = length;
	copy(ctx, 0, record + HEAD, length);
	*(__u32 *)(record + HEAD + padded) = total;
	at += total;
	if (at < CHUNK) {
		place->at = at;
		return XDP_DROP;
	}
	place->at = 0;
	place->chunk = place->chunk + 1 < chunks ? place->chunk + 1 : 0;
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
