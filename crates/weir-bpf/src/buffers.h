/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Packets as XDP has them, in one buffer or in several. A program includes packet.h before, with CONTEXT as struct xdp_md. */
#pragma once
#include "packet.h"

const volatile bool fragments = false; /* packets may have some: the program is loaded with BPF_F_XDP_HAS_FRAGS */

/* bpf_xdp_load_bytes takes offsets and lengths up to 65535; a super-frame is longer and is copied in two steps. */
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

/* As an interface: the driver hands the program on to no other one. */
#define ANY_INTERFACE 0xffffffffu

/* Whether the packet is of this interface. To ask a packet which it is of is dangerous where ANY_INTERFACE stands for it: veth with
 * GRO takes `rxq->dev` away (veth_disable_xdp) while the program may still run. */
static __always_inline bool is_ours(struct xdp_md *ctx, __u32 interface)
{
	return interface == ANY_INTERFACE || likely(ctx->ingress_ifindex == interface);
}
