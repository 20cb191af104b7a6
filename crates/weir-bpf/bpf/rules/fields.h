/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The fields of a packet that rules are about, as crates/weir-classify/src/fields.rs finds them. A program defines CONTEXT and
 * `load` first. */
#pragma once
#include "packet/walk.h"
#include "rules/classify.h"

static __always_inline bool is_rule_tag(__be16 type)
{
	return type == bpf_htons(ETHERTYPE_VLAN) || type == bpf_htons(ETHERTYPE_SERVICE_VLAN) ||
	       type == bpf_htons(ETHERTYPE_OLD_SERVICE_VLAN);
}

static __always_inline void find_rule_ports(CONTEXT *ctx, __u32 at, struct fields *fields)
{
	__be16 source, destination;
	__u8 protocol = fields->protocol;
	if (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP && protocol != PROTOCOL_SCTP)
		return;
	if (PEEK(ctx, at, &source)) {
		fields->ports[0] = bpf_ntohs(source);
		fields->there |= HAS_PORT;
	}
	if (PEEK(ctx, at + 2, &destination)) {
		fields->ports[1] = bpf_ntohs(destination);
		fields->there |= HAS_PORT << 1;
	}
}

/* Takes two IPv4 addresses, each where it is. */
static __always_inline void find_addresses4(CONTEXT *ctx, __u32 source_at, __u32 destination_at, struct fields *fields)
{
	__be32 source, destination;
	if (PEEK(ctx, source_at, &source)) {
		fields->addresses[0].high = bpf_ntohl(source);
		fields->there |= HAS_ADDRESS;
	}
	if (PEEK(ctx, destination_at, &destination)) {
		fields->addresses[1].high = bpf_ntohl(destination);
		fields->there |= HAS_ADDRESS << 1;
	}
}

static __always_inline void find_fields4(CONTEXT *ctx, __u32 at, struct fields *fields)
{
	struct iphdr ip;
	fields->kind = KIND_IPV4;
	if (PEEK(ctx, at, &ip)) { /* nearly always */
		fields->addresses[0].high = bpf_ntohl(ip.saddr);
		fields->addresses[1].high = bpf_ntohl(ip.daddr);
		fields->protocol = ip.protocol;
		fields->there = HAS_PROTOCOL | HAS_ADDRESS | HAS_ADDRESS << 1;
		if (!(ip.frag_off & bpf_htons(0x1fff)))
			find_rule_ports(ctx, at + ip.ihl * 4, fields);
		return;
	}
	find_addresses4(ctx, at + 12, at + 16, fields);
	if (PEEK(ctx, at + 9, &fields->protocol))
		fields->there |= HAS_PROTOCOL;
}

static __always_inline void find_fields6(CONTEXT *ctx, __u32 at, struct fields *fields)
{
	struct {
		__be64 high, low;
	} address;
	struct network network;
	fields->kind = KIND_IPV6;
#pragma clang loop unroll(full)
	for (int end = 0; end < 2; end++) {
		if (!PEEK(ctx, at + 8 + end * sizeof(address), &address))
			break;
		fields->addresses[end].high = bpf_be64_to_cpu(address.high);
		fields->addresses[end].low = bpf_be64_to_cpu(address.low);
		fields->there |= HAS_ADDRESS << end;
	}
	if (find_ip6(ctx, at, &network) == FOUND) {
		fields->protocol = network.protocol;
		fields->there |= HAS_PROTOCOL;
		if (!network.later)
			find_rule_ports(ctx, network.next, fields);
	} else if (PEEK(ctx, at + 6, &fields->protocol) && !is_extension(fields->protocol))
		fields->there |= HAS_PROTOCOL;
}

/* Returns the number of a VLAN tag, as in struct Shape. */
static __always_inline __u64 number_of_tag(__u16 tci)
{
	return (tci & 0xfff) + 1;
}

/* Finds the fields of an Ethernet frame. `fields` and `tags` are all 0. `tag`: a stripped VLAN tag, as in classify.h; it is one of
 * those before the network header. `tags` gets the numbers of all, if a condition is about them (`has_tags`). */
static __always_inline void find_fields(CONTEXT *ctx, __u64 tag, struct fields *fields, bool has_tags, __u64 *tags)
{
	__be16 kind;
	__u32 at = ADDRESSES;
	if (!PEEK(ctx, at, &kind))
		return;
	__u32 count = tag >> 32 & 1;
	if (has_tags && count)
		*tags = number_of_tag(tag);
#pragma clang loop unroll(disable)
	for (; count < MOST_RULE_TAGS && is_rule_tag(kind); count++) {
		if (has_tags) {
			__be16 tci;
			__u64 number = PEEK(ctx, at + sizeof(kind), &tci) ? number_of_tag(bpf_ntohs(tci)) : TAG_IS_CUT;
			*tags |= number << count * TAG_BITS;
		}
		at += TAG;
		if (!PEEK(ctx, at, &kind))
			return;
	}
	at = forget(ctx, at + sizeof(kind));
	if (has_tags)
		*tags = forget(ctx, *tags);
	if (kind == bpf_htons(ETHERTYPE_IPV4))
		find_fields4(ctx, at, fields);
	else if (kind == bpf_htons(ETHERTYPE_IPV6))
		find_fields6(ctx, at, fields);
	else if (kind == bpf_htons(ETHERTYPE_ARP) || kind == bpf_htons(ETHERTYPE_RARP)) {
		fields->kind = kind == bpf_htons(ETHERTYPE_ARP) ? KIND_ARP : KIND_RARP;
		find_addresses4(ctx, at + 14, at + 24, fields);
	}
}
