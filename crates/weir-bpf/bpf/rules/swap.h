/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
#pragma once
#include <linux/types.h>

/* Swaps the MAC addresses, so that a switch takes the packet back to where it came from. */
static __always_inline void swap_addresses(__u16 *half)
{
#pragma clang loop unroll(full)
	for (int at = 0; at < 3; at++) {
		__u16 one = half[at];
		half[at] = half[at + 3];
		half[at + 3] = one;
	}
}
