/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Processors as writers. Each processor that is online when the capture starts has a queue; a machine may have a
 * hundred more that never come up. */
#pragma once
#include "pool/writer.h"
#include "shared.h"

/* Maps a processor's number to its writer, or to NO_WRITER. The loader sizes this map for every possible processor, and
 * fills it before it attaches anything. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} processors SEC(".maps");

/* Returns this processor's writer. If the processor came up later, counts the packet as LATE_CPU and returns NO_WRITER. */
static __always_inline __u32 this_processor(void)
{
	__u32 processor = bpf_get_smp_processor_id();
	__u32 *writer = bpf_map_lookup_elem(&processors, &processor);
	if (likely(writer && *writer != NO_WRITER))
		return *writer;
	count_stray(LATE_CPU);
	return NO_WRITER;
}
