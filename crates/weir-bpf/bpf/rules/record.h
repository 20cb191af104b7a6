/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* A record of a logged packet, as the process reads it. */
#pragma once
#include <linux/types.h>

struct log_record {
	__u64 time;      /* CLOCK_MONOTONIC, ns */
	__u64 tag;       /* a stripped VLAN tag, as in classify.h */
	__u32 rule;      /* NO_RULE: an exact rule that no rule has made */
	__u32 interface; /* that the fate names */
	__u32 length;    /* on the wire */
	__u32 captured;  /* bytes of the packet behind this, without the tag */
	__u8 direction;  /* enum direction */
	__u8 by_exact;
	__u8 fate; /* enum rule_fate */
	__u8 zero[5];
};
