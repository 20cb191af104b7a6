/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Numbers that programs share with the process. They are written here alone: weir-bpf/src/layout.rs has what clang says about
 * them (layout.bpf.c). */
#pragma once

/* When a program reads the clock. */
enum timestamps {
	TIMESTAMP_NONE,
	TIMESTAMP_KERNEL, /* for each packet */
	TIMESTAMP_BATCH,  /* for each packet while there are few, otherwise once per group */
};

/* What decides a packet's target. */
enum steering {
	STEER_NONE,
	STEER_FLOW,        /* the outermost flow */
	STEER_INNER,       /* the innermost flow (`inner_flows`) */
	STEER_ROUND_ROBIN, /* the previous packet's target: in turn */
	STEER_VLAN,        /* the outermost VLAN ID, modulo the number of targets */
};

/* Which packets are selected. */
enum sampling {
	SAMPLE_ALL,
	SAMPLE_TURNS,  /* of each queue, the first packet and every `sample_every`th after it */
	SAMPLE_CHANCE, /* packets for which a random number is below `sample_below` */
	SAMPLE_FLOWS,  /* flows for which the low half of the hash is; steering uses the high half */
};

/* The fields of a key, as bits. */
enum key_field {
	BY_SOURCE = 1 << 0,
	BY_DESTINATION = 1 << 1,
	BY_SOURCE_PORT = 1 << 2,
	BY_DESTINATION_PORT = 1 << 3,
	BY_PORT = 1 << 4, /* the lower of the two ports */
	BY_PROTOCOL = 1 << 5,
	BY_VLAN = 1 << 6, /* of the outermost tag */
};

/* The directions of statistics. */
enum direction {
	RECEIVED,
	SENT,
};

/* The directions of forwarding. */
enum forward_direction {
	FORTH,
	BACK,
	FORWARD_DIRECTIONS,
};

/* The attached programs that can have a filter in front. */
enum hooks {
	FIRST,
	SECOND,
	HOOKS,
};

/* Where a number stands for none, or for any. */
enum no_number {
	NO_WRITER = ~0u,     /* a processor without a writer */
	NO_RULE = ~0u,       /* an exact rule that no rule has made */
	ANY_INTERFACE = ~0u, /* every interface: the driver never hands the program on to another one */
};

/* Marks. */
enum mark {
	ARRIVAL = 0x77656972, /* `struct arrival` was written for this packet */
	PLACE = 0x706c6163,   /* the function that stands for a filter */
	OTHER_PLACE,          /* another such */
};

enum commit {
	COMMIT_CLOSED = 1u << 31,
};

/* Kinds of network header, as rules tell them apart. */
enum rule_kind { KIND_OTHER, KIND_IPV4, KIND_IPV6, KIND_ARP, KIND_RARP, RULE_KINDS };

/* What happens to a packet by a rule. */
enum rule_fate { FATE_PASS, FATE_BLOCK, FATE_BOUNCE, FATE_REFLECT };

/* What a capture does with a packet by a rule. */
enum rule_capture { CAPTURE_IGNORE, CAPTURE_ALL, CAPTURE_SAMPLE, CAPTURE_FIRST };

/* The verdict of rules in front of a capture on a packet that does not just go on: `struct ruling` says the rest. It is behind
 * those of filters. */
enum verdict_of_rules { RULED = 2 };

/* Which packets share a limit. */
enum limit_key { LIMIT_NONE, LIMIT_SOURCE, LIMIT_DESTINATION, LIMIT_FLOW };

/* The actions of a rule that may have a limit. */
enum limited { LIMITED_FATE, LIMITED_LEARN, LIMITED_LOG, LIMITED };

/* Bytes of a record of a logged packet. */
enum log_sizes { LOG_SMALL = 128, LOG_MIDDLE = 1600, LOG_LARGE = 9728 };

/* How many rules may continue. */
enum continuing { MOST_CONTINUING = 16 };

/* Dimensions of the tables of rules. */
enum rule_tables {
	KIND_PROTOCOLS = 257, /* of a kind: none, and each number */
	TAG_IS_CUT = 4097,    /* the number of a VLAN tag that is; others have their VLAN ID's plus 1 */
	MOST_RULE_TAGS = 4,   /* before the network header */
	MOST_SUMMARIES = 4,
	SUMMARY = 64, /* words that one word of a summary is about */
};

/* How packets are kept that are sent in turn. */
enum trace {
	TRACE_BLOCK = 1 << 16, /* packets begin below it in a block */
	TRACE_LONGEST = 4096,  /* bytes of a packet, a power of two; a live frame has a page */
};
