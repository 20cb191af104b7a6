/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The `xdp` source: copies each packet that an interface receives into the pool, then passes or drops it.
 *
 * Input:    struct xdp_md, linear or with fragments.
 * Actions:  XDP_PASS (mode pass) or XDP_DROP (mode exclusive), whether or not the copy succeeded. Packets that do not
 *           match the filter or are sampled out pass in both modes, as do those on queues that were not chosen:
 *           exclusive mode only takes what was asked for.
 * Rules:    in place of a filter, they may have another action for a packet, copied or not.
 * Maps:     writer.h, hash.h, processor.h, ruling.h, ways.h.
 * Kernel:   6.1 (bpf_ktime_get_tai_ns). Programs bound to their device need 6.8 and a driver that reports stripped
 *           VLAN tags. */
#define CONTEXT struct xdp_md
#include "packet/buffers.h"
#include "capture/ways.h"
#include "pool/chosen.h"
#include "pool/processor.h"
#include "pool/steer.h"
#include "packet/stripped.h"
#include "rules/fate_xdp.h"
#include "rules/ruling.h"

const volatile __u32 action = XDP_PASS;
const volatile __u32 queues_of = 0; /* writers are receive queues of the interface with this index; 0: processors */

/* Returns the packet's writer. If it has none, counts it as a stray and returns NO_WRITER. */
static __always_inline __u32 writer_of(struct xdp_md *ctx)
{
	if (queues_of == 0)
		return this_processor();
	if (is_ours(ctx, queues_of))
		return place_of_queue(ctx);
	count_stray(OTHER_INTERFACE);
	return NO_WRITER;
}

static __always_inline int deliver(struct xdp_md *ctx, const struct tag *tag)
{
	struct record record;
	__u32 writer = writer_of(ctx);
	if (unlikely(writer == NO_WRITER))
		return action;
	__u64 flow = needed_hash(ctx, writer);
	if (!arrive(&record, steer(ctx, writer, flow, tag->there, tag->tci)))
		return action;
	if (counts_ways && count_way(ctx, packed(tag->there, tag->protocol, tag->tci), writer, record.order)) {
		record.queue->counted++;
		return action;
	}
	if (!sample(&record, flow))
		return XDP_PASS;
	if (!begin(&record, packet_length(ctx) + (tag->there ? TAG : 0)))
		return action;
	if (tag->there ? load_tagged(ctx, &record, tag->protocol, tag->tci) : load_plain(ctx, &record))
		commit(&record, INBOUND);
	else
		record.queue->errors++;
	return action;
}

static __always_inline int pass_by(struct xdp_md *ctx)
{
	__u32 writer = writer_of(ctx);
	if (likely(writer != NO_WRITER))
		filter_out(first_queue(writer), 1);
	return XDP_PASS;
}

static __always_inline int end(struct xdp_md *ctx, const struct ruling *ruling)
{
	if (ruling->captured)
		deliver(ctx, &untagged);
	else
		pass_by(ctx);
	return carry_out(ctx, ruling->fate, ruling->interface);
}

#define ENTRY capture
#define ENTRY_TAGGED capture_tagged
#include "filter/entries.h"

char _license[] SEC("license") = "Dual MIT/GPL";
