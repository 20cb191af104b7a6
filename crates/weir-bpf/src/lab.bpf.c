/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The lab's programs: a frame generator, two hooks that only count, one that checks, and one that only redirects.
 *
 * generate  Input: live frames of BPF_PROG_TEST_RUN, all copies of one template. Verdict: XDP_TX, so that a test run
 *           sends on the device that the frames seem to come from (5% cheaper than bpf_redirect to it).
 *           Kernel 5.18 (BPF_F_TEST_XDP_LIVE_FRAMES).
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

const volatile __u32 size = 60;        /* bytes of each frame */
const volatile bool tagged = false;    /* a VLAN tag precedes the IPv4 header */
const volatile __u32 flows = 1;        /* flow numbers are below this */
const volatile bool scattered = false; /* flows in pseudo-random order; otherwise in turn */

/* The Ethernet header of tagged frames, 18 bytes. */
const volatile struct {
	__u64 words[2];
	__u16 type;
} ethernet;

/* The generator's position. `generate` writes it while it runs, the process before and after: never both at once. */
struct generator_state {
	__u64 sequence; /* number of the next frame */
	__u32 flow;     /* its flow, when flows come in turn */
	__u32 unused;
} state;

static __always_inline __u32 scattered_flow(__u64 sequence)
{
	return ((scatter(sequence) >> 32) * flows) >> 32;
}

static __always_inline __u32 next_flow(__u64 sequence)
{
	if (flows == 1)
		return 0;
	if (scattered)
		return scattered_flow(sequence);
	__u32 flow = state.flow;
	state.flow = flow + 1 == flows ? 0 : flow + 1;
	return flow;
}

/* The kernel recycles a few pages, with the contents that the last receiver left. This function rewrites everything
 * that differs between frames, and the Ethernet header of tagged frames, which the network stack moves when it removes
 * the tag. The rest is as in the template, unless a receiver wrote there; such changes last until the next test run. */
SEC("xdp") int generate(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (data + size > end)
		return XDP_ABORTED;
	__u64 sequence = state.sequence;
	state.sequence = sequence + 1;
	__u32 flow = next_flow(sequence);
	__u16 host = flow >> 15;

	void *ip = data + 14;
	if (tagged) {
		*(__u64 *)data = ethernet.words[0];
		*(__u64 *)(data + 8) = ethernet.words[1];
		*(__u16 *)(data + 16) = ethernet.type;
		ip = data + 18;
	}
	/* The identification and the low half of the source address always add up to 0xffff, so the template's header
	 * checksum stays correct. The UDP checksum is 0: not used. */
	*(__be16 *)(ip + 4) = bpf_htons(0xffff - host);
	*(__be16 *)(ip + 14) = bpf_htons(host);
	*(__be16 *)(ip + 20) = bpf_htons(1024 + (flow & 0x7fff));
	*(__be64 *)(ip + 28) = bpf_cpu_to_be64(sequence);
	*(__be32 *)(ip + 36) = bpf_htonl(flow);
	*(__be32 *)(data + size - 4) = bpf_htonl((__u32)sequence ^ flow);
	return XDP_TX;
}

/* The counter of one receive queue, on a cache line of its own. Native XDP runs a queue's program in one NAPI context
 * at a time, so each entry has one writer; in generic mode, counts would be lost. */
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
	__u32 expected = scattered ? scattered_flow(*sequence) : *sequence % flows;
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

char _license[] SEC("license") = "Dual MIT/GPL";
