/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Copies a packet into a record, for any kind of context that has `data` and `data_end`.
 *
 * A program defines CONTEXT, the structure it is called with, includes this file, and defines `load` with the kernel
 * helper that reads bytes outside the first buffer. */
#pragma once
#include <bpf/bpf_endian.h>
#include "writer.h"

const volatile bool ethernet = true; /* frames begin with an Ethernet header; otherwise with an IP header */

#define ADDRESSES 12 /* bytes before a VLAN tag */
#define TAG 4

/* Copies `length` bytes of the packet, 1..=`snap_len`, from offset `from`; false if the packet is too short. */
static __always_inline bool load(CONTEXT *ctx, __u32 from, void *to, __u64 length);

static __always_inline void copy_words(void *to, const void *from, int words)
{
#pragma unroll
	for (int i = 0; i < words; i++)
		((__u64 *)to)[i] = ((const __u64 *)from)[i];
}

/* Copies `length` bytes, from `half` to twice `half`, in two runs of `half` bytes that overlap in the middle. The
 * verifier loses track of a pointer that clang computes twice, so each pointer is pinned before it is compared. */
static __always_inline bool copy_halves(CONTEXT *ctx, __u32 from, void *to, __u64 length, __u32 half)
{
	const void *head = (void *)(long)ctx->data + from, *end = (void *)(long)ctx->data_end;
	__u64 skip = at_most(length - half, half);
	if (head + half > end)
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

/* Copies `length` bytes, more than one block and at most BLOCKS blocks. The last block is copied from the end of the
 * data and overlaps the one before it. */
static __always_inline bool copy_blocks(CONTEXT *ctx, __u32 from, void *to, __u64 length)
{
	const void *head = (void *)(long)ctx->data + from, *end = (void *)(long)ctx->data_end;
	__u64 skip = at_most(length - BLOCK, BLOCK * (BLOCKS - 1));
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

/* Copies a packet in one buffer without a call. For the shortest and the longest of these, bpf_xdp_load_bytes takes 20
 * and 140 ns, this code 3 and 60 (the kernel's `rep movsb` is slow with the alignment of records). */
static __always_inline bool copy(CONTEXT *ctx, __u32 from, void *to, __u64 length)
{
	if (length < 32)
		return false;
	if (length <= 64)
		return copy_halves(ctx, from, to, length, 32);
	if (length <= 128)
		return copy_halves(ctx, from, to, length, 64);
	if (length <= BLOCK * BLOCKS)
		return copy_blocks(ctx, from, to, length);
	return false;
}

/* Like `load`, but faster for most packets. */
static __always_inline bool fetch(CONTEXT *ctx, __u32 from, void *to, __u64 length)
{
	return copy(ctx, from, to, length) || load(ctx, from, to, length);
}

/* Copies the packet's data unchanged. */
static __always_inline bool load_plain(CONTEXT *ctx, struct record *record)
{
	return fetch(ctx, 0, DATA(record), record->captured);
}

/* Copies the Ethernet addresses, which precede a tag. */
static __always_inline bool fetch_addresses(CONTEXT *ctx, void *to)
{
	const void *from = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (from + ADDRESSES > end)
		return load(ctx, 0, to, ADDRESSES);
	__builtin_memcpy(to, from, ADDRESSES);
	return true;
}

static __always_inline void put_tag(void *data, __be16 protocol, __u16 tci)
{
	*(__be16 *)(data + ADDRESSES) = protocol;
	*(__be16 *)(data + ADDRESSES + 2) = bpf_htons(tci);
}

/* Copies the data of a packet whose tag the device has stripped, and puts the tag back after the addresses. */
static __always_inline bool load_tagged(CONTEXT *ctx, struct record *record, __be16 protocol, __u16 tci)
{
	void *data = DATA(record);
	if (!fetch_addresses(ctx, data))
		return false;
	put_tag(data, protocol, tci);
	__u64 captured = record->captured;
	if (captured > ADDRESSES + TAG)
		return fetch(ctx, ADDRESSES, data + ADDRESSES + TAG, captured - (ADDRESSES + TAG));
	/* The snap length cuts into what was just written: zero the padding again. */
	for (__u32 i = 0; i < 3; i++)
		if (captured + i < record->padded)
			*(__u8 *)(data + captured + i) = 0;
	return true;
}
