/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The kernel's half of the pool: opens chunks, writes and commits records, rings the doorbell. Each source whose
 * packets are written by an eBPF program includes this file once and brings its own code to copy a packet.
 *
 * Each queue has one writer. A writer is either a receive queue of one interface, polled by one NAPI context (native
 * XDP, with drivers known to do so), or a CPU on which the program runs with bottom halves disabled (other native XDP,
 * generic XDP, tc). It has a queue of its own, or one per target if packets are steered (steer.h). Two programs
 * therefore never write to one `struct queue` at a time. */
#pragma once
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "packet/bounds.h"
#include "filter/gate.h"
#include "pool/pool.h"
#include "shared.h"

/* The loader sets the value sizes and numbers of entries for each capture. */
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

/* Carries no data: reserving and discarding an entry wakes a process that polls the map's descriptor. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} doorbell SEC(".maps");

/* Packets counted outside the queues, by reason and CPU; crates/weir-bpf/src/pool/strays.rs reads them. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, STRAYS);
} strays SEC(".maps");

/* Load-time constants: the verifier knows their values and removes the code they disable. */
const volatile __u32 chunk_limit = 4096; /* records begin below this offset; the rest is room for the last record */
const volatile __u32 snap_len = 2048;    /* bytes kept of a packet, at least 1 */
const volatile __u32 slot_mask = 0;      /* slots of one ring - 1 */
const volatile __u32 interface_id = 0;   /* of this interface in the capture's section */
const volatile __u32 timestamps = TIMESTAMP_KERNEL;
const volatile bool directions = false; /* each record states its packet's direction */

/* With TIMESTAMP_BATCH, the packets per tick of the kernel's clock that get a timestamp of their own. */
#define BATCH_EXACT 64
/* After those, the packets that share one timestamp. */
#define BATCH_SHARE 32

/* Stores `value` with release semantics: a process that loads it with acquire (crates/weir-ring/src/consumer.rs) sees all
 * earlier stores. x86 keeps stores in order; other architectures need an exchange, which is a full barrier. */
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

/* Opens the next chunk, from the warm ring, whose memory is still cached, or else from the cold ring. Returns false if
 * both are empty: the packet is lost. */
static __always_inline bool open_chunk(struct queue *queue, struct order *order)
{
	__u64 warm = queue->warm, cold = queue->opened - warm, from_warm = 1;
	/* A slot's high half tells whether it was filled for this lap. Its low half comes from the process; the lookup
	 * below rejects a chunk that does not exist. The chunk's contents need no acquire, because a process that hands
	 * back a chunk has not stored to it. */
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
	__u64 offset;   /* `at` as an offset in the chunk */
	__u64 captured; /* 1..=snap_len */
	__u64 padded;   /* `captured`, rounded up to a multiple of four */
};

#define DATA(record) ((record)->at + sizeof(struct epb))

static __always_inline void count_stray(enum stray why)
{
	__u64 *packets = bpf_map_lookup_elem(&strays, &why);
	if (packets)
		++*packets;
}

/* Looks up the queue's counters and orders; false if the capture has no pool for the queue. */
static __always_inline bool find(struct record *record, __u32 queue)
{
	record->queue = bpf_map_lookup_elem(&queues, &queue);
	record->order = bpf_map_lookup_elem(&orders, &queue);
	if (unlikely(!record->queue || !record->order)) {
		count_stray(NO_QUEUE);
		return false;
	}
	return true;
}

/* Like `find`, and counts a packet as seen. */
static __always_inline bool arrive(struct record *record, __u32 queue)
{
	if (!find(record, queue))
		return false;
	record->queue->seen++;
	return true;
}

/* Counts packets as seen and as filtered. */
static __always_inline void filter_out(__u32 queue, __u32 packets)
{
	struct record record;
	if (!find(&record, queue))
		return;
	record.queue->seen += packets;
	record.queue->filtered += packets;
}

/* Finds room for a packet of `length` bytes and writes the record's header. */
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
	/* Zeros the padding; the data is written over it next. */
	*(__u32 *)(DATA(record) + record->padded - 4) = 0;
	return true;
}

/* Completes the record once its data is copied, and publishes it. `direction`: INBOUND or OUTBOUND. */
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
		*(__u32 *)end = 0; /* end of options */
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
	/* The consumer stores `wake_at` and then checks `commit` again; this side stores `commit` and then loads
	 * `wake_at`. Without a full fence, which would slow down every packet, the load may overtake the store, and
	 * each side may miss the other. The consumer closes this hole: it checks again after a first short sleep
	 * (crates/weir/src/live/wait/strategy.rs, `RECHECK`), long after the store has left this CPU's store buffer. */
	if (unlikely(queue->written >= *(volatile __u64 *)&record->order->wake_at))
		ring_doorbell(record->order);
}
