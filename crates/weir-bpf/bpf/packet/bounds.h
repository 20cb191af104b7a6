/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Bounds that every verifier since Linux 6.1 understands.
 *
 * Once clang has proved a bound, it may spill the number to the stack, compare one copy and use another, or drop a
 * comparison whose outcome it knows. Before Linux 6.8 the verifier loses track of such copies, and learns nothing from
 * `!= 0`. These functions therefore return the very register that was compared, opaque to clang, and use only
 * comparisons that set a bound. They never change a number that is in bounds; a program that must reject others does so
 * first. */
#pragma once
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

/* Returns `value`, or `most` if `value` is greater. */
static __always_inline __u64 at_most(__u64 value, __u64 most)
{
	asm volatile("if %[value] <= %[most] goto +1; %[value] = %[most]" : [value] "+r"(value) : [most] "r"(most));
	return value;
}

/* Returns `value`, or 1 if it is 0. */
static __always_inline __u64 not_zero(__u64 value)
{
	asm volatile("if %[value] >= 1 goto +1; %[value] = 1" : [value] "+r"(value));
	return value;
}
