/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The VLAN tag that a device took off a packet, as its driver tells it. */
#pragma once
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "writer.h"

extern int bpf_xdp_metadata_rx_vlan_tag(const struct xdp_md *ctx, __be16 *vlan_proto, __u16 *vlan_tci) __ksym __weak;

#define EOPNOTSUPP 95 /* asm-generic/errno.h; what stands in for a driver that has no such function answers it */

struct tag {
	bool there;
	__be16 protocol;
	__u16 tci; /* host byte order */
};

static const struct tag untagged;

/* 2048 instructions that never run: room for what the verifier puts into the program once it has thrown them away.
 *
 * Where a program needs more pages than it was made with the kernel moves it (bpf_prog_realloc), and what a device knows of
 * the programs that are bound to it (`aux->offload->prog`, seen in Linux 6.12 and 6.18) is then the memory that was freed. A
 * device that goes before such a program uses it under the rtnl lock: an oops, and the network of the machine stands still.
 * Thousands of bytes more than our programs grow by; filters bring their own room (filter/link.rs). */
static __always_inline void leave_room(void)
{
	__u64 zero;
	asm volatile("%[zero] = 0\n"
	             "if %[zero] == 0 goto +2048\n"
	             ".rept 2048\n"
	             "%[zero] = 0\n"
	             ".endr"
	             : [zero] "=r"(zero));
}

/* For programs that are bound to the device, as the call demands: they may not use tail calls. */
static __always_inline struct tag ask(struct xdp_md *ctx)
{
	leave_room();
	struct tag tag = {};
	int error = bpf_xdp_metadata_rx_vlan_tag(ctx, &tag.protocol, &tag.tci);
	if (error) {
		/* Other errors say that there is none. */
		if (unlikely(error == -EOPNOTSUPP))
			beside(UNTOLD);
		return untagged;
	}
	tag.there = true;
	return tag;
}
