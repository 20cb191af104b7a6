/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The pool as both sides see it. The process's view of the same memory is crates/weir-ring/src/layout.rs. */
#pragma once

/* Progress of one chunk. The kernel program writes, the process reads; 64 bytes, so that a reader that polls the open
 * chunk shares no cache line with anything that is written per packet. */
struct progress {
	__u64 position; /* 1 + the chunk's place in the order in which its queue opened chunks; written before `commit` */
	__u64 commit;   /* bits 0..30 bytes of whole records, bit 31 closed, bits 32..63 records: one store a packet */
	__u64 unused[6];
};

#define COMMIT_CLOSED (1ull << 31)

/* One writer's state: what it knows of the open chunk, and its counters. The kernel program writes, the process only
 * reads the counters. The first line holds what every packet changes. */
struct queue {
	__u64 opened;      /* chunks taken from the ring since the capture began */
	__u32 chunk;       /* the open chunk's index in the pool */
	__u32 offset;      /* bytes of records in it; at `chunk_limit` or above no chunk is open */
	__u32 records;     /* records in it */
	__u32 turn;        /* the next packet's target, where packets are steered in turn */
	__u64 written;     /* bytes of records since the capture began: what `wake_at` is compared with */
	__u64 seen;        /* packets that reached the program */
	__u64 captured;    /* packets laid down as records */
	__u64 bytes;       /* their original lengths */
	__u64 lost_before; /* packets lost since the last record */

	__u64 lost;     /* packets that found no empty chunk */
	__u64 errors;   /* packets that could not be read */
	__u64 stamp;    /* the last reading of the clock */
	__u64 jiffy;    /* the tick in which it was taken */
	__u64 stamped;  /* packets stamped in that tick */
	__u64 warm;     /* of the chunks opened, those from the warm ring */
	__u64 filtered; /* packets that the filter did not want */
	__u64 orphans;  /* later fragments whose first was not seen, where packets are steered by flow */
};

/* What the process tells one writer. The process writes, the kernel program only reads (but for `wake_at`, which it takes
 * by exchange when it rings). */
struct order {
	__u64 wake_at;      /* ring the doorbell once `written` has come this far; ~0: let the reader sleep */
	__s64 clock_offset; /* nanoseconds from the program's clock to the Unix epoch */
	__u64 unused[6];
	__u64 slots
	        []; /* two rings of empty chunks, the warm and then the cold: high half 1 + position, low half the index */
};

/* pcapng Enhanced Packet Block, draft-ietf-opsawg-pcapng section 4.3, as far as the packet's data. */
struct epb {
	__u32 type;
	__u32 total_length;
	__u32 interface;
	__u32 timestamp_high;
	__u32 timestamp_low;
	__u32 captured_length;
	__u32 original_length;
};

/* Its options: flags, of which only the direction is told, and the drop count. */
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

#define TIMESTAMP_NONE 0
#define TIMESTAMP_KERNEL 1
#define TIMESTAMP_BATCH 2
