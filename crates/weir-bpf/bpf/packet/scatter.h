/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
#pragma once
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

/* splitmix64's finaliser: maps each number to a pseudo-random one. */
static __always_inline __u64 scatter(__u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}
