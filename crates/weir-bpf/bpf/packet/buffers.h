/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* XDP packets, in one buffer or several. A program defines CONTEXT as struct xdp_md first. */
#pragma once
#include "packet/packet.h"
#include "shared.h"

const volatile bool fragments = false; /* packets may have fragments: loaded with BPF_F_XDP_HAS_FRAGS */

/* bpf_xdp_load_bytes takes offsets and lengths up to 65535; longer super-frames are copied in two steps. */
#define STEP 32768u
#define LOAD_MAX 65535u

static __always_inline bool load(CONTEXT *ctx, __u32 from, void *to, __u64 length)
{
	if (snap_len > LOAD_MAX && length > LOAD_MAX) {
		if (bpf_xdp_load_bytes(ctx, from, to, STEP))
			return false;
		from += STEP;
		to += STEP;
		length -= STEP;
	}
	if (length > LOAD_MAX)
		return false;
	return bpf_xdp_load_bytes(ctx, from, to, not_zero(at_most(length, LOAD_MAX))) == 0;
}

static __always_inline __u32 packet_length(struct xdp_md *ctx)
{
	return fragments ? bpf_xdp_get_buff_len(ctx) : ctx->data_end - ctx->data;
}

/* Returns whether the packet arrived on this interface. With ANY_INTERFACE, reading the packet's interface would be
 * dangerous: veth with GRO clears `rxq->dev` (veth_disable_xdp) while the program may still run. */
static __always_inline bool is_ours(struct xdp_md *ctx, __u32 interface)
{
	return interface == ANY_INTERFACE || likely(ctx->ingress_ifindex == interface);
}
