/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Statistics: counts the packets of an interface, in total, for each of several filters, by key, size and gap. Only
 * counters leave the kernel. A program defines CONTEXT and `load` first. */
#pragma once
#include "stat/key.h"
#include "filter/place.h"
#include "shared.h"

struct counter {
	__u64 packets;
	__u64 bytes; /* on the wire, with a stripped VLAN tag */
};

static __always_inline void add(struct counter *counter, __u64 length)
{
	counter->packets++;
	counter->bytes += length;
}

#include "stat/spread.h"

/* For each direction and CPU: a counter for all packets, followed by one for each filter, and by one for packets whose
 * key has no entry, if there are keys. The loader sets the size. Bottom halves are disabled while a program runs, so
 * each counter has one writer. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct counter));
	__uint(max_entries, 2);
} counters SEC(".maps");

/* Packets of a key, by direction. */
struct directions {
	struct counter direction[2];
};

/* The packets of each key, by CPU. All memory is allocated before the first packet; an entry stays until the end. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__type(key, struct key);
	__type(value, struct directions);
	__uint(max_entries, 1);
} keyed SEC(".maps");

const volatile bool of_filter = false; /* only what the one filter accepts is counted by key, size and gap */

/* Stands for the filters, and for what counts the packets they accept (weir-filter/src/emit/ebpf/counting.rs). `tag` is a
 * stripped VLAN tag: presence << 32 | EtherType << 16 | contents, in host byte order. */
static __noinline __u32 place_all(void *ctx, struct counter *all, __u64 length, __u64 tag)
{
	__u32 answer = PLACE;
	/* `memory`: what takes this place writes counters. */
	asm volatile("" : "+r"(answer) : "r"(ctx), "r"(all), "r"(length), "r"(tag) : "memory");
	return answer;
}

/* Returns the counters of a key, which gets an entry if there is room. */
static __always_inline struct directions *directions_of(const struct key *key)
{
	static const struct directions none;
	struct directions *found = bpf_map_lookup_elem(&keyed, key);
	if (found)
		return found;
	/* Another CPU may be faster: then its entry counts. */
	bpf_map_update_elem(&keyed, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&keyed, key);
}

/* Counts a packet by its key; in `others` if that has no entry. */
static __noinline __u32 count_by_key(CONTEXT *ctx, struct counter *others, __u32 direction, __u64 length, __u64 tag)
{
	struct key key = {};
	find_key(ctx, tag, &key);
	struct directions *counts = directions_of(&key);
	add(counts ? &counts->direction[direction == SENT] : others, length);
	return 0;
}

static __always_inline void count(CONTEXT *ctx, __u32 direction, __u64 length, __u64 tag)
{
	struct counter *all = bpf_map_lookup_elem(&counters, &direction);
	if (!all)
		return;
	add(all, length);
	struct counter *filter = &all[of_filter];
	__u64 before = filter->packets;
	place_all(ctx, all, length, tag);
	if (of_filter && filter->packets == before)
		return;
	if (key_fields)
		count_by_key(ctx, &all[1 + of_filter], direction, length, tag);
	if (by_size || by_gap)
		count_spread(direction, length);
}
