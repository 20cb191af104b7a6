/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Runs a filter without a writer, to see what it decides and what it costs. The return value tells the decision.
 *
 * Input:    struct xdp_md.
 * Returns:  10 without a filter, 11 wanted, 12 not wanted, 13 the verdict after these. These are not XDP actions: do not
 *           attach it to an interface.
 * Maps:     gate.h.
 * Kernel:   6.1. */
#include "filter/gate.h"

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

SEC("xdp")
int bare_third(struct xdp_md *ctx)
{
	return 13;
}

char _license[] SEC("license") = "Dual MIT/GPL";
