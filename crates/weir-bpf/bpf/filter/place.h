/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Placeholders for filters inside a program: see filter/link.rs. */
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "shared.h"

/* Stands for the filter; the loader finds it by the number PLACE. Returns whether the packet is wanted. `tagged`: the
 * device stripped a VLAN tag, with EtherType `protocol` and contents `tci`, both in host byte order. */
static __noinline __attribute__((unused)) __u32 place(struct xdp_md *ctx, __u32 tagged, __u32 protocol, __u32 tci)
{
	__u32 answer = PLACE;
	/* Keeps clang from assuming the answer and dropping the unused arguments. */
	asm volatile("" : "+r"(answer) : "r"(ctx), "r"(tagged), "r"(protocol), "r"(tci));
	return answer;
}
