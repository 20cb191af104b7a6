/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* A walk over a packet's headers, to the outermost network header, and from there into a tunnel.
 *
 * crates/weir-packet is the same walk in Rust, and has the numbers. tests/walks/ and tests/steer/ compare both. */
#pragma once
#include <linux/ip.h>
#include "numbers.h"
#include "packet/packet.h"
#include "packet/scatter.h"

const volatile __u64 flow_seed = 0; /* of all hashes, so that nobody can craft flows that collide */

#define HEADERS_END 0x7fff /* headers that begin after this are read by a helper */

/* A network header, with its extension headers. */
struct network {
	__u64 source, destination; /* IPv4 addresses, or hashes of IPv6 addresses */
	__u64 datagram;            /* a hash of the datagram of which this is a fragment; 0: not a fragment */
	__u32 begin;               /* where the header begins */
	__u32 next;                /* where the next header begins */
	__u8 protocol;
	bool later; /* a fragment that is not the first */
	bool ip6;
	__u8 zero[5];
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

static __always_inline __u64 datagram_of(const struct network *network, __u64 number)
{
	return scatter(scatter(scatter(flow_seed ^ network->source) ^ network->destination) ^ number);
}

static __always_inline bool is_tag(__be16 type)
{
	return type == bpf_htons(ETHERTYPE_VLAN) || type == bpf_htons(ETHERTYPE_SERVICE_VLAN) ||
	       type == bpf_htons(ETHERTYPE_OLD_SERVICE_VLAN) || type == bpf_htons(ETHERTYPE_OLD_SERVICE_VLAN_2);
}

static __always_inline enum found find_ip4(CONTEXT *ctx, __u32 at, struct network *network)
{
	struct iphdr ip;
	if (!PEEK(ctx, at, &ip) || ip.ihl < sizeof(ip) / 4)
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

static __always_inline bool is_extension(__u8 protocol)
{
	return protocol == PROTOCOL_HOP_BY_HOP || protocol == PROTOCOL_ROUTING || protocol == PROTOCOL_FRAGMENT ||
	       protocol == PROTOCOL_AUTHENTICATION || protocol == PROTOCOL_DESTINATION ||
	       protocol == PROTOCOL_MOBILITY || protocol == PROTOCOL_HIP || protocol == PROTOCOL_SHIM6;
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
	for (int header = 0; header < MOST_EXTENSIONS; header++) {
		struct {
			__u8 next, length;
			__be16 place;
			__be32 number;
		} extension;
		if (!is_extension(protocol))
			break;
		if (!PEEK(ctx, at, &extension))
			break;
		at += 8;
		if (protocol == PROTOCOL_AUTHENTICATION)
			at += extension.length * 4;
		else if (protocol != PROTOCOL_FRAGMENT)
			at += extension.length * 8;
		else {
			network->later = extension.place & bpf_htons(0xfff8);
			/* An atomic fragment, which is a whole datagram, is not a fragment (RFC 6946). */
			if (extension.place & bpf_htons(0xfff9))
				network->datagram = datagram_of(network, extension.number);
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
	return first >> 4 == 4 ? bpf_htons(ETHERTYPE_IPV4) : first >> 4 == 6 ? bpf_htons(ETHERTYPE_IPV6) : 0;
}

/* Skips the MPLS labels at `at` (RFC 3032). Returns the EtherType of the IP header after the last label, or 0. */
static __always_inline __be16 pass_labels(CONTEXT *ctx, __u32 *at)
{
	__be32 label = 0;
#pragma clang loop unroll(disable)
	for (int labels = 0; labels < MOST_LABELS && !(label & bpf_htonl(0x100)); labels++) {
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
	if (head.carries == bpf_htons(PPP_IPV4))
		return bpf_htons(ETHERTYPE_IPV4);
	return head.carries == bpf_htons(PPP_IPV6) ? bpf_htons(ETHERTYPE_IPV6) : 0;
}

/* Finds the network header at `at`. `kind`: its EtherType, or ETHERTYPE_BRIDGED if an Ethernet header precedes it.
 *
 * Not static: the verifier checks a global function once, by itself, instead of on each path that leads to it. It demands
 * that `*network` is initialised, to the last byte, and that a pointer is compared with NULL. */
__noinline enum found find_network(CONTEXT *ctx, __u32 at, __be16 kind, struct network *network)
{
	if (!network)
		return NOTHING;
	if (kind == bpf_htons(ETHERTYPE_BRIDGED)) {
		at += ADDRESSES;
		if (!PEEK(ctx, at, &kind))
			return NOTHING;
#pragma clang loop unroll(disable)
		for (int tag = 0; tag < MOST_TAGS && is_tag(kind); tag++) {
			at += TAG;
			if (!PEEK(ctx, at, &kind))
				return NOTHING;
		}
		at = forget(ctx, at + sizeof(kind));
	}
	if (kind == bpf_htons(ETHERTYPE_MPLS) || kind == bpf_htons(ETHERTYPE_MPLS_UPSTREAM))
		kind = pass_labels(ctx, &at);
	else if (kind == bpf_htons(ETHERTYPE_PPPOE))
		kind = pass_session(ctx, &at);
	if (kind == bpf_htons(ETHERTYPE_IPV4))
		return find_ip4(ctx, at, network);
	if (kind == bpf_htons(ETHERTYPE_IPV6))
		return find_ip6(ctx, at, network);
	return NOTHING;
}

/* Returns the kind of the outermost header. Without Ethernet, the IP version determines it. */
static __always_inline __be16 outermost(CONTEXT *ctx)
{
	return ethernet ? bpf_htons(ETHERTYPE_BRIDGED) : kind_of_ip(ctx, 0);
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
	for (int header = 0; header < MOST_GTP_EXTENSIONS && next; header++) {
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

/* Whether packets of UDP to this port carry others. */
static __always_inline bool is_tunnel(__be16 port)
{
	return port == bpf_htons(PORT_VXLAN) || port == bpf_htons(PORT_LINUX_VXLAN) || port == bpf_htons(PORT_GENEVE) ||
	       port == bpf_htons(PORT_GTP_U);
}

/* Finds where the packet in a tunnel begins, and its kind; false if this is not a known tunnel. */
static __always_inline bool enter(CONTEXT *ctx, const struct network *network, __be16 port, __u32 *at, __be16 *kind)
{
	struct {
		__be16 flags, carries;
	} head;
	*at = network->next;
	switch (network->protocol) {
	case PROTOCOL_IPV4:
		*kind = bpf_htons(ETHERTYPE_IPV4);
		return true;
	case PROTOCOL_IPV6:
		*kind = bpf_htons(ETHERTYPE_IPV6);
		return true;
	case PROTOCOL_GRE: {
		/* RFC 2784 and 2890: version 0, no routing. Flags announce checksum, key and sequence number. */
		if (!PEEK(ctx, *at, &head) || (head.flags & bpf_htons(0x4007)))
			return false;
		__u16 flags = bpf_ntohs(head.flags);
		*at += sizeof(head) + (flags >> 13 & 4) + (flags >> 11 & 4) + (flags >> 10 & 4);
		*kind = head.carries;
		return true;
	}
	case PROTOCOL_UDP: {
		bool vxlan = port == bpf_htons(PORT_VXLAN) || port == bpf_htons(PORT_LINUX_VXLAN);
		if (!is_tunnel(port))
			return false;
		*at += 8;
		if (port == bpf_htons(PORT_GTP_U)) {
			if (!pass_gtp(ctx, at))
				return false;
			*kind = kind_of_ip(ctx, *at);
			return *kind;
		}
		if (!PEEK(ctx, *at, &head))
			return false;
		__u8 first = bpf_ntohs(head.flags) >> 8;
		*at += 8;
		if (vxlan) {
			*kind = bpf_htons(ETHERTYPE_BRIDGED);
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
	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP || protocol == PROTOCOL_DCCP ||
	       protocol == PROTOCOL_SCTP || protocol == PROTOCOL_UDP_LITE;
}
