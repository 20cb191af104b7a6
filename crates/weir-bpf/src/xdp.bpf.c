/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The `xdp` source: copies each packet that an interface receives into the pool, then passes or drops it.
 *
 * Input:    struct xdp_md, linear or with fragments.
 * Verdicts: XDP_PASS (mode pass) or XDP_DROP (mode exclusive), always the same one, whatever became of the copy.
 * Maps:     writer.h.
 * Kernel:   6.1 (bpf_ktime_get_tai_ns); `capture_tagged` 6.8 and a driver that tells stripped VLAN tags. */
#include "writer.h"
#include <bpf/bpf_endian.h>

const volatile __u32 verdict = XDP_PASS;
const volatile bool fragments = false;    /* packets may have some: the program is loaded with BPF_F_XDP_HAS_FRAGS */
const volatile bool queue_is_cpu = false; /* generic XDP runs on any CPU: one writer per CPU */

extern int bpf_xdp_metadata_rx_vlan_tag(const struct xdp_md *ctx, __be16 *vlan_proto, __u16 *vlan_tci) __ksym __weak;

#define ADDRESSES 12 /* bytes before the place of a VLAN tag */
#define TAG 4
/* bpf_xdp_load_bytes takes offsets and lengths up to 65535; a super-frame is longer and is copied in two steps. */
#define STEP 32768u
#define LOAD_MAX 65535u

static __always_inline void copy_words(void *to, const void *from, int words)
{
#pragma unroll
	for (int i = 0; i < words; i++)
		((__u64 *)to)[i] = ((const __u64 *)from)[i];
}

/* Copies `length` bytes, from `half` to twice as many, in two runs of `half` that overlap in the middle. The verifier
 * forgets what it knows of a pointer that clang computes twice; each is pinned before it is compared. */
static __always_inline bool copy_halves(struct xdp_md *ctx, void *to, __u32 length, __u32 half)
{
	const void *head = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 skip = length - half;
	asm volatile("" : "+r"(skip));
	if (skip > half || head + half > end)
		return false;
	const void *tail = head + skip;
	asm volatile("" : "+r"(tail));
	if (tail + half > end)
		return false;
	copy_words(to, head, half / 8);
	copy_words(to + skip, tail, half / 8);
	return true;
}

#define BLOCK 128u
#define BLOCKS 16u

/* Copies `length` bytes, more than one block and at most BLOCKS of them: block after block, and the last, which overlaps,
 * from the end. */
static __always_inline bool copy_blocks(struct xdp_md *ctx, void *to, __u32 length)
{
	const void *head = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 skip = length - BLOCK;
	asm volatile("" : "+r"(skip));
	if (skip > BLOCK * (BLOCKS - 1))
		return false;
	const void *tail = head + skip;
	asm volatile("" : "+r"(tail));
	if (tail + BLOCK > end)
		return false;
	copy_words(to + skip, tail, BLOCK / 8);
#pragma clang loop unroll(disable)
	for (__u32 block = 0; block < BLOCKS - 1; block++) {
		__u32 at = block * BLOCK;
		if (at >= skip)
			break;
		if (head + at + BLOCK > end)
			return false;
		copy_words(to + at, head + at, BLOCK / 8);
	}
	return true;
}

/* Packets in one buffer without a call: bpf_xdp_load_bytes takes 20 ns for the shortest and 140 for the longest of them,
 * this 3 and 60 (the kernel's `rep movsb` does not like the records' alignment). */
static __always_inline bool copy(struct xdp_md *ctx, void *to, __u32 length)
{
	if (length < 32)
		return false;
	if (length <= 64)
		return copy_halves(ctx, to, length, 32);
	if (length <= 128)
		return copy_halves(ctx, to, length, 64);
	if (length <= BLOCK * BLOCKS)
		return copy_blocks(ctx, to, length);
	return false;
}

static __always_inline bool load(struct xdp_md *ctx, __u32 from, void *to, __u32 length)
{
	if (snap_len > LOAD_MAX && length > LOAD_MAX) {
		if (bpf_xdp_load_bytes(ctx, from, to, STEP))
			return false;
		from += STEP;
		to += STEP;
		length -= STEP;
		asm volatile("" : "+r"(length));
		if (length > LOAD_MAX)
			return false;
	}
	return length != 0 && bpf_xdp_load_bytes(ctx, from, to, length) == 0;
}

/* The data of a packet, as it is. */
static __always_inline bool load_plain(struct xdp_md *ctx, struct record *record)
{
	void *data = DATA(record);
	return copy(ctx, data, record->captured) || load(ctx, 0, data, record->captured);
}

/* The same for a packet whose tag the device has stripped: the tag goes back behind the addresses. */
static __always_inline bool load_tagged(struct xdp_md *ctx, struct record *record, __be16 protocol, __u16 tci)
{
	void *data = DATA(record);
	if (bpf_xdp_load_bytes(ctx, 0, data, ADDRESSES))
		return false;
	*(__be16 *)(data + ADDRESSES) = protocol;
	*(__be16 *)(data + ADDRESSES + 2) = bpf_htons(tci);
	__u32 captured = record->captured;
	if (captured > ADDRESSES + TAG)
		return load(ctx, ADDRESSES, data + ADDRESSES + TAG, captured - (ADDRESSES + TAG));
	/* Cut inside of what was just written: the padding is zero again. */
	for (__u32 i = 0; i < 3; i++)
		if (captured + i < record->padded)
			*(__u8 *)(data + captured + i) = 0;
	return true;
}

static __always_inline __u32 packet_length(struct xdp_md *ctx)
{
	return fragments ? bpf_xdp_get_buff_len(ctx) : ctx->data_end - ctx->data;
}

static __always_inline int deliver(struct xdp_md *ctx, bool stripped)
{
	struct record record;
	__u32 queue = queue_is_cpu ? bpf_get_smp_processor_id() : ctx->rx_queue_index;
	if (!arrive(&record, queue))
		return verdict;
	__be16 protocol;
	__u16 tci;
	bool tagged = stripped && bpf_xdp_metadata_rx_vlan_tag(ctx, &protocol, &tci) == 0;
	if (!begin(&record, packet_length(ctx) + (tagged ? TAG : 0)))
		return verdict;
	if (tagged ? load_tagged(ctx, &record, protocol, tci) : load_plain(ctx, &record))
		commit(&record);
	else
		record.queue->errors++;
	return verdict;
}

SEC("xdp")
int capture(struct xdp_md *ctx)
{
	return deliver(ctx, false);
}

/* For a device that strips tags. Bound to it, as the call that asks its driver for the tag demands. */
SEC("xdp")
int capture_tagged(struct xdp_md *ctx)
{
	return deliver(ctx, true);
}

char _license[] SEC("license") = "Dual MIT/GPL";
