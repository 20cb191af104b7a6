/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The kernel's half of the pool: opens chunks, writes records, commits them, rings. Every source whose packets are
 * written by an eBPF program includes this file once and brings its own way of copying a packet.
 *
 * One writer per queue. Two programs never write to one `struct queue` at a time, because a writer is either a receive
 * queue of one interface that one NAPI context polls (native XDP of drivers that are known for it), or a CPU on which the
 * program runs with bottom halves disabled (other native XDP, generic XDP, tc); it has a queue of its own, or where packets
 * are steered (steer.h), one for each target. */
#pragma once
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "bounds.h"
#include "gate.h"
#include "pool.h"

/* The loader sets sizes of values and numbers of entries for each capture. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 8192);
	__uint(max_entries, 1);
} pool SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct progress);
	__uint(max_entries, 1);
} chunks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct queue);
	__uint(max_entries, 1);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct order) + 16);
	__uint(max_entries, 1);
} orders SEC(".maps");

/* Carries no data: an entry that is reserved and discarded wakes whoever polls the map's descriptor. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} doorbell SEC(".maps");

/* Packets that are counted beside the queues, by why, one count per CPU; crates/weir-bpf/src/strays.rs reads them. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 4);
} strays SEC(".maps");

#define NO_QUEUE 0 /* on a queue for which the capture has no pool */
#define FOREIGN 1  /* of another interface, to which a driver has handed the program on */
#define APART 2    /* on a processor that has no queue */
#define UNTOLD 3   /* whose driver could not say whether it had taken a VLAN tag off; counted by a queue, too */

/* Load-time constants: the verifier sees them as known numbers and removes what they switch off. */
const volatile __u32 chunk_limit = 4096; /* records begin below this offset; the rest of a chunk is room for the last */
const volatile __u32 snap_len = 2048;    /* bytes kept of a packet, at least 1 */
const volatile __u32 slot_mask = 0;      /* slots of one ring - 1 */
const volatile __u32 interface_id = 0;   /* of this interface in the capture's section */
const volatile __u32 timestamps = TIMESTAMP_KERNEL;
const volatile bool directions = false; /* each record says which way its packet went */

/* Packets of one tick of the kernel's clock that are stamped one by one before TIMESTAMP_BATCH begins to share. */
#define BATCH_EXACT 64
/* Packets that share a stamp from there on. */
#define BATCH_SHARE 32

/* Stores `value` after everything that was stored before it, as seen by a process that loads it with acquire
 * (crates/weir-ring/src/reader.rs). x86 keeps stores in order; elsewhere an exchange, which orders fully, does it. */
static __always_inline void publish(__u64 *word, __u64 value)
{
	barrier();
#if defined(__TARGET_ARCH_x86)
	*(volatile __u64 *)word = value;
#else
	__sync_lock_test_and_set(word, value);
#endif
}

static __noinline void ring_doorbell(struct order *order)
{
	if (__sync_lock_test_and_set(&order->wake_at, ~0ull) == ~0ull)
		return; /* taken by an earlier packet */
	void *entry = bpf_ringbuf_reserve(&doorbell, 8, 0);
	if (entry)
		bpf_ringbuf_discard(entry, BPF_RB_FORCE_WAKEUP);
}

/* Opens the next chunk: of the warm ring, whose memory is still in the caches, or else of the cold one. False if the
 * process has given none: the packet is lost. */
static __always_inline bool open_chunk(struct queue *queue, struct order *order)
{
	__u64 warm = queue->warm, cold = queue->opened - warm, from_warm = 1;
	/* A slot's high half tells whether it was filled for this lap. Its low half is the process's own number, but a
	 * wrong one must not reach a chunk that is not there: the look-up below checks it. The chunk's contents need no
	 * acquire: a process that gives a chunk has no stores to it. */
	__u64 slot = *(volatile __u64 *)&order->slots[warm & slot_mask];
	if (slot >> 32 != (__u32)(warm + 1)) {
		from_warm = 0;
		slot = *(volatile __u64 *)&order->slots[slot_mask + 1 + (cold & slot_mask)];
		if (slot >> 32 != (__u32)(cold + 1))
			return false;
	}
	__u32 chunk = slot;
	struct progress *progress = bpf_map_lookup_elem(&chunks, &chunk);
	if (!progress)
		return false;
	*(volatile __u64 *)&progress->commit = 0;
	publish(&progress->position, queue->opened + 1);
	queue->opened++;
	queue->warm = warm + from_warm;
	queue->chunk = chunk;
	queue->offset = 0;
	queue->records = 0;
	return true;
}

static __always_inline __u64 clock_now(struct order *order)
{
	return bpf_ktime_get_tai_ns() + *(volatile __s64 *)&order->clock_offset;
}

static __always_inline __u64 timestamp(struct queue *queue, struct order *order)
{
	if (timestamps == TIMESTAMP_NONE)
		return 0;
	if (timestamps == TIMESTAMP_KERNEL)
		return clock_now(order);
	__u64 jiffy = bpf_jiffies64();
	if (jiffy != queue->jiffy) {
		queue->jiffy = jiffy;
		queue->stamped = 0;
	}
	if (queue->stamped < BATCH_EXACT || queue->stamped % BATCH_SHARE == 0)
		queue->stamp = clock_now(order);
	queue->stamped++;
	return queue->stamp;
}

/* A record under construction. */
struct record {
	struct queue *queue;
	struct order *order;
	struct progress *progress;
	void *at;       /* where it begins in its chunk */
	__u64 offset;   /* the same, from the chunk's beginning */
	__u64 captured; /* 1..=snap_len */
	__u64 padded;   /* the same, to the next multiple of four */
};

#define DATA(record) ((record)->at + sizeof(struct epb))

static __always_inline void beside(__u32 why)
{
	__u64 *packets = bpf_map_lookup_elem(&strays, &why);
	if (packets)
		++*packets;
}

/* The queue's counters and orders. False if the capture has no pool for the queue. */
static __always_inline bool find(struct record *record, __u32 queue)
{
	record->queue = bpf_map_lookup_elem(&queues, &queue);
	record->order = bpf_map_lookup_elem(&orders, &queue);
	if (unlikely(!record->queue || !record->order)) {
		beside(NO_QUEUE);
		return false;
	}
	return true;
}

/* The same, and counts a packet as seen. */
static __always_inline bool arrive(struct record *record, __u32 queue)
{
	if (!find(record, queue))
		return false;
	record->queue->seen++;
	return true;
}

/* Counts packets as seen, and as filtered. */
static __always_inline void filter_out(__u32 queue, __u32 packets)
{
	struct record record;
	if (!find(&record, queue))
		return;
	record.queue->seen += packets;
	record.queue->filtered += packets;
}

/* Finds room for a packet of `length` bytes and writes all of its record but the data. */
static __always_inline bool begin(struct record *record, __u32 length)
{
	struct queue *queue = record->queue;
	__u64 offset = queue->offset;
	if (offset >= chunk_limit) {
		if (!open_chunk(queue, record->order)) {
			queue->lost++;
			queue->lost_before++;
			return false;
		}
		offset = 0;
	}
	__u32 chunk = queue->chunk;
	void *data = bpf_map_lookup_elem(&pool, &chunk);
	record->progress = bpf_map_lookup_elem(&chunks, &chunk);
	if (unlikely(!data || !record->progress || length == 0)) {
		queue->errors++;
		return false;
	}
	__u64 captured = not_zero(at_most(length, snap_len));
	offset = at_most(offset, chunk_limit - 1);
	record->at = data + offset;
	record->offset = offset;
	record->captured = captured;
	record->padded = (captured + 3) & ~3ull;
	struct epb *epb = record->at;
	__u64 now = timestamp(queue, record->order);
	epb->type = EPB_TYPE;
	epb->interface = interface_id;
	epb->timestamp_high = now >> 32;
	epb->timestamp_low = now;
	epb->captured_length = captured;
	epb->original_length = length;
	/* Zeros for the padding, under the data that comes next. */
	*(__u32 *)(DATA(record) + record->padded - 4) = 0;
	return true;
}

/* Ends the record after its data was copied, and lets the process see it. `direction`: INBOUND or OUTBOUND. */
static __always_inline void commit(struct record *record, __u32 direction)
{
	struct queue *queue = record->queue;
	void *end = DATA(record) + record->padded;
	__u32 total = sizeof(struct epb) + record->padded + 4;
	bool lost = queue->lost_before != 0;
	if (directions) {
		*(struct epb_flags *)end = (struct epb_flags){EPB_FLAGS, sizeof(__u32), direction};
		end += sizeof(struct epb_flags);
		total += sizeof(struct epb_flags);
	}
	if (unlikely(lost)) {
		*(struct epb_lost *)end = (struct epb_lost){EPB_DROPCOUNT, sizeof(__u64), queue->lost_before};
		queue->lost_before = 0;
		end += sizeof(struct epb_lost);
		total += sizeof(struct epb_lost);
	}
	if (directions || unlikely(lost)) {
		*(__u32 *)end = 0; /* the end of options */
		end += sizeof(__u32);
		total += sizeof(__u32);
	}
	struct epb *epb = record->at;
	epb->total_length = total;
	*(__u32 *)end = total;
	__u32 offset = record->offset + total, records = queue->records + 1;
	queue->captured++;
	queue->bytes += epb->original_length;
	queue->records = records;
	queue->offset = offset;
	queue->written += total;
	publish(&record->progress->commit, (__u64)records << 32 | offset | (offset >= chunk_limit ? COMMIT_CLOSED : 0));
	/* The reader stores `wake_at` and then looks at `commit` once more; this side stores `commit` and then loads
	 * `wake_at`. Without a full fence here, which every packet would pay for, the load may run ahead of the store and
	 * both may miss each other. The reader closes that hole: it looks again after the first short sleep
	 * (crates/weir/src/patience.rs, `RECHECK`), when the store has long left this CPU's store buffer. */
	if (unlikely(queue->written >= *(volatile __u64 *)&record->order->wake_at))
		ring_doorbell(record->order);
}
