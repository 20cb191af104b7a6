/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* What is around a filter, without a writer: what becomes of a packet is told by what is returned, to see how a filter
 * decides and what it costs.
 *
 * Input:    struct xdp_md.
 * Verdicts: no XDP actions, so it is of no use on an interface: 10 without a filter, 11 wanted, 12 not wanted.
 * Maps:     gate.h.
 * Kernel:   6.1. */
#include "gate.h"

SEC("xdp")
int bare(struct xdp_md *ctx)
{
	bpf_tail_call_static(ctx, &filters, FIRST);
	return 10;
}

SEC("xdp")
int bare_wanted(struct xdp_md *ctx)
{
	return 11;
}

SEC("xdp")
int bare_unwanted(struct xdp_md *ctx)
{
	return 12;
}

char _license[] SEC("license") = "Dual MIT/GPL";
