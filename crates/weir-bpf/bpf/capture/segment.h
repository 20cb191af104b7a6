/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Cuts TCP super-frames into the segments that the wire carries, and fills in checksums that were left to the device.
 * Headers change as in the kernel's own segmentation (tcp_gso_segment, inet_gso_segment).
 *
 * Each segment counts as a packet: it is seen, sampled, and ends in one counter. Some super-frames stay whole: those of other
 * protocols (a program cannot tell UDP segments from fragments), those of IP fragments, those with IPv6 extension
 * headers other than the jumbo payload option, and those with segments of more than `segment_payload` bytes. */
#pragma once
#include <stddef.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include "numbers.h"
#include "pool/sample.h"

const volatile bool segments = false;        /* whether to cut at all */
const volatile __u32 segment_payload = 1500; /* most payload bytes; the chunk has room for them and HEADERS more */

#define ETHERTYPE_AT 12
#define L3_MAX 26 /* Ethernet, two tags in the frame and one beside it */
#define L4_MAX (L3_MAX + 60)
#define L4_SIZE_MAX 60
#define JUMBO_OPTION 8 /* bytes of the hop-by-hop header with the jumbo option, which segments lack */
#define FRAGMENT 0x3fff
#define TCP_FIN 0x01
#define TCP_PSH 0x08
#define TCP_CWR 0x80
#define TCP_FLAGS_AT 13
/* bpf_csum_diff takes no more than this at a time up to Linux 6.12. */
#define SUM_PIECE 512u
#define SUM_PIECES (65536 / SUM_PIECE + 1)

/* A frame, and how it is cut into segments. */
struct cut {
	struct __sk_buff *ctx;
	__u64 flow; /* its hash */
	__u32 queue;
	__u32 direction;
	__u32 count;   /* of segments */
	__u32 size;    /* payload bytes of each segment but the last */
	__u32 payload; /* payload bytes in total */
	__u32 l3;      /* offset of the IP header in a segment */
	__u32 l4;      /* offset of the TCP or UDP header in a segment */
	__u32 l4_from; /* its offset in the frame, without the tag beside it, with the jumbo option */
	__u32 l4_size; /* bytes of that header */
	bool tagged;
	bool ipv6;
	bool tcp;
};

static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Sums the pseudo-header. `addresses`: both addresses, two words for IPv4 or eight for IPv6. */
static __always_inline __u64 pseudo_sum(const __be32 *addresses, int words, bool tcp, __u32 length)
{
	__u64 sum = bpf_htonl(tcp ? IPPROTO_TCP : IPPROTO_UDP) + (__u64)bpf_htonl(length);
#pragma unroll
	for (int i = 0; i < words; i++)
		sum += addresses[i];
	return sum;
}

/* Finds the IP header; false if there is none. `at`: its offset in the frame. */
static __always_inline bool find_ip(struct __sk_buff *ctx, __u32 *at, bool *ipv6)
{
	if (!ethernet) {
		__u8 version;
		*at = 0;
		if (bpf_skb_load_bytes(ctx, 0, &version, 1))
			return false;
		*ipv6 = version >> 4 == 6;
		return *ipv6 || version >> 4 == 4;
	}
	*at = ETHERTYPE_AT;
	__be16 type = 0;
#pragma unroll
	for (int tags = 0; tags < 3; tags++) {
		if (bpf_skb_load_bytes(ctx, *at, &type, sizeof(type)))
			return false;
		/* The tags that the kernel knows: it makes no super-frames with others. */
		if (type != bpf_htons(ETHERTYPE_VLAN) && type != bpf_htons(ETHERTYPE_SERVICE_VLAN))
			break;
		*at += TAG;
	}
	*at += sizeof(type);
	*ipv6 = type == bpf_htons(ETHERTYPE_IPV6);
	return *ipv6 || type == bpf_htons(ETHERTYPE_IPV4);
}

/* Plans how to cut the frame; false if it stays whole. */
static __always_inline bool plan(struct __sk_buff *ctx, struct cut *cut)
{
	__u32 l3, l3_size, protocol, ip_length;
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} ip;
	if (!find_ip(ctx, &l3, &cut->ipv6))
		return false;
	cut->l4_from = l3;
	if (cut->ipv6) {
		if (bpf_skb_load_bytes(ctx, l3, &ip.v6, sizeof(ip.v6)))
			return false;
		l3_size = sizeof(ip.v6);
		protocol = ip.v6.nexthdr;
		ip_length = sizeof(ip.v6) + bpf_ntohs(ip.v6.payload_len);
		if (protocol == IPPROTO_HOPOPTS) {
			__u8 jumbo[4];
			if (bpf_skb_load_bytes(ctx, l3 + l3_size, jumbo, sizeof(jumbo)))
				return false;
			if (jumbo[1] != 0 || jumbo[2] != 0xc2 || jumbo[3] != 4)
				return false;
			protocol = jumbo[0];
			cut->l4_from += JUMBO_OPTION;
		}
	} else {
		if (bpf_skb_load_bytes(ctx, l3, &ip.v4, sizeof(ip.v4)))
			return false;
		l3_size = ip.v4.ihl * 4;
		protocol = ip.v4.protocol;
		ip_length = bpf_ntohs(ip.v4.tot_len);
		if (l3_size < sizeof(ip.v4) || (ip.v4.frag_off & bpf_htons(FRAGMENT)))
			return false;
	}
	cut->l4_from += l3_size;
	cut->tcp = protocol == IPPROTO_TCP;
	cut->l4_size = sizeof(struct udphdr);
	__u16 check, check_at = offsetof(struct udphdr, check);
	if (cut->tcp) {
		__u8 offset;
		if (bpf_skb_load_bytes(ctx, cut->l4_from + TCP_FLAGS_AT - 1, &offset, 1))
			return false;
		cut->l4_size = (offset >> 4) * 4;
		check_at = offsetof(struct tcphdr, check);
		if (cut->l4_size < sizeof(struct tcphdr))
			return false;
	} else if (protocol != IPPROTO_UDP) {
		return false;
	}
	__u32 headers = cut->l4_from + cut->l4_size;
	if (ctx->len < headers || bpf_skb_load_bytes(ctx, cut->l4_from + check_at, &check, sizeof(check)))
		return false;
	cut->payload = ctx->len - headers;
	cut->size = ctx->gso_size;
	cut->count = 1;
	if (cut->size != 0) {
		if (!cut->tcp || cut->size > segment_payload)
			return false;
		if (cut->payload > cut->size)
			cut->count = (cut->payload + cut->size - 1) / cut->size;
	} else {
		/* Not a super-frame. If `check` holds the pseudo-header's sum, the checksum is yet to be filled in. */
		__u32 length = cut->l4_size + cut->payload;
		__u64 sum = cut->ipv6 ? pseudo_sum((__be32 *)&ip.v6.saddr, 8, cut->tcp, length)
		                      : pseudo_sum(&ip.v4.saddr, 2, cut->tcp, length);
		if (check != fold(sum) || l3 + ip_length != ctx->len || cut->payload > segment_payload)
			return false;
		cut->size = cut->payload;
	}
	cut->tagged = ctx->vlan_present;
	cut->l3 = l3 + (cut->tagged ? TAG : 0);
	cut->l4 = cut->l3 + l3_size;
	return true;
}

/* Adds the ones' complement sum of `length` bytes, read up to a multiple of four; the bytes after them must be zero.
 * Before Linux 6.8 the verifier cannot compare a known number with one it only has bounds for, so the loop also ends at
 * the most that a segment can have. */
static __always_inline bool add(__u64 *sum, void *data, __u64 length)
{
	__s64 piece_sum = *sum;
#pragma clang loop unroll(disable)
	for (__u32 piece = 0; piece < SUM_PIECES; piece++) {
		__u32 at = piece * SUM_PIECE;
		if (at >= length || at >= L4_SIZE_MAX + segment_payload)
			break;
		__u64 left = at_most((length - at + 3) & ~3ull, SUM_PIECE);
		piece_sum = bpf_csum_diff(NULL, 0, data + at, left, piece_sum);
		if (piece_sum < 0)
			return false;
	}
	*sum = piece_sum;
	return true;
}

/* Copies all headers as they are in the frame, VLAN tag included. */
static __always_inline bool load_headers(struct cut *cut, void *data, __u64 l4, __u64 l4_size)
{
	struct __sk_buff *ctx = cut->ctx;
	if (cut->tagged) {
		if (!load(ctx, 0, data, ADDRESSES))
			return false;
		put_tag(data, ctx->vlan_proto, ctx->vlan_tci);
		if (l4 <= ADDRESSES + TAG || !load(ctx, ADDRESSES, data + ADDRESSES + TAG, l4 - (ADDRESSES + TAG)))
			return false;
	} else if (!load(ctx, 0, data, l4)) {
		return false;
	}
	return load(ctx, cut->l4_from, data + l4, l4_size);
}

/* Writes segment `index` in full, even if the snap length then cuts it. */
static __always_inline bool lay_segment(struct cut *cut, void *data, __u32 index, __u64 payload)
{
	__u64 l3 = cut->l3, l4 = cut->l4, l4_size = cut->l4_size;
	if (l3 > L3_MAX || l4 > L4_MAX || l4_size > L4_SIZE_MAX || payload > segment_payload)
		return false;
	l3 = at_most(l3, L3_MAX);
	l4 = at_most(l4, L4_MAX);
	l4_size = at_most(l4_size, L4_SIZE_MAX);
	payload = at_most(payload, segment_payload);
	void *l4_data = data + l4, *body = l4_data + l4_size;
	*(__u32 *)(body + payload) = 0; /* `add` reads up to 3 bytes past the payload */
	if (!load_headers(cut, data, l4, l4_size))
		return false;
	__u32 at = index * cut->size, length = l4_size + payload;
	if (payload != 0 && !load(cut->ctx, cut->l4_from + l4_size + at, body, payload))
		return false;

	__u64 sum = 0;
	if (cut->ipv6) {
		struct ipv6hdr *ip = data + l3;
		ip->payload_len = bpf_htons(length);
		ip->nexthdr = cut->tcp ? IPPROTO_TCP : IPPROTO_UDP;
		sum = pseudo_sum((__be32 *)&ip->saddr, 8, cut->tcp, length);
	} else {
		struct iphdr *ip = data + l3;
		__u64 size = at_most(l4 - l3, L4_MAX - L3_MAX);
		ip->tot_len = bpf_htons(size + length);
		ip->id = bpf_htons(bpf_ntohs(ip->id) + index);
		ip->check = 0;
		ip->check = ~fold(bpf_csum_diff(NULL, 0, (__be32 *)ip, size, 0));
		sum = pseudo_sum(&ip->saddr, 2, cut->tcp, length);
	}
	sum = fold(sum);
	if (cut->tcp) {
		struct tcphdr *tcp = l4_data;
		__u8 *flags = l4_data + TCP_FLAGS_AT;
		tcp->seq = bpf_htonl(bpf_ntohl(tcp->seq) + at);
		if (index + 1 < cut->count)
			*flags &= ~(TCP_FIN | TCP_PSH);
		if (index > 0)
			*flags &= ~TCP_CWR;
		tcp->check = 0;
		if (!add(&sum, tcp, length))
			return false;
		tcp->check = ~fold(sum);
	} else {
		struct udphdr *udp = l4_data;
		udp->check = 0;
		if (!add(&sum, udp, length))
			return false;
		__u16 check = ~fold(sum);
		udp->check = check ? check : 0xffff;
	}
	return true;
}

static long deliver_segment(__u32 index, struct cut *cut)
{
	struct record record;
	__u32 at = index * cut->size, payload = cut->payload - at;
	if (payload > cut->size)
		payload = cut->size;
	if (!arrive(&record, cut->queue) || !sample(&record, cut->flow))
		return 0;
	if (!begin(&record, cut->l4 + cut->l4_size + payload))
		return 0;
	void *data = DATA(&record);
	if (lay_segment(cut, data, index, payload)) {
		*(__u32 *)(data + record.captured) = 0; /* zero padding, in case the snap length cuts */
		commit(&record, cut->direction);
	} else {
		record.queue->errors++;
	}
	return 0;
}

/* Returns how many packets `deliver_segments` would make of the frame; 1 if it stays whole. */
static __always_inline __u32 count_segments(struct __sk_buff *ctx)
{
	struct cut cut = {.ctx = ctx};
	return plan(ctx, &cut) ? cut.count : 1;
}

/* Writes the frame as segments, all to one queue; false if it stays whole. */
static __always_inline bool deliver_segments(struct __sk_buff *ctx, __u32 queue, __u64 flow, __u32 direction)
{
	struct cut cut = {.ctx = ctx, .flow = flow, .queue = queue, .direction = direction};
	if (!plan(ctx, &cut))
		return false;
	bpf_loop(cut.count, deliver_segment, &cut, 0);
	return true;
}
