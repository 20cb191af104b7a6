/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The `af_xdp` source: sends each packet to the AF_XDP socket of its receive queue, preceded by its metadata.
 *
 * Input:    struct xdp_md, linear or with fragments.
 * Actions:  XDP_REDIRECT; XDP_PASS for a packet that does not match the filter or is sampled out, or on a queue that was
 *           not chosen or has no socket.
 * Maps:     `sockets`; from writer.h `queues` (the first counters, and when the clock was read), `orders` (the clock's
 *           offset) and `strays`; hash.h. The process writes the records, so the pool's maps are not created.
 * Kernel:   6.1 (bpf_ktime_get_tai_ns). Programs bound to their device need 6.8 and a driver that reports stripped
 *           VLAN tags. */
#define CONTEXT struct xdp_md
#include <bpf/bpf_endian.h>
#include "capture/arrival.h"
#include "packet/buffers.h"
#include "pool/chosen.h"
#include "pool/sample.h"
#include "shared.h"
#include "packet/stripped.h"
#include "pool/writer.h"
#include "rules/fate_xdp.h"
#include "rules/ruling.h"

/* Native XDP: the index of the captured interface; the program may run on others, too. 0: generic XDP, where several
 * CPUs may process packets of one queue at a time. */
const volatile __u32 queues_of = 0;

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32); /* place among the receive queues that are captured */
	__type(value, __u32);
	__uint(max_entries, 1); /* the loader sets the number of queues */
} sockets SEC(".maps");

/* Returns what the counter was before. */
static __always_inline __u64 count(__u64 *counter)
{
	return queues_of == 0 ? __sync_fetch_and_add(counter, 1) : (*counter)++;
}

/* As in sample.h, where a queue has one writer. */
static __always_inline bool sample_here(struct xdp_md *ctx, struct queue *queue)
{
	if (sampling == SAMPLE_ALL)
		return true;
	__u64 flow = sampling == SAMPLE_FLOWS ? flow_hash(ctx, place_of_queue(ctx)) : 0;
	if (is_selected(count(&queue->turns), flow))
		return true;
	count(&queue->sampled_out);
	return false;
}

/* Finds the counters for the packet. */
static __always_inline bool meet(struct xdp_md *ctx, struct record *record)
{
	if (queues_of == 0 || is_ours(ctx, queues_of))
		return find(record, place_of_queue(ctx));
	count_stray(OTHER_INTERFACE);
	return false;
}

static __always_inline int deliver(struct xdp_md *ctx, const struct tag *tag)
{
	struct record record;
	if (!meet(ctx, &record))
		return XDP_PASS;
	count(&record.queue->seen);
	if (!sample_here(ctx, record.queue))
		return XDP_PASS;
	__u64 now = timestamp(record.queue, record.order);
	__u32 length = packet_length(ctx);
	/* If the driver leaves no room, the process reads the clock itself. */
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(struct arrival)) == 0) {
		struct arrival *arrival = (void *)(long)ctx->data_meta;
		if ((void *)(arrival + 1) <= (void *)(long)ctx->data) {
			arrival->timestamp = now;
			arrival->protocol = tag->protocol;
			arrival->tci = bpf_htons(tag->tci);
			arrival->mark = ARRIVAL;
			arrival->length = length;
			arrival->unused = 0;
		}
	}
	int action = bpf_redirect_map(&sockets, place_of_queue(ctx), XDP_PASS);
	if (action != XDP_REDIRECT)
		count(&record.queue->errors);
	return action;
}

static __always_inline int pass_by(struct xdp_md *ctx)
{
	struct record record;
	if (meet(ctx, &record)) {
		count(&record.queue->seen);
		count(&record.queue->filtered);
	}
	return XDP_PASS;
}

/* A packet that is captured is nowhere else, whatever its fate. */
static __always_inline int end(struct xdp_md *ctx, const struct ruling *ruling)
{
	if (ruling->captured)
		return deliver(ctx, &untagged);
	pass_by(ctx);
	return carry_out(ctx, ruling->fate, ruling->interface);
}

#define ENTRY redirect
#define ENTRY_TAGGED redirect_tagged
#include "filter/entries.h"

char _license[] SEC("license") = "Dual MIT/GPL";
