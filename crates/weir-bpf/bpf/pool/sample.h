/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Sampling: of the packets that match the filter, only some are written. The others count as sampled out. */
#pragma once
#include "packet/hash.h"
#include "shared.h"

const volatile __u32 sampling = SAMPLE_ALL;
const volatile __u64 sample_every = 1;
const volatile __u64 sample_below = 0; /* of 2^32 */

/* Returns whether a packet is selected. `turn`: how many packets of its queue have had a turn before. */
static __always_inline bool is_selected(__u64 turn, __u64 flow)
{
	switch (sampling) {
	case SAMPLE_TURNS:
		return turn % sample_every == 0;
	case SAMPLE_CHANCE:
		return bpf_get_prandom_u32() < sample_below;
	case SAMPLE_FLOWS:
		return (__u32)flow < sample_below;
	}
	return true;
}

/* Like `is_selected`, and counts a packet that is not. To be called between `arrive` and `begin`. */
static __always_inline bool sample(struct record *record, __u64 flow)
{
	if (sampling == SAMPLE_ALL || is_selected(record->queue->turns++, flow))
		return true;
	record->queue->sampled_out++;
	return false;
}
