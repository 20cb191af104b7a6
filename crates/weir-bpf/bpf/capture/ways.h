/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Counts packets of flows without copying them: of each direction of a flow, the first packets are copied, and those
 * that open or close a connection. What is no plain TCP or UDP in IP is copied, too: fragments, options, tunnels.
 *
 * A writer has ways of its own, so each is written by one program at a time (writer.h). The process reads them and
 * says how much it has taken; a way whose packets are all taken makes room for another when one needs it. If none can,
 * the packet is copied: nothing that was counted is ever forgotten. */
#pragma once
#include <linux/tcp.h>
#include <linux/udp.h>
#include "capture/way.h"
#include "packet/walk.h"
#include "shared.h"

const volatile bool counts_ways = false;
const volatile __u32 way_buckets = 1; /* of each writer, a power of two */
const volatile __u64 way_idle = 0;    /* after such a silence, ns, a flow begins anew */
const volatile __u64 way_rest = 0;    /* ns that a flow has been silent before another one gets its way */
const volatile __u32 way_copies = 0;  /* packets of each way that are copied, below 256 */

struct ways {
	struct way ways[WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct ways);
	__uint(max_entries, 1);
} ways SEC(".maps");

/* What is counted of a packet. */
struct arrived {
	struct way_key key; /* without `rest` */
	__be16 ports[2];
	__u16 vlan;
	__u8 protocol, version;
	__u32 sequence, payload;
	__u16 length; /* of the IP packet */
	__u8 flags, ttl, tos;
	bool no_window;
};

#define TCP_FIN 1
#define TCP_SYN 2
#define TCP_RST 4
#define TCP_ACK 16

#define TCP_FLAGS 13 /* where they are in the header */

/* Reads the headers behind IP's; false if the packet is to be copied. `left`: bytes behind the IP header. */
static __always_inline bool read_transport(CONTEXT *ctx, __u32 at, __u32 left, struct arrived *arrived)
{
	if (arrived->protocol == PROTOCOL_TCP) {
		const struct tcphdr *tcp = direct(ctx, at, sizeof(*tcp));
		if (!tcp || left < sizeof(*tcp))
			return false;
		__u32 head = tcp->doff * 4;
		arrived->ports[0] = tcp->source;
		arrived->ports[1] = tcp->dest;
		arrived->sequence = bpf_ntohl(tcp->seq);
		arrived->flags = ((const __u8 *)tcp)[TCP_FLAGS];
		arrived->no_window = tcp->window == 0;
		arrived->payload = left > head ? left - head : 0;
		return true;
	}
	const struct udphdr *udp = direct(ctx, at, sizeof(*udp));
	if (arrived->protocol != PROTOCOL_UDP || !udp || left < sizeof(*udp) || is_tunnel(udp->source) ||
	    is_tunnel(udp->dest))
		return false;
	arrived->ports[0] = udp->source;
	arrived->ports[1] = udp->dest;
	return true;
}

/* Reads a packet; false if it is to be copied. `tag`: a stripped VLAN tag (`packed`). `arrived` is all 0. */
static __always_inline bool read_packet(CONTEXT *ctx, __u64 tag, struct arrived *arrived)
{
	__u32 at = ADDRESSES + sizeof(__be16);
	__be16 kind;
	const __be16 *type = direct(ctx, ADDRESSES, sizeof(*type));
	if (!ethernet || !type)
		return false;
	kind = *type;
	if (tag >> 32)
		arrived->vlan = (tag & 0xfff) + 1;
	else if (is_tag(kind)) {
		const __be16 *tags = direct(ctx, at, 2 * sizeof(*tags));
		if (!tags)
			return false;
		arrived->vlan = (bpf_ntohs(tags[0]) & 0xfff) + 1;
		kind = tags[1];
		at += TAG;
	}
	if (kind == bpf_htons(ETHERTYPE_IPV4)) {
		const struct iphdr *ip = direct(ctx, at, sizeof(*ip));
		if (!ip || ip->version != 4 || ip->ihl != sizeof(*ip) / 4 || ip->frag_off & bpf_htons(0x3fff))
			return false;
		arrived->length = bpf_ntohs(ip->tot_len);
		if (arrived->length < sizeof(*ip))
			return false;
		arrived->key.source[0] = ip->saddr;
		arrived->key.destination[0] = ip->daddr;
		arrived->version = 4;
		arrived->protocol = ip->protocol;
		arrived->ttl = ip->ttl;
		arrived->tos = ip->tos;
		return read_transport(ctx, at + sizeof(*ip), arrived->length - sizeof(*ip), arrived);
	}
	const struct {
		__be32 head;
		__be16 length;
		__u8 next, hops;
		__u32 words[8];
	} *ip6 = direct(ctx, at, sizeof(*ip6));
	if (kind != bpf_htons(ETHERTYPE_IPV6) || !ip6 || bpf_ntohl(ip6->head) >> 28 != 6)
		return false;
	__u32 length = bpf_ntohs(ip6->length);
	/* 0 is a length that the header has no room for. */
	if (length == 0 || length > 0xffff - sizeof(*ip6))
		return false;
	arrived->length = length + sizeof(*ip6);
	arrived->key.source[0] = ip6->words[0] | (__u64)ip6->words[1] << 32;
	arrived->key.source[1] = ip6->words[2] | (__u64)ip6->words[3] << 32;
	arrived->key.destination[0] = ip6->words[4] | (__u64)ip6->words[5] << 32;
	arrived->key.destination[1] = ip6->words[6] | (__u64)ip6->words[7] << 32;
	arrived->version = 6;
	arrived->protocol = ip6->next;
	arrived->ttl = ip6->hops;
	arrived->tos = bpf_ntohl(ip6->head) >> 20;
	return read_transport(ctx, at + sizeof(*ip6), length, arrived);
}

static __always_inline void complete(struct arrived *arrived)
{
	arrived->key.rest = (__u64)arrived->ports[0] | (__u64)arrived->ports[1] << 16 | (__u64)arrived->vlan << 32 |
	                    (__u64)arrived->protocol << 48 | (__u64)arrived->version << 56;
}

static __always_inline __u32 bucket_of(const struct way_key *key)
{
	__u64 one = scatter(flow_seed ^ key->source[0] ^ key->destination[1]);
	return scatter(one + key->source[1] + (key->destination[0] << 7) + key->rest) & (way_buckets - 1);
}

static __always_inline bool is_same(const struct way_key *one, const struct way_key *other)
{
	return one->rest == other->rest && one->source[0] == other->source[0] &&
	       one->destination[0] == other->destination[0] && one->source[1] == other->source[1] &&
	       one->destination[1] == other->destination[1];
}

static __always_inline bool is_taken(const struct way *way)
{
	return way->packets == *(volatile const __u64 *)&way->taken;
}

static __always_inline struct way *way_at(struct ways *bucket, __u32 place)
{
	asm volatile("%[place] &= 3" : [place] "+r"(place));
	return &bucket->ways[place];
}

/* Returns a way for a flow that has none: one whose packets are all taken, and whose flow has been silent for a while; NULL
 * if there is none. So with more flows than ways some have one all the time, and the others none. */
static __noinline struct way *make_way(struct ways *bucket, const struct way_key *key, __u64 now)
{
	__u32 oldest = WAYS;
	__u64 since = ~0ull;
#pragma unroll
	for (__u32 place = 0; place < WAYS; place++) {
		const struct way *way = &bucket->ways[place];
		if (way->last < since && is_taken(way)) {
			oldest = place;
			since = way->last;
		}
	}
	if (oldest == WAYS || (now > since ? now - since : 0) < way_rest)
		return NULL;
	struct way *way = way_at(bucket, oldest);
	publish(&way->version, way->version + 1);
	way->key = *key;
	way->state = 0;
	way->last = 0;
	publish(&way->version, way->version + 1);
	return way;
}

/* Returns the way of the packet's flow; NULL if there is no room. Most ways are the first of their bucket, and then the others are not
 * even in the caches. */
static __always_inline struct way *find_way(struct ways *bucket, const struct way_key *key, __u64 now)
{
#pragma unroll
	for (__u32 place = 0; place < WAYS; place++)
		if (is_same(&bucket->ways[place].key, key))
			return &bucket->ways[place];
	return make_way(bucket, key, now);
}

/* Notes what was sent. Returns whether it was sent before: crates/weir-flows/src/entry.rs says when. */
static __always_inline bool note_sent(struct way *way, const struct arrived *arrived)
{
	__u32 length = arrived->payload;
	length += !!(arrived->flags & TCP_SYN) + !!(arrived->flags & TCP_FIN);
	__u32 end = arrived->sequence + length, next = way->next;
	if (!(way->state & WAY_HAS_NEXT)) {
		if (length || arrived->flags & TCP_ACK) {
			way->next = end;
			way->state |= WAY_HAS_NEXT;
		}
		return false;
	}
	if ((__s32)(end - next) > 0) {
		way->next = end;
		return false;
	}
	/* A single byte before what comes next asks whether the other side is alive. */
	bool probes = arrived->payload == 1 && length == 1 && arrived->sequence == next - 1;
	return length && !probes;
}

static __always_inline void add_to(struct way *way, const struct arrived *arrived, __u64 now, bool again)
{
	__u16 length = arrived->length;
	__u8 ttl = arrived->ttl;
	publish(&way->version, way->version + 1);
	if (is_taken(way)) {
		way->first = now;
		way->lengths = (__u32)length << 16 | length;
		way->marks = arrived->flags | (__u32)ttl << 8 | (__u32)ttl << 16 | (__u32)arrived->tos << 24;
	} else {
		__u32 lengths = way->lengths, marks = way->marks;
		__u32 shortest = lengths & 0xffff, longest = lengths >> 16, least = marks >> 8 & 0xff,
		      most = marks >> 16 & 0xff;
		shortest = length < shortest ? length : shortest;
		longest = length > longest ? length : longest;
		least = ttl < least ? ttl : least;
		most = ttl > most ? ttl : most;
		way->lengths = longest << 16 | shortest;
		way->marks =
		        (marks & 0xff0000ff) | arrived->flags | least << 8 | most << 16 | (__u32)arrived->tos << 24;
	}
	way->packets++;
	way->bytes += length;
	way->retransmissions += again;
	way->zero_windows += arrived->no_window;
	publish(&way->version, way->version + 1);
}

/* Counts a packet that need not be copied. Returns whether it did. `tag`: a stripped VLAN tag (`packed`). */
static __noinline __u32 count_way(CONTEXT *ctx, __u64 tag, __u32 writer, struct order *order)
{
	struct arrived arrived = {};
	if (!order || !read_packet(ctx, tag, &arrived))
		return false;
	complete(&arrived);
	__u32 index = writer * way_buckets + bucket_of(&arrived.key);
	struct ways *bucket = bpf_map_lookup_elem(&ways, &index);
	if (!bucket)
		return false;
	__u64 now = clock_now(order);
	struct way *way = find_way(bucket, &arrived.key, now);
	if (!way)
		return false;
	__u64 last = way->last;
	if (arrived.flags & TCP_SYN || (now > last && now - last > way_idle))
		way->state = 0;
	if (now > last)
		way->last = now;
	bool again = arrived.protocol == PROTOCOL_TCP && note_sent(way, &arrived);
	if ((way->state & WAY_COPIED) < way_copies) {
		way->state++;
		return false;
	}
	if (arrived.flags & (TCP_SYN | TCP_FIN | TCP_RST))
		return false;
	add_to(way, &arrived, now, again);
	return true;
}
