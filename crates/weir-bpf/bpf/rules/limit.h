/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Limits: token buckets, as crates/weir-rules/src/state/buckets.rs has them. A bucket counts nanoseconds times packets: a packet
 * costs a period, and a nanosecond adds as much as the rate has packets. */
#pragma once
#include "rules/passage.h"

/* Packets per period. */
struct limit {
	__u64 packets, period;
	__u64 size;   /* of a bucket */
	__u64 filled; /* after so many nanoseconds, each bucket is full */
	__u32 key;    /* enum limit_key */
};

/* Packets that share a limit, of an action of a rule. */
struct bucket_key {
	struct key packets;
	__u32 action; /* rule * LIMITED + enum limited */
};

struct bucket {
	struct bpf_spin_lock lock;
	__u32 action; /* as in the key */
	__u64 level, then;
};

/* Full ones stay until the process removes them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct bucket_key);
	__type(value, struct bucket);
	__uint(max_entries, 1);
} buckets SEC(".maps");

static __always_inline bool is_turned(const struct key *exact)
{
	const __u64 *source = (const void *)exact->source, *destination = (const void *)exact->destination;
	if (source[0] != destination[0])
		return source[0] > destination[0];
	if (source[1] != destination[1])
		return source[1] > destination[1];
	return exact->source_port > exact->destination_port;
}

/* Makes `passage->other` the key of the packets that share a limit with this one; those that are not IP have nothing in it. */
static __always_inline void find_sharers(struct passage *passage, __u32 key)
{
	struct key *other = &passage->other;
	if (passage->is_flow && key == LIMIT_FLOW) {
		if (is_turned(&passage->exact))
			reverse(passage);
		else
			*other = passage->exact;
		return;
	}
	__builtin_memset(other, 0, sizeof(*other));
	if (!passage->is_flow)
		return;
	copy_address(other->source, key == LIMIT_SOURCE ? passage->exact.source : passage->exact.destination);
	other->ip6 = passage->exact.ip6;
	other->there = BY_SOURCE;
}

/* Takes a packet out of a bucket, and returns whether there was none. */
static __always_inline bool take(struct bucket *bucket, const struct limit *limit, __u64 now)
{
	__u64 level, size = limit->size, period = limit->period, packets = limit->packets, filled = limit->filled;
	bool is_over;
	bpf_spin_lock(&bucket->lock);
	__u64 passed = now > bucket->then ? now - bucket->then : 0;
	level = bucket->level;
	if (passed >= filled || passed * packets > size - level)
		level = size;
	else
		level += passed * packets;
	is_over = level < period;
	bucket->level = is_over ? level : level - period;
	if (passed)
		bucket->then = now;
	bpf_spin_unlock(&bucket->lock);
	return is_over;
}

/* Returns whether a packet is beyond the limit of an action; no packet is within one that is none. */
static __noinline __u32 is_over(struct passage *passage, const struct limit *limit, __u32 action)
{
	struct bucket_key key;
	if (limit->key == LIMIT_NONE)
		return true;
	find_sharers(passage, limit->key);
	key.packets = passage->other;
	key.action = action;
	struct bucket *bucket = bpf_map_lookup_elem(&buckets, &key);
	if (!bucket) {
		struct bucket first = {
		        .action = action,
		        .level = limit->size - limit->period,
		        .then = passage->now,
		};
		long error = bpf_map_update_elem(&buckets, &key, &first, BPF_NOEXIST);
		if (!error)
			return false;
		/* Another CPU may have been faster. */
		bucket = bpf_map_lookup_elem(&buckets, &key);
		if (!bucket) {
			UNKEPT(buckets);
			return false;
		}
	}
	return take(bucket, limit, passage->now);
}
