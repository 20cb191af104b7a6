/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Where a filter is put inside of a program that may not use tail calls: see filter/link.rs. */
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define PLACE 0x706c6163

/* Stands for the filter, and is known by its number. Answers whether the packet is wanted. `tagged`: a VLAN tag was taken off,
 * whose EtherType and contents the others are, in host byte order. */
static __noinline __u32 place(struct xdp_md *ctx, __u32 tagged, __u32 protocol, __u32 tci)
{
	__u32 answer = PLACE;
	/* Else clang would know the answer, and that nobody looks at what is asked. */
	asm volatile("" : "+r"(answer) : "r"(ctx), "r"(tagged), "r"(protocol), "r"(tci));
	return answer;
}
