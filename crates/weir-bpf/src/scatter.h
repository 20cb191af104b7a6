/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
#pragma once
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

/* splitmix64's finaliser: maps each number to a pseudo-random one. Must match `scatter` in weir-lab's traffic.rs. */
static __always_inline __u64 scatter(__u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* The flow of a frame, where flows come in pseudo-random order. */
static __always_inline __u32 scattered_flow(__u64 sequence, __u32 flows)
{
	return ((scatter(sequence) >> 32) * flows) >> 32;
}
