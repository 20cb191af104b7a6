/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Sends packets that are kept in maps, in turn.
 *
 * repeat Input: live frames of BPF_PROG_TEST_RUN, of the longest packet's size. Action: XDP_TX, so that a test run
 *        sends on the device that the frames seem to come from. Kernel 5.18 (BPF_F_TEST_XDP_LIVE_FRAMES). */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "shared.h"

struct block {
	__u8 bytes[TRACE_BLOCK + TRACE_LONGEST];
};

/* The bytes of packets, one after another. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, __u32);
	__type(value, struct block);
	__uint(max_entries, 1);
} blocks SEC(".maps");

/* Where a packet is. */
struct place {
	__u32 block;
	__u16 at;
	__u16 last; /* its length - 1 */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, __u32);
	__type(value, struct place);
	__uint(max_entries, 1);
} places SEC(".maps");

const volatile __u32 longest = 60; /* length of the frames that come */
const volatile __u32 packets = 1;  /* entries of `places` */

/* `repeat` writes it while it runs, the process before and after: never both at once. */
struct position {
	__u64 sequence; /* packets sent */
	__u32 turn;     /* place in `places` */
	__u32 unused;
} position;

SEC("xdp") int repeat(struct xdp_md *ctx)
{
	__u32 turn = position.turn;
	struct place *place = bpf_map_lookup_elem(&places, &turn);
	if (!place)
		return XDP_ABORTED;
	__u32 number = place->block, at = place->at;
	/* At least 1, so that the verifier of Linux 6.1 sees it, too. */
	__u32 length = (place->last & (TRACE_LONGEST - 1)) + 1;
	struct block *block = bpf_map_lookup_elem(&blocks, &number);
	if (!block)
		return XDP_ABORTED;
	if (length != longest && bpf_xdp_adjust_tail(ctx, (int)(length - longest)))
		return XDP_ABORTED;
	if (bpf_xdp_store_bytes(ctx, 0, block->bytes + at, length))
		return XDP_ABORTED;
	position.turn = turn + 1 == packets ? 0 : turn + 1;
	position.sequence++;
	return XDP_TX;
}

char _license[] SEC("license") = "Dual MIT/GPL";
