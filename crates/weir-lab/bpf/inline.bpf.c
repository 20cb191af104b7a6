/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Intercepts packets inside the kernel, with the work that every method of `weir-bench run methods` does for a packet: checks
 * that it is TCP over IPv4 to one address, copies all of it from its IP header on, sums the copy, calls a function that
 * does nothing, and passes the packet on.
 *
 * Input:    Ethernet frames without a VLAN tag: struct xdp_md (`inline_xdp`), struct __sk_buff (`inline_tc`).
 * Actions:  XDP_PASS, TC_ACT_UNSPEC (tcx lets the next program decide).
 * Maps:     `copies`, `seen`.
 * Kernel:   5.18 (bpf_xdp_load_bytes), 6.6 (tcx). */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "packet/bounds.h"

const volatile __u32 address = 0; /* the destination, as it is in packets */

#define MOST 2048 /* bytes of a packet, a power of two */
#define WORD 8
#define BLOCK 32

struct copy {
	__u8 bytes[MOST + BLOCK];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct copy);
	__uint(max_entries, 1);
} copies SEC(".maps");

struct seen {
	__u64 packets; /* copied and summed */
	__u64 bytes;   /* of the copies */
	__u64 sum;     /* of the copies: 64-bit words with end-around carry */
	__u64 others;  /* not TCP over IPv4 to the address, or longer than a copy can be */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct seen);
	__uint(max_entries, 1);
} seen SEC(".maps");

static __always_inline bool is_wanted(void *data, void *end)
{
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	if ((void *)(ip + 1) > end)
		return false;
	return eth->h_proto == bpf_htons(ETH_P_IP) && ip->version == 4 && ip->protocol == IPPROTO_TCP &&
	       ip->daddr == address;
}

static __always_inline __u64 add(__u64 sum, __u64 word)
{
	sum += word;
	return sum + (sum < word);
}

/* Not inlined: what a method calls for each packet. */
static __noinline int call_out(__u32 length)
{
	asm volatile("" : "+r"(length));
	return length;
}

static __always_inline __u64 add_words(__u64 sum, const struct copy *copy, __u64 at, int words)
{
	const __u64 *from = (const __u64 *)(copy->bytes + at_most(at, MOST));
#pragma unroll
	for (int i = 0; i < words; i++)
		sum = add(sum, from[i]);
	return sum;
}

/* Blocks, single words, and the bytes of the last word that belong to the packet, which are its lowest on these machines. */
static __always_inline void take(struct seen *seen, const struct copy *copy, __u64 length)
{
	__u64 sum = seen->sum, at = 0;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MOST / BLOCK && at + BLOCK <= length; i++, at += BLOCK)
		sum = add_words(sum, copy, at, BLOCK / WORD);
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < BLOCK / WORD && at + WORD <= length; i++, at += WORD)
		sum = add_words(sum, copy, at, 1);
	if (at < length) {
		__u64 last = *(const __u64 *)(copy->bytes + at_most(at, MOST));
		sum = add(sum, last & ((1ULL << (length - at) * 8) - 1));
	}
	seen->packets++;
	seen->bytes += length;
	seen->sum = sum;
	call_out(length);
}

static __always_inline struct seen *seen_here(void)
{
	__u32 key = 0;
	return bpf_map_lookup_elem(&seen, &key);
}

static __always_inline struct copy *copy_here(void)
{
	__u32 key = 0;
	return bpf_map_lookup_elem(&copies, &key);
}

SEC("xdp.frags")
int inline_xdp(struct xdp_md *ctx)
{
	__u32 length = bpf_xdp_get_buff_len(ctx) - ETH_HLEN;
	struct seen *seen = seen_here();
	struct copy *copy = copy_here();
	if (!seen || !copy)
		return XDP_PASS;
	if (is_wanted((void *)(long)ctx->data, (void *)(long)ctx->data_end) && length < MOST &&
	    bpf_xdp_load_bytes(ctx, ETH_HLEN, copy->bytes, not_zero(length)) == 0)
		take(seen, copy, length);
	else
		seen->others++;
	return XDP_PASS;
}

SEC("tcx/ingress")
int inline_tc(struct __sk_buff *ctx)
{
	__u32 length = ctx->len - ETH_HLEN;
	struct seen *seen = seen_here();
	struct copy *copy = copy_here();
	if (!seen || !copy)
		return TC_ACT_UNSPEC;
	if (is_wanted((void *)(long)ctx->data, (void *)(long)ctx->data_end) && length < MOST &&
	    bpf_skb_load_bytes(ctx, ETH_HLEN, copy->bytes, not_zero(length)) == 0)
		take(seen, copy, length);
	else
		seen->others++;
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual MIT/GPL";
