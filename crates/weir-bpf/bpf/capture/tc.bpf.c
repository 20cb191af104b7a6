/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The `tc` source: copies each packet between an interface and the network stack into the pool, and lets it pass.
 *
 * Input:    struct __sk_buff as tcx and cls_bpf give it: from the link-layer header on, the outer VLAN tag beside it.
 * Action:   TC_ACT_UNSPEC: the next program or filter decides as if this one were not there. Rules in place of a filter may have
 *           another.
 * Maps:     writer.h, hash.h, processor.h, ruling.h; both programs share them.
 * Kernel:   6.1 (bpf_ktime_get_tai_ns). */
#include "packet/skb.h"
#include "pool/processor.h"
#include "capture/segment.h"
#include "pool/steer.h"
#include "rules/fate_tc.h"
#include "rules/ruling.h"

const volatile __u64 left_out = 0;      /* cookie of a socket (SO_COOKIE) whose packets are not captured, 0 for none */
const volatile __u32 left_out_mark = 0; /* packets with this mark (SO_MARK) count as filtered, 0: none do */

static __always_inline int deliver(struct __sk_buff *ctx, __u32 direction)
{
	struct record record;
	bool tagged = ctx->vlan_present;
	__u32 writer = this_processor();
	if (unlikely(writer == NO_WRITER))
		return TC_ACT_UNSPEC;
	__u64 flow = needed_hash(ctx, writer);
	__u32 queue = steer(ctx, writer, flow, tagged, ctx->vlan_tci);
	if (segments && deliver_segments(ctx, queue, flow, direction))
		return TC_ACT_UNSPEC;
	if (!arrive(&record, queue) || !sample(&record, flow))
		return TC_ACT_UNSPEC;
	if (!begin(&record, ctx->len + (tagged ? TAG : 0)))
		return TC_ACT_UNSPEC;
	if (tagged ? load_tagged(ctx, &record, ctx->vlan_proto, ctx->vlan_tci) : load_plain(ctx, &record))
		commit(&record, direction);
	else
		record.queue->errors++;
	return TC_ACT_UNSPEC;
}

/* A packet that is not wanted. The filter sees a whole super-frame. If it does not match, it counts as the segments it
 * would have been cut into. */
static __always_inline int pass_by(struct __sk_buff *ctx)
{
	__u32 writer = this_processor();
	if (likely(writer != NO_WRITER))
		filter_out(first_queue(writer), segments ? count_segments(ctx) : 1);
	return TC_ACT_UNSPEC;
}

static __always_inline bool is_left_out(struct __sk_buff *ctx)
{
	return left_out_mark && ctx->mark == left_out_mark;
}

SEC("tc")
int ingress(struct __sk_buff *ctx)
{
	if (is_left_out(ctx))
		return pass_by(ctx);
	bpf_tail_call_static(ctx, &filters, FIRST);
	return deliver(ctx, INBOUND);
}

SEC("tc")
int egress(struct __sk_buff *ctx)
{
	if (left_out && bpf_get_socket_cookie(ctx) == left_out)
		return TC_ACT_UNSPEC;
	if (is_left_out(ctx))
		return pass_by(ctx);
	bpf_tail_call_static(ctx, &filters, SECOND);
	return deliver(ctx, OUTBOUND);
}

/* The filter continues here with packets that match. */
SEC("tc")
int wanted_ingress(struct __sk_buff *ctx)
{
	return deliver(ctx, INBOUND);
}

SEC("tc")
int wanted_egress(struct __sk_buff *ctx)
{
	return deliver(ctx, OUTBOUND);
}

/* Ends the way of a packet that does not just go on, by rules in front. */
static __always_inline int end(struct __sk_buff *ctx, enum direction direction)
{
	struct ruling *ruling = this_ruling();
	if (!ruling || !ruling->captured)
		pass_by(ctx);
	else
		deliver(ctx, direction == SENT ? OUTBOUND : INBOUND);
	return ruling ? carry_out(ctx, direction, ruling->fate, ruling->interface, ruling->turned) : TC_ACT_UNSPEC;
}

SEC("tc")
int ruled_ingress(struct __sk_buff *ctx)
{
	return end(ctx, RECEIVED);
}

SEC("tc")
int ruled_egress(struct __sk_buff *ctx)
{
	return end(ctx, SENT);
}

SEC("tc")
int unwanted(struct __sk_buff *ctx)
{
	return pass_by(ctx);
}

char _license[] SEC("license") = "Dual MIT/GPL";
