/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The entry points of a program that has a filter in front, or inside: see weir-bpf/src/filter/mod.rs.
 *
 * Before it includes this, a program defines
 *   ENTRY         the name of the program to attach,
 *   ENTRY_TAGGED  its name for a device that strips VLAN tags,
 *   is_chosen     whether a packet is its business; others pass (chosen.h),
 *   deliver       what becomes of a packet that matches,
 *   pass_by       what becomes of a packet that does not,
 *   end           what becomes of a packet that rules have decided about. */
#pragma once
#include "filter/gate.h"
#include "filter/place.h"
#include "packet/stripped.h"
#include "rules/ruling.h"

SEC("xdp")
int ENTRY(struct xdp_md *ctx)
{
	if (!is_chosen(ctx))
		return XDP_PASS;
	bpf_tail_call_static(ctx, &filters, FIRST);
	return deliver(ctx, &untagged);
}

/* The filter continues here with packets that match. */
SEC("xdp")
int wanted(struct xdp_md *ctx)
{
	return deliver(ctx, &untagged);
}

SEC("xdp")
int unwanted(struct xdp_md *ctx)
{
	return pass_by(ctx);
}

/* Rules in front continue here with packets that do not just go on. */
SEC("xdp")
int ruled(struct xdp_md *ctx)
{
	struct ruling *ruling = this_ruling();
	return ruling ? end(ctx, ruling) : pass_by(ctx);
}

/* For a device whose driver reports the tags it has stripped; the program is bound to it. */
SEC("xdp")
int ENTRY_TAGGED(struct xdp_md *ctx)
{
	if (!is_chosen(ctx))
		return XDP_PASS;
	struct tag tag = ask(ctx);
	return deliver(ctx, &tag);
}

/* A separate function, to have a stack frame of its own: the filter in `place` uses most of its caller's stack. */
static __noinline int go_on(struct xdp_md *ctx, __u32 there, __u32 protocol, __u32 tci)
{
	struct tag tag = {there, protocol, tci};
	return deliver(ctx, &tag);
}

/* Like ENTRY_TAGGED, with a filter inside. */
SEC("xdp")
int filter_tagged(struct xdp_md *ctx)
{
	if (!is_chosen(ctx))
		return XDP_PASS;
	struct tag tag = ask(ctx);
	if (place(ctx, tag.there, bpf_ntohs(tag.protocol), tag.tci))
		return go_on(ctx, tag.there, tag.protocol, tag.tci);
	return pass_by(ctx);
}
