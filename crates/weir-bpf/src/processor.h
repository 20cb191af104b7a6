/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Processors as writers: a queue for each that is online when the capture begins, since there may be a hundred that never
 * come up. */
#pragma once
#include "writer.h"

#define NO_WRITER ~0u

/* By the processor's number its writer, or NO_WRITER. The loader sets as many entries as there may ever be processors, and
 * writes them before anything is attached. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} processors SEC(".maps");

/* The writer that this processor is; NO_WRITER, and the packet counted as apart, if it came up later. */
static __always_inline __u32 this_processor(void)
{
	__u32 processor = bpf_get_smp_processor_id();
	__u32 *writer = bpf_map_lookup_elem(&processors, &processor);
	if (likely(writer && *writer != NO_WRITER))
		return *writer;
	beside(APART);
	return NO_WRITER;
}
