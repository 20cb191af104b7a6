/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* How packets are spread over sizes and over the gaps between them. A program includes this file after stat.h has
 * defined `struct counter`. */
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "packet/bounds.h"

#define SIZES 11 /* crates/weir-bpf/src/stat/spread.rs has the limits, too */
#define GAPS 64  /* bucket n: gaps of n bits, from 2^(n-1) to 2^n - 1 ns; the last has all longer ones */
#define CHECKSUM 4

struct spread {
	struct counter sizes[SIZES];
	struct counter gaps[GAPS]; /* the packets after the gaps */
	struct counter first;      /* packets without one before */
	__u64 last;                /* time of the last packet; 0: none */
};

/* For each direction and CPU, as the counters. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct spread);
	__uint(max_entries, 2);
} spreads SEC(".maps");

const volatile bool by_size = false;
const volatile bool by_gap = false;

/* Returns the bucket for a size, which includes the checksum: those of RFC 2819 (etherStatsPkts64Octets, ...), and some
 * for what is shorter or longer. */
static __always_inline __u64 size_bucket(__u64 size)
{
	if (size <= 127)
		return size < 64 ? 0 : size == 64 ? 1 : 2;
	if (size <= 511)
		return size <= 255 ? 3 : 4;
	if (size <= 1518)
		return size <= 1023 ? 5 : 6;
	if (size <= 4095)
		return size <= 2047 ? 7 : 8;
	return size <= 9216 ? 9 : 10;
}

/* Returns the number of bits of `value`. */
static __always_inline __u64 bits_of(__u64 value)
{
	__u64 bits = 0;
#pragma unroll
	for (int half = 32; half; half /= 2) {
		__u64 high = (value >> half) != 0;
		/* Hides from the verifier how it was decided: it would follow each way on its own. */
		asm volatile("" : "+r"(high));
		bits += high * half;
		value >>= high * half;
	}
	return bits + value;
}

/* Counts a packet by its size, and by the time since the last one of this direction and CPU. */
static __noinline __u32 count_spread(__u32 direction, __u64 length)
{
	struct spread *spread = bpf_map_lookup_elem(&spreads, &direction);
	if (!spread)
		return 0;
	if (by_size)
		add(&spread->sizes[at_most(size_bucket(length + CHECKSUM), SIZES - 1)], length);
	if (by_gap) {
		__u64 now = bpf_ktime_get_ns(), last = spread->last;
		spread->last = now;
		if (last)
			add(&spread->gaps[at_most(bits_of(now - last), GAPS - 1)], length);
		else
			add(&spread->first, length);
	}
	return 0;
}
