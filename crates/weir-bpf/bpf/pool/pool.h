/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The layout of the pool, shared by both sides. The process's view is crates/weir-ring/src/shared.rs; weir-bpf/src/layout.rs
 * does not compile if they differ. */
#pragma once

/* Progress of one chunk. The kernel program writes it, the process reads it. 64 bytes, so that a consumer polling the
 * open chunk shares no cache line with anything else that is written per packet. */
struct progress {
	__u64 position; /* 1 + how many chunks the queue opened before this one; written before `commit` */
	__u64 commit;   /* bits 0..30 bytes of whole records, bit 31 closed, bits 32..63 records: one store a packet */
	__u64 unused[6];
};

/* One writer's state: its open chunk and its counters. The kernel program writes it; the process only reads the
 * counters. The first cache line holds what every packet changes. */
struct queue {
	__u64 opened;      /* chunks taken from the ring since the capture began */
	__u32 chunk;       /* the open chunk's index in the pool */
	__u32 offset;      /* bytes of records in it; if `chunk_limit` or more, no chunk is open */
	__u32 records;     /* records in it */
	__u32 turn;        /* the next packet's target with round-robin steering */
	__u64 written;     /* bytes of records since the capture began; compared with `wake_at` */
	__u64 seen;        /* packets that reached the program */
	__u64 captured;    /* packets written as records */
	__u64 bytes;       /* their original lengths */
	__u64 lost_before; /* packets lost since the last record */

	__u64 lost;     /* packets that found no empty chunk */
	__u64 errors;   /* packets that could not be read */
	__u64 stamp;    /* the last reading of the clock */
	__u64 jiffy;    /* the tick of that reading */
	__u64 stamped;  /* packets stamped in that tick */
	__u64 warm;     /* chunks opened from the warm ring */
	__u64 filtered; /* packets that did not match the filter */
	__u64 orphans;  /* where flows matter: later fragments whose first fragment was not seen */

	__u64 turns;       /* with sampling: packets that could have been selected */
	__u64 sampled_out; /* with sampling: packets that were not selected */
	__u64 counted;     /* packets of flows that were counted and not copied (capture/ways.h) */
	__u64 unused[5];
};

/* The process's instructions to one writer. The process writes, the kernel program only reads, except for `wake_at`,
 * which it exchanges when it rings. */
struct order {
	__u64 wake_at;      /* ring the doorbell once `written` reaches this; ~0: do not ring */
	__s64 clock_offset; /* nanoseconds from the program's clock to the Unix epoch */
	__u64 unused[6];
	__u64 slots
	        []; /* two rings of empty chunks, the warm and then the cold: high half 1 + position, low half the index */
};

/* Why a packet is counted outside the queues. */
enum stray {
	NO_QUEUE,        /* on a queue for which the capture has no pool */
	OTHER_INTERFACE, /* from another interface, to which the driver has handed the program on */
	LATE_CPU,        /* on a processor that has no queue */
	TAG_UNKNOWN,     /* the driver could not tell whether it stripped a VLAN tag; also counted by a queue */
	STRAYS,
};

/* A pcapng Enhanced Packet Block (draft-ietf-opsawg-pcapng, section 4.3), up to the packet's data. */
struct epb {
	__u32 type;
	__u32 total_length;
	__u32 interface;
	__u32 timestamp_high;
	__u32 timestamp_low;
	__u32 captured_length;
	__u32 original_length;
};

/* Its options: flags (only the direction is set) and the drop count. */
struct epb_flags {
	__u16 code;
	__u16 length;
	__u32 flags;
};

struct epb_lost {
	__u16 code;
	__u16 length;
	__u64 packets;
} __attribute__((packed));

#define EPB_TYPE 6
#define EPB_FLAGS 2
#define EPB_DROPCOUNT 4

#define INBOUND 1
#define OUTBOUND 2
