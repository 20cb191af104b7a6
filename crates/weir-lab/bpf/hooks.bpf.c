/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The lab's programs: two hooks that only count, one that checks, and one that only redirects.
 *
 * drop_all, pass_all
 *           Input: any packet. Action: XDP_DROP, XDP_PASS. Map: `counts`. Kernel 5.18 (XDP with fragments).
 * check_all Input: any packet. Action: XDP_DROP. Map: `checked`. Kernel 5.18.
 * redirect_all
 *           Input: any packet. Action: XDP_REDIRECT to the interface in `out`. Kernel 5.18. */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "checked.h"

/* One entry for each receive queue, on a cache line of its own. Native XDP runs a queue's program in one NAPI context
 * at a time, so that each entry has one writer; attached in generic mode, counts would be lost. */
struct count {
	__u64 packets;
	__u64 unused[7];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct count);
	__uint(max_entries, 1); /* the loader sets the number of queues */
} counts SEC(".maps");

static __always_inline void count(struct xdp_md *ctx)
{
	__u32 queue = ctx->rx_queue_index;
	struct count *entry = bpf_map_lookup_elem(&counts, &queue);
	if (entry)
		entry->packets++;
}

SEC("xdp.frags") int drop_all(struct xdp_md *ctx)
{
	count(ctx);
	return XDP_DROP;
}

SEC("xdp.frags") int pass_all(struct xdp_md *ctx)
{
	count(ctx);
	return XDP_PASS;
}

#define SIGNATURE (CHECKED - CHECKED_HEAD)

/* Whole words. */
struct head {
	__u8 bytes[CHECKED_HEAD + 2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, __u32);
	__type(value, struct head);
	__uint(max_entries, 1); /* the loader sets the number of flows */
} heads SEC(".maps");

/* The flow of each frame, in turn. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1); /* the loader sets the length */
} order SEC(".maps");

const volatile __u32 order_length = 1;
const volatile __u32 mark = 0; /* the first four bytes of each signature, as they are in memory */

/* The result for one receive queue, with one writer, as in `counts`. */
struct checked {
	__u64 packets;
	__u64 wrong;    /* not a frame of the traffic: changed, of another length, or foreign */
	__u64 backward; /* arrived after one with a higher number, or twice */
	__u64 next;     /* the highest number so far, plus 1 */
	__u64 unused[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct checked);
	__uint(max_entries, 1); /* the loader sets the number of queues */
} checked SEC(".maps");

/* Returns whether this is a frame of the traffic, and the frame's number. */
static __always_inline bool is_whole(struct xdp_md *ctx, __u64 *sequence)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (data + CHECKED > end || ctx->data_end - ctx->data != CHECKED)
		return false;
	__u16 frame[CHECKED / 2];
	__builtin_memcpy(frame, data, CHECKED);
	__u16 *signature = frame + CHECKED_HEAD / 2;
	__u64 number = 0;
	__u32 sum = 0;
#pragma unroll
	for (int i = 2; i < 5; i++)
		number = number << 16 | bpf_ntohs(signature[i]);
#pragma unroll
	for (int i = 0; i < SIGNATURE / 2; i++)
		sum += signature[i];
	sum = (sum & 0xffff) + (sum >> 16);
	bool signs = signature[0] == (__u16)mark && signature[1] == (__u16)(mark >> 16) &&
	             (signature[5] | signature[6] | signature[7]) == 0 && sum == 0xffff;
	*sequence = number;

	__u32 place = number % order_length;
	__u32 *flow = bpf_map_lookup_elem(&order, &place);
	struct head *head = flow ? bpf_map_lookup_elem(&heads, flow) : 0;
	if (!head)
		return false;
	__u16 differ = 0;
#pragma unroll
	for (int i = 0; i < CHECKED_HEAD / 2; i++)
		differ |= frame[i] ^ ((__u16 *)head->bytes)[i];
	return signs && differ == 0;
}

SEC("xdp.frags") int check_all(struct xdp_md *ctx)
{
	__u32 queue = ctx->rx_queue_index;
	struct checked *entry = bpf_map_lookup_elem(&checked, &queue);
	if (!entry)
		return XDP_DROP;
	entry->packets++;
	__u64 sequence;
	if (!is_whole(ctx, &sequence))
		entry->wrong++;
	else if (sequence < entry->next)
		entry->backward++;
	else
		entry->next = sequence + 1;
	return XDP_DROP;
}

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} out SEC(".maps");

SEC("xdp.frags") int redirect_all(struct xdp_md *ctx)
{
	return bpf_redirect_map(&out, 0, XDP_DROP);
}

/* The least work that generating by live frames can do. */
SEC("xdp") int transmit_all(struct xdp_md *ctx)
{
	return XDP_TX;
}

char _license[] SEC("license") = "Dual MIT/GPL";
