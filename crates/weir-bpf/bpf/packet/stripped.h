/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The VLAN tag that a device has stripped from a packet, as its driver reports it. */
#pragma once
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "pool/writer.h"

extern int bpf_xdp_metadata_rx_vlan_tag(const struct xdp_md *ctx, __be16 *vlan_proto, __u16 *vlan_tci) __ksym __weak;

#define EOPNOTSUPP 95 /* asm-generic/errno.h; the kernel's stub for drivers without this function returns it */

struct tag {
	bool there;
	__be16 protocol;
	__u16 tci; /* host byte order */
};

static const struct tag untagged;

/* Reserves room: 2048 instructions that never run. The verifier removes them, and then has space for what it adds.
 *
 * If a program outgrows the pages it was created with, the kernel moves it (bpf_prog_realloc). The device's pointer to
 * the program bound to it (`aux->offload->prog`, seen in Linux 6.12 and 6.18) then points to freed memory. If the
 * device goes away before the program, the kernel uses that pointer under the rtnl lock: an oops, and networking on the
 * machine hangs. The room exceeds what our programs grow by, by thousands of bytes; filters bring their own
 * (filter/link.rs). */
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

/* Asks the driver for the tag. The call only works in programs that are bound to the device, which may not use tail
 * calls. */
static __always_inline struct tag ask(struct xdp_md *ctx)
{
	leave_room();
	struct tag tag = {};
	int error = bpf_xdp_metadata_rx_vlan_tag(ctx, &tag.protocol, &tag.tci);
	if (error) {
		/* Other errors mean that there is no tag. */
		if (unlikely(error == -EOPNOTSUPP))
			count_stray(TAG_UNKNOWN);
		return untagged;
	}
	tag.there = true;
	return tag;
}
