/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The slots for filters in front of attached programs: see weir-bpf/src/filter/mod.rs. */
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "shared.h"

/* A slot for a filter for each attached program. Filters are replaced here while packets arrive. An empty slot costs
 * one jump. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, HOOKS);
} filters SEC(".maps");

/* The programs a filter continues with, one for each verdict. Each attached program has two: one that writes the packet,
 * and one that counts it as filtered. For more, the loader makes room. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 2 * HOOKS);
} outcomes SEC(".maps");
