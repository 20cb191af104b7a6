/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* One direction of a flow, as the program counts it and the process reads it. The process's view is
 * crates/weir-ring/src/shared.rs; weir-bpf/src/layout.rs does not compile if they differ. */
#pragma once
#include <linux/types.h>

/* Which flow, and in which direction. */
struct way_key {
	__u64 source[2], destination[2]; /* addresses as on the wire; of IPv4 in the low half of the first number */
	__u64 rest; /* from the lowest bit: ports of source and destination as on the wire, 16 bits each; 1 + the VLAN ID of
	               its tag or 0, 16 bits; protocol and version of IP, 8 bits each. 0: nothing is here */
};

/* 128 bytes. The program writes all of it but what is `taken`. */
struct way {
	struct way_key key;
	__u64 first;           /* time of the first packet that was counted and not taken yet */
	__u32 next;            /* behind the last byte that was sent (TCP) */
	__u32 retransmissions; /* since the capture began, whatever flow is here, as `packets` */
	__u32 zero_windows;
	__u32 state; /* bits 0..7 packets that were copied; 8 whether `next` is known */

	__u64 packets; /* packets counted and not copied */
	__u64 bytes;   /* of their IP packets */
	__u64 version; /* odd while the program changes what the process reads */
	__u64 last;    /* time of the last packet, copied or not */
	__u32 lengths; /* of those not taken yet: the shortest, and in the high half the longest */
	__u32 marks;   /* of those: TCP flags, least TTL, greatest TTL, TOS, a byte each from the lowest */

	/* The process writes these: so much it has taken. Another flow may be here once all packets are taken. */
	__u64 taken;
	__u64 taken_bytes;
	__u32 taken_retransmissions;
	__u32 taken_zero_windows;
};

/* Ways of a bucket. */
enum way_bucket { WAYS = 4 };

#define WAY_COPIED 0xff
#define WAY_HAS_NEXT 0x100
