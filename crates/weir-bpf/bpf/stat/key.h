/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* A packet's key: those of its fields by which it is counted. A field that the packet lacks, or that is cut off, is
 * missing from its key, so every packet has one. Fields are those of the outermost IP header, as walk.h finds it. */
#pragma once
#include "packet/walk.h"
#include "shared.h"

#define BY_ADDRESSES (BY_SOURCE | BY_DESTINATION)
#define BY_PORTS (BY_SOURCE_PORT | BY_DESTINATION_PORT | BY_PORT)

const volatile __u32 key_fields = 0;

/* Bytes of fields that are not in `there` are 0. Numbers are in host byte order. */
struct key {
	__u8 source[16], destination[16]; /* an IPv4 address is in the first four bytes */
	__u16 source_port, destination_port, port;
	__u16 vlan;
	__u8 protocol;
	__u8 there; /* the fields that are present */
	__u8 ip6;   /* the addresses are IPv6 */
	__u8 zero;
};

/* `tag`: a stripped VLAN tag, as in stat.h. */
static __always_inline void find_vlan(CONTEXT *ctx, __u64 tag, struct key *key)
{
	struct {
		__be16 type, tci;
	} inside;
	__u16 tci = tag;
	if (!(tag >> 32)) {
		if (!ethernet || !PEEK(ctx, ADDRESSES, &inside) || !is_tag(inside.type))
			return;
		tci = bpf_ntohs(inside.tci);
	}
	key->vlan = tci & 0xfff;
	key->there |= BY_VLAN;
}

static __always_inline void find_addresses(CONTEXT *ctx, const struct network *network, struct key *key)
{
	struct {
		__u32 source, destination;
	} ip4;
	struct {
		__u32 source[4], destination[4];
	} ip6;
	if (network->ip6) {
		if (!PEEK(ctx, network->begin + 8, &ip6))
			return;
		if (key_fields & BY_SOURCE)
			__builtin_memcpy(key->source, ip6.source, sizeof(ip6.source));
		if (key_fields & BY_DESTINATION)
			__builtin_memcpy(key->destination, ip6.destination, sizeof(ip6.destination));
		key->ip6 = 1;
	} else {
		if (!PEEK(ctx, network->begin + 12, &ip4))
			return;
		if (key_fields & BY_SOURCE)
			__builtin_memcpy(key->source, &ip4.source, sizeof(ip4.source));
		if (key_fields & BY_DESTINATION)
			__builtin_memcpy(key->destination, &ip4.destination, sizeof(ip4.destination));
	}
	key->there |= key_fields & BY_ADDRESSES;
}

static __always_inline void find_ports(CONTEXT *ctx, const struct network *network, struct key *key)
{
	struct {
		__be16 source, destination;
	} transport;
	if (network->later || !has_ports(network->protocol) || !PEEK(ctx, network->next, &transport))
		return;
	__u16 source = bpf_ntohs(transport.source), destination = bpf_ntohs(transport.destination);
	if (key_fields & BY_SOURCE_PORT)
		key->source_port = source;
	if (key_fields & BY_DESTINATION_PORT)
		key->destination_port = destination;
	if (key_fields & BY_PORT)
		key->port = source < destination ? source : destination;
	key->there |= key_fields & BY_PORTS;
}

/* Finds the packet's key. `key` is all 0. */
static __always_inline void find_key(CONTEXT *ctx, __u64 tag, struct key *key)
{
	struct network network = {};
	if (key_fields & BY_VLAN)
		find_vlan(ctx, tag, key);
	if (!(key_fields & ~BY_VLAN) || find_network(ctx, 0, outermost(ctx), &network) != FOUND)
		return;
	if (key_fields & BY_PROTOCOL) {
		key->protocol = network.protocol;
		key->there |= BY_PROTOCOL;
	}
	if (key_fields & BY_ADDRESSES)
		find_addresses(ctx, &network, key);
	if (key_fields & BY_PORTS)
		find_ports(ctx, &network, key);
}
