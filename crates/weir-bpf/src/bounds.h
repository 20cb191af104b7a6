/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Bounds that each verifier since Linux 6.1 learns.
 *
 * clang proves a bound once and then keeps the number where it likes: it spills it to the stack, compares one copy and uses
 * the other, or drops a comparison whose outcome it knows. Before Linux 6.8 the verifier learns nothing of such a copy, and
 * nothing from `!= 0`. Here the number that is used is what comes out of the comparison itself, whatever clang thinks of it,
 * and both are comparisons that set a bound. Neither changes a number that is in bounds: a program that can meet others says
 * first what becomes of them. */
#pragma once
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

/* `value`, which is `most` or less. */
static __always_inline __u64 at_most(__u64 value, __u64 most)
{
	asm volatile("if %[value] <= %[most] goto +1; %[value] = %[most]" : [value] "+r"(value) : [most] "r"(most));
	return value;
}

/* `value`, which is not 0. */
static __always_inline __u64 not_zero(__u64 value)
{
	asm volatile("if %[value] >= 1 goto +1; %[value] = 1" : [value] "+r"(value));
	return value;
}
