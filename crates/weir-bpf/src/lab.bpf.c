/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The lab's programs: two hooks that only count, one that checks, and one that only redirects.
 *
 * drop_all, pass_all
 *           Input: any packet. Verdict: XDP_DROP, XDP_PASS. Map: `counts`. Kernel 5.18 (XDP with fragments).
 * check_all Input: any packet. Verdict: XDP_DROP. Map: `checked`. Kernel 5.18.
 * redirect_all
 *           Input: any packet. Verdict: XDP_REDIRECT to the interface in `out`. Kernel 5.18. */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "scatter.h"

const volatile __u32 flows = 1;        /* flow numbers are below this */
const volatile bool scattered = false; /* flows in pseudo-random order; otherwise in turn */

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

#define CHECKED 60 /* bytes of frames that can be checked */

/* A frame with zeros where frames differ. */
const volatile __u32 template[CHECKED / 4];

/* The result for one receive queue, with one writer, as in `counts`. */
struct checked {
	__u64 packets;
	__u64 wrong;    /* not a frame of the generator: changed, of another length, or foreign */
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

/* Reads a field of the frame and zeros it. */
#define TAKE(frame, at, field)                                                                                         \
	do {                                                                                                           \
		__builtin_memcpy(&(field), (__u8 *)(frame) + (at), sizeof(field));                                     \
		__builtin_memset((__u8 *)(frame) + (at), 0, sizeof(field));                                            \
	} while (0)

/* Returns whether `generate` made this frame (without a tag), and the frame's number. */
static __always_inline bool is_whole(struct xdp_md *ctx, __u64 *sequence)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (data + CHECKED > end || ctx->data_end - ctx->data != CHECKED)
		return false;
	__u32 frame[CHECKED / 4];
	__builtin_memcpy(frame, data, CHECKED);
	__be64 number;
	__be32 flow, tail;
	__be16 id, host, port;
	TAKE(frame, 18, id);
	TAKE(frame, 28, host);
	TAKE(frame, 34, port);
	TAKE(frame, 42, number);
	TAKE(frame, 50, flow);
	TAKE(frame, 56, tail);
	*sequence = bpf_be64_to_cpu(number);
	__u32 of = bpf_ntohl(flow), differ = 0;
#pragma unroll
	for (int i = 0; i < CHECKED / 4; i++)
		differ |= frame[i] ^ template[i];
	__u32 expected = scattered ? scattered_flow(*sequence, flows) : *sequence % flows;
	return differ == 0 && of == expected && bpf_ntohl(tail) == ((__u32)*sequence ^ of) &&
	       bpf_ntohs(port) == 1024 + (of & 0x7fff) && bpf_ntohs(host) == of >> 15 &&
	       bpf_ntohs(id) == 0xffff - (of >> 15);
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
