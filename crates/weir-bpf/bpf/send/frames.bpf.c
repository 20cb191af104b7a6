/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Makes frames of test traffic from tables: the headers of each flow, the order of the flows, the sizes in turn.
 *
 * make   Input: live frames of BPF_PROG_TEST_RUN, all copies of one template of the largest size. Action: XDP_TX, so
 *        that a test run sends on the device that the frames seem to come from. Kernel 5.18
 *        (BPF_F_TEST_XDP_LIVE_FRAMES).
 *
 * All constants are known to the verifier, which removes what does not apply: with one size no length or checksum is
 * computed, with one flow nothing is looked up twice. */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* weir-traffic/src/tables.rs and signature.rs */
#define HEAD 128         /* longest headers, in bytes */
#define MOST_LENGTHS 5   /* length fields in a head */
#define MOST_CHECKSUMS 3 /* checksums in a head */
#define SIGNATURE 18

/* The headers of a flow's frames, right for frames of the largest size but for what depends on the size. */
struct head {
	__u64 words[HEAD / 8];
	/* For each checksum: the sum of what it covers, in a frame of size 0 if there were one. */
	__u32 sums[MOST_CHECKSUMS];
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, __u32);
	__type(value, struct head);
	__uint(max_entries, 1);
} heads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} order SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} sizes SEC(".maps");

const volatile __u32 largest = 60;     /* size of the template */
const volatile __u32 head_length = 42; /* at least 8; the signature follows */
const volatile __u32 order_length = 1; /* entries of `order`, and of `sizes` */
const volatile __u32 sizes_length = 1;
const volatile __u32 mark = 0;         /* the first four bytes of each signature, as they are in memory */
const volatile bool numbered = false;  /* frames, which all have one size, end in their number */
const volatile __u32 stamp_every = 64; /* frames that share a time: the kernel sends as many at once */
/* What depends on the size: fields that hold size - `minus`, and checksums over `weight` times the size. At 0: none. */
const volatile struct length {
	__u16 at, minus;
} lengths[MOST_LENGTHS];
const volatile struct checksum {
	__u16 at;
	__u8 weight;
	__u8 never_zero; /* UDP: 0 means that there is none, and all ones stand for it */
} checksums[MOST_CHECKSUMS];

/* The generator's position. `make` writes it while it runs, the process before and after: never both at once. */
struct position {
	__u64 sequence; /* number of the next frame */
	__u64 time;     /* of the last reading of the clock */
	__u64 epoch;    /* CLOCK_REALTIME - CLOCK_MONOTONIC, in ns */
	__u32 turn;     /* place in `order` */
	__u32 size;     /* place in `sizes` */
	__u32 fresh;    /* frames that still share `time` */
	__u32 unused;
} position;

/* Folds a sum of 32-bit halves into a one's complement sum of 16 bits. */
static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static __always_inline __u32 next_in(void *table, __u32 *place, __u32 length)
{
	__u32 at = *place;
	*place = at + 1 == length ? 0 : at + 1;
	__u32 *value = bpf_map_lookup_elem(table, &at);
	return value ? *value : 0;
}

static __always_inline void sign(void *signature, __u64 sequence)
{
	if (position.fresh == 0) {
		position.time = bpf_ktime_get_ns() + position.epoch;
		position.fresh = stamp_every;
	}
	position.fresh--;
	__u64 number = bpf_cpu_to_be64(sequence << 16), time = bpf_cpu_to_be64(position.time << 16);
	__u64 sum = (number & 0xffffffff) + (number >> 32) + (time & 0xffffffff) + (time >> 32) + mark;
	/* Each store covers what the one before has written too much. */
	*(__u32 *)signature = mark;
	*(__u64 *)(signature + 4) = number;
	*(__u64 *)(signature + 10) = time;
	*(__u16 *)(signature + 16) = ~fold(sum);
}

SEC("xdp") int make(struct xdp_md *ctx)
{
	__u32 size = largest;
	if (sizes_length > 1) {
		size = next_in(&sizes, &position.size, sizes_length);
		if (size != largest && bpf_xdp_adjust_tail(ctx, (int)(size - largest)))
			return XDP_ABORTED;
	}
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (data + head_length + SIGNATURE > end)
		return XDP_ABORTED;

	__u32 flow = order_length > 1 ? next_in(&order, &position.turn, order_length) : 0;
	struct head *head = bpf_map_lookup_elem(&heads, &flow);
	if (!head)
		return XDP_ABORTED;
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < HEAD / 8; i++)
		if (8 * (i + 1) <= head_length)
			((__u64 *)data)[i] = head->words[i];
	*(__u64 *)(data + head_length - 8) = *(__u64 *)((void *)head->words + head_length - 8);

	if (sizes_length > 1) {
#pragma clang loop unroll(full)
		for (int i = 0; i < MOST_LENGTHS; i++)
			if (lengths[i].at && lengths[i].at < head_length)
				*(__be16 *)(data + lengths[i].at) = bpf_htons(size - lengths[i].minus);
#pragma clang loop unroll(full)
		for (int i = 0; i < MOST_CHECKSUMS; i++)
			if (checksums[i].at && checksums[i].at < head_length) {
				__u16 checksum = ~fold(head->sums[i] + checksums[i].weight * bpf_htons(size));
				if (checksum == 0 && checksums[i].never_zero)
					checksum = 0xffff;
				*(__u16 *)(data + checksums[i].at) = checksum;
			}
	}

	__u64 sequence = position.sequence;
	position.sequence = sequence + 1;
	sign(data + head_length, sequence);
	if (numbered) {
		if (data + largest > end)
			return XDP_ABORTED;
		*(__be32 *)(data + largest - 8) = bpf_htonl(sequence);
		*(__be32 *)(data + largest - 4) = bpf_htonl(~sequence);
	}
	return XDP_TX;
}

char _license[] SEC("license") = "Dual MIT/GPL";
