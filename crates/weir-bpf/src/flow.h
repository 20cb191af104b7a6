/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* A packet's flow: finding the headers that define it, and hashing them.
 *
 * crates/weir/src/live/flow.rs defines a flow: two endpoints (addresses and ports), in either direction, and the
 * protocol. handlers/tests/steering.rs in that crate compares the two implementations. */
#pragma once
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include "packet.h"
#include "scatter.h"

const volatile __u64 flow_seed = 0; /* of all hashes, so that nobody can craft flows that collide */

#define MOST_HEADERS 8     /* most VLAN tags, MPLS labels or IPv6 extension headers to skip */
#define MOST_EXTENSIONS 4  /* most GTP-U extension headers to skip */
#define HEADERS_END 0x7fff /* headers that begin after this are ignored; never those of the outermost packet */
#define BRIDGED 0x6558     /* Ethernet as the payload of a tunnel (RFC 7637) */
#define VXLAN 4789
#define GENEVE 6081
#define GTP_U 2152

/* A network header, with its extension headers. */
struct network {
	__u64 source, destination; /* IPv4 addresses, or hashes of IPv6 addresses */
	__u64 datagram;            /* a hash of the datagram of which this is a fragment; 0: not a fragment */
	__u32 begin;               /* where the header begins */
	__u32 next;                /* where the next header begins */
	__u8 protocol;
	bool later; /* a fragment that is not the first */
	bool ip6;
};

enum found { NOTHING, CUT, FOUND };

/* Makes clang read fields of `ctx` by offset. It might otherwise compute a field's address before a loop, and the
 * verifier rejects pointers into a context. */
#define PLAIN(ctx) asm volatile("" : "+r"(ctx))

/* Returns `value`, but makes the verifier forget what it knows about it. Otherwise it would check all the code that
 * follows once per path that leads there. Adds 0: the difference of two equal lengths that the verifier does not know
 * to be equal. */
static __always_inline __u64 forget(CONTEXT *ctx, __u64 value)
{
	PLAIN(ctx);
	__u64 length = ctx->data_end - ctx->data, same = length;
	asm volatile("" : "+r"(same));
	return value + (length - same);
}

/* Returns a pointer to `length` bytes at `at`, or NULL if they are not in the first buffer. */
static __always_inline const void *direct(CONTEXT *ctx, __u32 at, __u32 length)
{
	PLAIN(ctx);
	const void *from = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	asm volatile("" : "+r"(at));
	if (at > HEADERS_END)
		return NULL;
	from += at;
	asm volatile("" : "+r"(from));
	return from + length <= end ? from : NULL;
}

/* Copies `sizeof(*to)` bytes at `at` to `to`; false if the packet is too short. */
#define PEEK(ctx, at, to)                                                                                              \
	({                                                                                                             \
		const typeof(*(to)) *from = direct(ctx, at, sizeof(*(to)));                                            \
		bool there = true;                                                                                     \
		if (from)                                                                                              \
			*(to) = *from;                                                                                 \
		else                                                                                                   \
			there = load(ctx, at, to, sizeof(*(to)));                                                      \
		there;                                                                                                 \
	})

static __always_inline __u64 flow_of(const struct network *network, const __be16 ports[2])
{
	__u64 one = scatter(flow_seed ^ network->source ^ ports[0]);
	__u64 other = scatter(flow_seed ^ network->destination ^ ports[1]);
	return scatter(one + other + network->protocol);
}

static __always_inline __u64 datagram_of(const struct network *network, __u64 number)
{
	return scatter(scatter(scatter(flow_seed ^ network->source) ^ network->destination) ^ number);
}

/* Hashes the Ethernet addresses of a packet that is not IP. */
static __always_inline __u64 link_of(CONTEXT *ctx)
{
	struct {
		__u16 words[6];
	} addresses;
	if (!ethernet || !PEEK(ctx, 0, &addresses))
		return 0;
	const __u16 *words = addresses.words;
	__u64 one = (__u64)words[0] << 32 | (__u32)words[1] << 16 | words[2];
	__u64 other = (__u64)words[3] << 32 | (__u32)words[4] << 16 | words[5];
	return scatter(scatter(flow_seed ^ one) + scatter(flow_seed ^ other));
}

static __always_inline bool is_tag(__be16 type)
{
	return type == bpf_htons(0x8100) || type == bpf_htons(0x88a8) || type == bpf_htons(0x9100);
}

static __always_inline enum found find_ip4(CONTEXT *ctx, __u32 at, struct network *network)
{
	struct iphdr ip;
	if (!PEEK(ctx, at, &ip))
		return CUT;
	network->begin = at;
	network->ip6 = false;
	network->source = (__u64)ip.saddr << 16;
	network->destination = (__u64)ip.daddr << 16;
	network->protocol = ip.protocol;
	network->next = at + ip.ihl * 4;
	network->later = ip.frag_off & bpf_htons(0x1fff);
	network->datagram = 0;
	if (ip.frag_off & bpf_htons(0x3fff))
		network->datagram = datagram_of(network, ip.id | (__u64)ip.protocol << 16);
	return FOUND;
}

static __always_inline enum found find_ip6(CONTEXT *ctx, __u32 at, struct network *network)
{
	struct {
		__u32 head;
		__u16 length;
		__u8 next, hops;
		__u32 words[8];
	} ip;
	if (!PEEK(ctx, at, &ip))
		return CUT;
	network->begin = at;
	network->ip6 = true;
	const __u32 *words = ip.words;
	network->source = scatter(flow_seed ^ words[0] ^ (__u64)words[1] << 32);
	network->source = scatter(network->source ^ words[2] ^ (__u64)words[3] << 32);
	network->destination = scatter(flow_seed ^ words[4] ^ (__u64)words[5] << 32);
	network->destination = scatter(network->destination ^ words[6] ^ (__u64)words[7] << 32);
	network->datagram = network->later = 0;
	__u8 protocol = ip.next;
	at += sizeof(ip);
#pragma clang loop unroll(disable)
	for (int header = 0; header < MOST_HEADERS; header++) {
		struct {
			__u8 next, length;
			__be16 place;
			__be32 number;
		} extension;
		if (protocol != IPPROTO_HOPOPTS && protocol != IPPROTO_ROUTING && protocol != IPPROTO_DSTOPTS &&
		    protocol != IPPROTO_MH && protocol != IPPROTO_AH && protocol != IPPROTO_FRAGMENT)
			break;
		if (!PEEK(ctx, at, &extension))
			break;
		at += 8;
		if (protocol == IPPROTO_AH)
			at += extension.length * 4;
		else if (protocol != IPPROTO_FRAGMENT)
			at += extension.length * 8;
		else {
			/* An atomic fragment, which is a whole datagram, is not a fragment (RFC 6946). */
			bool fragment = extension.place & bpf_htons(0xfff9);
			network->later = extension.place & bpf_htons(0xfff8);
			network->datagram = fragment ? datagram_of(network, extension.number) : 0;
		}
		at = forget(ctx, at);
		protocol = extension.next;
		if (network->later)
			break;
	}
	network->protocol = protocol;
	network->next = at;
	return FOUND;
}

/* Returns the EtherType for the IP version at `at`; 0 if it is not IP. */
static __always_inline __be16 kind_of_ip(CONTEXT *ctx, __u32 at)
{
	__u8 first;
	if (!PEEK(ctx, at, &first))
		return 0;
	return first >> 4 == 4 ? bpf_htons(0x0800) : first >> 4 == 6 ? bpf_htons(0x86dd) : 0;
}

/* Skips the MPLS labels at `at` (RFC 3032). Returns the EtherType of the IP header after the last label, or 0. */
static __always_inline __be16 pass_labels(CONTEXT *ctx, __u32 *at)
{
	__be32 label = 0;
#pragma clang loop unroll(disable)
	for (int labels = 0; labels < MOST_HEADERS && !(label & bpf_htonl(0x100)); labels++) {
		if (!PEEK(ctx, *at, &label))
			return 0;
		*at += sizeof(label);
	}
	*at = forget(ctx, *at);
	return label & bpf_htonl(0x100) ? kind_of_ip(ctx, *at) : 0;
}

/* Skips a PPPoE session header (RFC 2516) and the PPP protocol field. Returns the EtherType of the IP header, or 0. */
static __always_inline __be16 pass_session(CONTEXT *ctx, __u32 *at)
{
	struct {
		__be16 version_and_code, session, length, carries;
	} head;
	if (!PEEK(ctx, *at, &head) || head.version_and_code != bpf_htons(0x1100))
		return 0;
	*at += sizeof(head);
	if (head.carries == bpf_htons(0x0021))
		return bpf_htons(0x0800);
	return head.carries == bpf_htons(0x0057) ? bpf_htons(0x86dd) : 0;
}

/* Finds the network header at `at`. `kind`: its EtherType, or BRIDGED if an Ethernet header precedes it. */
static __always_inline enum found find_network(CONTEXT *ctx, __u32 at, __be16 kind, struct network *network)
{
	if (kind == bpf_htons(BRIDGED)) {
		at += ADDRESSES;
		if (!PEEK(ctx, at, &kind))
			return NOTHING;
#pragma clang loop unroll(disable)
		for (int tag = 1; tag < MOST_HEADERS && is_tag(kind); tag++) {
			at += TAG;
			if (!PEEK(ctx, at, &kind))
				return NOTHING;
		}
		at = forget(ctx, at + sizeof(kind));
	}
	if (kind == bpf_htons(0x8847) || kind == bpf_htons(0x8848))
		kind = pass_labels(ctx, &at);
	else if (kind == bpf_htons(0x8864))
		kind = pass_session(ctx, &at);
	if (kind == bpf_htons(0x0800))
		return find_ip4(ctx, at, network);
	if (kind == bpf_htons(0x86dd))
		return find_ip6(ctx, at, network);
	return NOTHING;
}

/* Returns the kind of the outermost header. Without Ethernet, the IP version determines it. */
static __always_inline __be16 outermost(CONTEXT *ctx)
{
	return ethernet ? bpf_htons(BRIDGED) : kind_of_ip(ctx, 0);
}

/* Skips the GTP-U header at `at` (3GPP TS 29.281) and its extension headers; false if no user packet follows. */
static __always_inline bool pass_gtp(CONTEXT *ctx, __u32 *at)
{
	struct {
		__u8 flags, type;
		__be16 length;
		__be32 tunnel;
	} head;
	struct {
		__be16 number;
		__u8 part, next;
	} more;
	/* Version 1, not GTP'; type G-PDU. */
	if (!PEEK(ctx, *at, &head) || head.flags >> 4 != 3 || head.type != 255)
		return false;
	*at += sizeof(head);
	if (!(head.flags & 7))
		return true;
	if (!PEEK(ctx, *at, &more))
		return false;
	*at += sizeof(more);
	__u8 next = head.flags & 4 ? more.next : 0;
#pragma clang loop unroll(disable)
	for (int header = 0; header < MOST_EXTENSIONS && next; header++) {
		__u8 length;
		if (!PEEK(ctx, *at, &length) || !length)
			return false;
		/* The length counts units of four bytes; the last byte is the type of the next header. */
		*at = forget(ctx, *at + length * 4);
		if (!PEEK(ctx, *at - 1, &next))
			return false;
	}
	return !next;
}

/* Finds where the packet in a tunnel begins, and its kind; false if this is not a known tunnel. */
static __always_inline bool enter(CONTEXT *ctx, const struct network *network, __be16 port, __u32 *at, __be16 *kind)
{
	struct {
		__be16 flags, carries;
	} head;
	*at = network->next;
	switch (network->protocol) {
	case IPPROTO_IPIP:
		*kind = bpf_htons(0x0800);
		return true;
	case IPPROTO_IPV6:
		*kind = bpf_htons(0x86dd);
		return true;
	case IPPROTO_GRE: {
		/* RFC 2784 and 2890: version 0, no routing. Flags announce checksum, key and sequence number. */
		if (!PEEK(ctx, *at, &head) || (head.flags & bpf_htons(0x4007)))
			return false;
		__u16 flags = bpf_ntohs(head.flags);
		*at += sizeof(head) + (flags >> 13 & 4) + (flags >> 11 & 4) + (flags >> 10 & 4);
		*kind = head.carries;
		return true;
	}
	case IPPROTO_UDP: {
		if (port != bpf_htons(VXLAN) && port != bpf_htons(GENEVE) && port != bpf_htons(GTP_U))
			return false;
		*at += 8;
		if (port == bpf_htons(GTP_U)) {
			if (!pass_gtp(ctx, at))
				return false;
			*kind = kind_of_ip(ctx, *at);
			return *kind;
		}
		if (!PEEK(ctx, *at, &head))
			return false;
		__u8 first = bpf_ntohs(head.flags) >> 8;
		*at += 8;
		if (port == bpf_htons(VXLAN)) {
			*kind = bpf_htons(BRIDGED);
			return first & 8;
		}
		*at += (first & 0x3f) * 4;
		*kind = head.carries;
		return !(first & 0xc0);
	}
	}
	return false;
}

static __always_inline bool has_ports(__u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_DCCP ||
	       protocol == IPPROTO_SCTP || protocol == IPPROTO_UDPLITE;
}
