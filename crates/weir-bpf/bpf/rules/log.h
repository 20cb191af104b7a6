/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Packets that are logged: records in a ring buffer, which the process reads. */
#pragma once
#include "rules/passage.h"
#include "rules/record.h"

const volatile __u32 log_snap = 0;      /* the most bytes of a packet */
const volatile bool log_others = false; /* all packets are logged that do not go on */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 12);
} log_records SEC(".maps");

/* Writes a record of at most `size` bytes, a constant: the kernel takes no other. */
static __always_inline void log_in(CONTEXT *ctx, const struct passage *passage, __u32 rule, __u64 fate, bool by_exact,
                                   __u64 captured, const __u64 size)
{
	struct log_record *record = bpf_ringbuf_reserve(&log_records, size, 0);
	if (!record) {
		UNKEPT(logged);
		return;
	}
	*record = (struct log_record){
	        .time = passage->now,
	        .tag = passage->tag,
	        .rule = rule,
	        .length = passage->length,
	        .direction = passage->direction,
	        .by_exact = by_exact,
	        .fate = fate,
	        .interface = fate >> 32,
	};
	if (load(ctx, 0, record + 1, at_most(captured, size - sizeof(*record))))
		record->captured = captured;
	bpf_ringbuf_submit(record, 0);
}

static __noinline __u32 log_packet(CONTEXT *ctx, const struct passage *passage, __u32 rule, __u64 fate, bool by_exact)
{
	__u64 captured = passage->length - (passage->tag >> 32 ? TAG : 0);
	if (captured > log_snap)
		captured = log_snap;
	if (captured <= LOG_SMALL - sizeof(struct log_record))
		log_in(ctx, passage, rule, fate, by_exact, captured, LOG_SMALL);
	else if (captured <= LOG_MIDDLE - sizeof(struct log_record))
		log_in(ctx, passage, rule, fate, by_exact, captured, LOG_MIDDLE);
	else
		log_in(ctx, passage, rule, fate, by_exact, captured, LOG_LARGE);
	return 0;
}
