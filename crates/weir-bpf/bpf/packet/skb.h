/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Packets as socket buffers, whose bytes may be elsewhere than in the first buffer. */
#pragma once
#define CONTEXT struct __sk_buff
#include "packet/packet.h"

static __always_inline bool load(CONTEXT *ctx, __u32 from, void *to, __u64 length)
{
	return bpf_skb_load_bytes(ctx, from, to, not_zero(length)) == 0;
}
