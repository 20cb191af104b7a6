/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Where a filter is put in front of an attached program: see filter.rs. */
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* For each program that is attached, a place for a filter, by which it is exchanged while packets come. An empty place costs
 * a jump over it. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 2);
} filters SEC(".maps");

/* What a filter goes on with: for each program that is attached, the one that writes the packet, and then the one that
 * counts it as filtered. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 4);
} outcomes SEC(".maps");

#define FIRST 0
#define SECOND 1
