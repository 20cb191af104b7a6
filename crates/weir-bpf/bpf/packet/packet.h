/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Copies a packet into a record, for any kind of context that has `data` and `data_end`.
 *
 * A program defines CONTEXT, the structure it is called with, includes this file, and defines `load` with the kernel
 * helper that reads bytes outside the first buffer. */
#pragma once
#include <bpf/bpf_endian.h>
#include "packet/copy.h"
#include "pool/writer.h"

const volatile bool ethernet = true; /* frames begin with an Ethernet header; otherwise with an IP header */

#define ADDRESSES 12 /* bytes before a VLAN tag */
#define TAG 4

/* Returns a stripped VLAN tag as one number. */
static __always_inline __u64 packed(bool there, __be16 protocol, __u16 tci)
{
	return there ? 1ull << 32 | (__u64)bpf_ntohs(protocol) << 16 | tci : 0;
}

/* Copies `length` bytes of the packet, 1..=`snap_len`, from offset `from`; false if the packet is too short. */
static __always_inline bool load(CONTEXT *ctx, __u32 from, void *to, __u64 length);

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
