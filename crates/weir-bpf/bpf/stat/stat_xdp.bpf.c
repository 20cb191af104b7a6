/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Statistics by XDP: counts received packets before the stack. They pass, unless the interface is
 * there for nothing but counting.
 *
 * Input:   struct xdp_md, linear or with fragments.
 * Action:  XDP_PASS, or XDP_DROP of a counted packet if `exclusive`.
 * Maps:    stat.h, and strays of writer.h.
 * Kernel:  6.1. Programs bound to their device need 6.8 and a driver that reports stripped VLAN tags. */
#define CONTEXT struct xdp_md
#include "packet/buffers.h"
#include "pool/chosen.h"
#include "stat/stat.h"
#include "packet/stripped.h"

const volatile __u32 arrived_on = ANY_INTERFACE; /* counts only packets of this interface */
const volatile bool exclusive = false;           /* counted packets go no further */

static __always_inline bool is_counted(struct xdp_md *ctx)
{
	if (!is_chosen(ctx))
		return false;
	if (is_ours(ctx, arrived_on))
		return true;
	count_stray(OTHER_INTERFACE);
	return false;
}

static __always_inline enum xdp_action action(void)
{
	return exclusive ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int stat_xdp(struct xdp_md *ctx)
{
	if (!is_counted(ctx))
		return XDP_PASS;
	count(ctx, RECEIVED, packet_length(ctx), 0);
	return action();
}

/* For a device that strips tags; the program is bound to it. */
SEC("xdp")
int stat_xdp_tagged(struct xdp_md *ctx)
{
	if (!is_counted(ctx))
		return XDP_PASS;
	struct tag tag = ask(ctx);
	count(ctx, RECEIVED, packet_length(ctx) + (tag.there ? TAG : 0), packed(tag.there, tag.protocol, tag.tci));
	return action();
}

char _license[] SEC("license") = "Dual MIT/GPL";
