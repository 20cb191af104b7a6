/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Statistics: counts the packets of an interface, in total and for each of several filters. Only counters leave the
 * kernel. Packets pass, unless the interface is there for nothing but counting.
 *
 * Input:    struct xdp_md, linear or with fragments; struct __sk_buff as in tc.bpf.c.
 * Verdicts: XDP_PASS, or XDP_DROP of a counted packet if `exclusive`; TC_ACT_UNSPEC.
 * Maps:     counters, and strays of writer.h.
 * Kernel:   6.1. Programs bound to their device need 6.8 and a driver that reports stripped VLAN tags. */
#include <linux/pkt_cls.h>
#define CONTEXT struct xdp_md
#include "buffers.h"
#include "chosen.h"
#include "place.h"
#include "stripped.h"

struct counter {
	__u64 packets;
	__u64 bytes; /* on the wire, with a stripped VLAN tag */
};

/* For each direction and CPU: a counter for all packets, followed by one for each filter. The loader sets the size.
 * Bottom halves are disabled while a program runs, so each counter has one writer. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct counter));
	__uint(max_entries, 2);
} counters SEC(".maps");

#define RECEIVED 0
#define SENT 1

const volatile __u32 arrived_on = ANY_INTERFACE; /* with XDP, counts only packets of this interface */
const volatile bool exclusive = false;           /* with XDP, counted packets go no further */

/* Stands for the filters, and for what counts the packets they accept (weir-filter/src/emit/ebpf/tally.rs). `tag` is a
 * stripped VLAN tag: presence << 32 | EtherType << 16 | contents, in host byte order. */
static __noinline __u32 place_all(void *ctx, struct counter *all, __u64 length, __u64 tag)
{
	__u32 answer = PLACE;
	asm volatile("" : "+r"(answer) : "r"(ctx), "r"(all), "r"(length), "r"(tag));
	return answer;
}

static __always_inline void count(void *ctx, __u32 direction, __u64 length, __u64 tag)
{
	struct counter *all = bpf_map_lookup_elem(&counters, &direction);
	if (!all)
		return;
	all->packets++;
	all->bytes += length;
	place_all(ctx, all, length, tag);
}

static __always_inline bool is_counted(struct xdp_md *ctx)
{
	if (!is_chosen(ctx))
		return false;
	if (is_ours(ctx, arrived_on))
		return true;
	beside(FOREIGN);
	return false;
}

static __always_inline enum xdp_action verdict(void)
{
	return exclusive ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int stat_xdp(struct xdp_md *ctx)
{
	if (!is_counted(ctx))
		return XDP_PASS;
	count(ctx, RECEIVED, packet_length(ctx), 0);
	return verdict();
}

/* For a device that strips tags; the program is bound to it. */
SEC("xdp")
int stat_xdp_tagged(struct xdp_md *ctx)
{
	if (!is_counted(ctx))
		return XDP_PASS;
	struct tag tag = ask(ctx);
	__u64 packed = (__u64)tag.there << 32 | (__u64)bpf_ntohs(tag.protocol) << 16 | tag.tci;
	count(ctx, RECEIVED, packet_length(ctx) + (tag.there ? TAG : 0), packed);
	return verdict();
}

static __always_inline int count_buffer(struct __sk_buff *ctx, __u32 direction)
{
	count(ctx, direction, ctx->len + (ctx->vlan_present ? TAG : 0), 0);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int stat_ingress(struct __sk_buff *ctx)
{
	return count_buffer(ctx, RECEIVED);
}

SEC("tc")
int stat_egress(struct __sk_buff *ctx)
{
	return count_buffer(ctx, SENT);
}

char _license[] SEC("license") = "Dual MIT/GPL";
