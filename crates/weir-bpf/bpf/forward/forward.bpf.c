/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Forwards packets from one interface to another, in the kernel or through AF_XDP sockets.
 *
 * forward, wanted, forward_tagged, filter_tagged
 *           Input: struct xdp_md, linear or with fragments. Action: XDP_REDIRECT to the socket of the receive queue if
 *           sockets are asked for, or to the interface in `target`; XDP_DROP if there is none.
 * ruled     Packets that are not copied or go elsewhere, by rules. Action: theirs.
 * unwanted
 *           Packets that do not match the filter. Action: XDP_PASS.
 * sent, refused
 *           Kernel tracepoints that report the fate of redirected packets: XDP queues them and hands them to the driver
 *           sixteen at a time, long after the program has returned. If packets are forwarded in both directions, those
 *           that forward forth do it for both: each costs time whenever anybody hands packets over.
 * Maps:     gate.h, ruling.h, `target`, `sockets`, `accounts`, `accounts_back`, `pending`, `strays`; with `copies` those of
 *           writer.h.
 * Kernel:   6.1. Programs bound to their device need 6.8 and a driver that reports stripped VLAN tags. */
#define CONTEXT struct xdp_md
#include "packet/buffers.h"
#include "packet/stripped.h"
#include "rules/fate_xdp.h"
#include "rules/ruling.h"
#include "shared.h"

const volatile bool copies = false;     /* forwarded packets are also written to a pool */
const volatile bool to_sockets = false; /* packets go to sockets first */
const volatile bool past_them = true;   /* packets go to the interface if there is no socket */
const volatile __u32 direction = 0;     /* forth or back; the programs that forward back share the maps of the other */
const volatile __u32 first_socket = 0;  /* of the first receive queue */

/* The kernel's IDs of the maps `target` and `sockets`. The loader writes them after creating the maps, before it
 * attaches anything. */
__u32 target_id;
__u32 sockets_id;

/* The interface that sends the packets of each direction. The kernel removes the entry when the interface goes away. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, FORWARD_DIRECTIONS);
} target SEC(".maps");

/* The sockets of the receive queues, those that forward forth first. The kernel removes a socket when it is closed. The
 * loader sets their number. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} sockets SEC(".maps");

/* The account of one receive queue. It has one writer, the NAPI context that polls the queue: redirected packets are
 * handed to the driver in that context, too. crates/weir-bpf/src/forward/mod.rs reads it. */
struct account {
	__u64 seen;      /* packets that reached the program */
	__u64 filtered;  /* did not match the filter: left to the stack */
	__u64 bytes;     /* total length of packets to be forwarded */
	__u64 errors;    /* could not be processed, or had no interface or socket to go to */
	__u64 forwarded; /* accepted by the other interface's driver */
	__u64 no_room;   /* rejected by that driver or by the socket */
	__u64 too_long;  /* too long for the other interface's MTU or for a socket's frame */
	__u64 unable;    /* the other interface was down, or accepts no redirected packets */

	__u64 handed;  /* accepted by the socket */
	__u64 blocked; /* went no further, by rules */
	__u64 bounced; /* went back, by rules */
	__u64 unused[5];
};

/* The accounts of forwarding forth. The loader creates one for each receive queue that the device can ever have. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct account);
	__uint(max_entries, 1);
} accounts SEC(".maps");

/* Those of forwarding back. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct account);
	__uint(max_entries, 1);
} accounts_back SEC(".maps");

/* The packets that this CPU has redirected but not handed to the driver yet. All are from one queue: the kernel flushes
 * them before NAPI moves on to another queue. */
struct pending {
	__u32 place; /* twice the queue, plus the direction */
	__u32 packets;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct pending);
	__uint(max_entries, 1);
} pending SEC(".maps");

static const __u32 ZERO = 0;

/* asm-generic/errno-base.h, errno.h */
#define ENOSPC 28
#define EMSGSIZE 90

static __always_inline struct account *account_of(__u32 direction, __u32 queue)
{
	if (direction == BACK)
		return bpf_map_lookup_elem(&accounts_back, &queue);
	return bpf_map_lookup_elem(&accounts, &queue);
}

/* Counts the packet as seen and returns its queue's account. */
static __always_inline struct account *meet(struct xdp_md *ctx)
{
	struct account *account = account_of(direction, ctx->rx_queue_index);
	if (account)
		account->seen++;
	return account;
}

static __always_inline int redirect(struct xdp_md *ctx, struct account *account)
{
	struct pending *mine = bpf_map_lookup_elem(&pending, &ZERO);
	if (!mine)
		return XDP_DROP; /* never happens: the map has one entry */
	__u32 index = ctx->rx_queue_index;
	mine->place = index * FORWARD_DIRECTIONS + direction;
	if (to_sockets && bpf_redirect_map(&sockets, first_socket + index, XDP_PASS) == XDP_REDIRECT) {
		account->bytes += packet_length(ctx);
		account->handed++;
		return XDP_REDIRECT;
	}
	if ((to_sockets && !past_them) || bpf_redirect_map(&target, direction, XDP_DROP) != XDP_REDIRECT) {
		account->errors++;
		return XDP_DROP;
	}
	account->bytes += packet_length(ctx);
	mine->packets++;
	return XDP_REDIRECT;
}

/* Puts a tag that the device has stripped back after the addresses. */
static __always_inline bool put_back(struct xdp_md *ctx, const struct tag *tag)
{
	if (bpf_xdp_adjust_head(ctx, -TAG))
		return false;
	__u32 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (data + (ADDRESSES + TAG) / 4 > end)
		return false;
	data[0] = data[1];
	data[1] = data[2];
	data[2] = data[3];
	data[3] = tag->protocol | (__u32)bpf_htons(tag->tci) << 16;
	return true;
}

/* Copies a packet, as it is forwarded, to the pool. */
static __noinline int lay_down(struct xdp_md *ctx)
{
	struct record record;
	if (!arrive(&record, ctx->rx_queue_index) || !begin(&record, packet_length(ctx)))
		return 0;
	if (load_plain(ctx, &record))
		commit(&record, INBOUND);
	else
		record.queue->errors++;
	return 0;
}

static __always_inline int deliver(struct xdp_md *ctx, const struct tag *tag)
{
	struct account *account = meet(ctx);
	if (!account)
		return XDP_PASS;
	if (tag->there && !put_back(ctx, tag)) {
		account->errors++;
		return XDP_DROP;
	}
	if (copies)
		lay_down(ctx);
	return redirect(ctx, account);
}

static __always_inline int pass_by(struct xdp_md *ctx)
{
	struct account *account = meet(ctx);
	if (account)
		account->filtered++;
	return XDP_PASS;
}

static __always_inline int end(struct xdp_md *ctx, const struct ruling *ruling)
{
	struct account *account = meet(ctx);
	if (!account)
		return XDP_PASS;
	if (copies && ruling->captured)
		lay_down(ctx);
	if (ruling->fate == FATE_PASS)
		return redirect(ctx, account);
	if (ruling->fate == FATE_BLOCK)
		account->blocked++;
	else
		account->bounced++;
	return carry_out(ctx, ruling->fate, ruling->interface);
}

/* All receive queues are chosen. */
static __always_inline bool is_chosen(struct xdp_md *ctx)
{
	return true;
}

#define ENTRY forward
#define ENTRY_TAGGED forward_tagged
#include "filter/entries.h"

/* Returns the account of the queue whose packets are pending. */
static __always_inline struct account *account_at(const struct pending *mine)
{
	return account_of(mine->place % FORWARD_DIRECTIONS, mine->place / FORWARD_DIRECTIONS);
}

/* Finds this CPU's pending packets and returns their account; NULL if another program redirected the packets. */
static __always_inline struct account *take(struct pending **mine)
{
	*mine = bpf_map_lookup_elem(&pending, &ZERO);
	return *mine && (*mine)->packets ? account_at(*mine) : NULL;
}

/* xdp_devmap_xmit(from, to, sent, drops, err): the driver has accepted some of the queued packets. */
SEC("raw_tp/xdp_devmap_xmit")
int sent(struct bpf_raw_tracepoint_args *ctx)
{
	struct pending *mine;
	struct account *account = take(&mine);
	if (!account)
		return 0;
	__u32 taken = ctx->args[2], left = ctx->args[3];
	account->forwarded += taken;
	if ((int)ctx->args[4] < 0)
		account->unable += left;
	else
		account->no_room += left;
	mine->packets -= taken + left;
	return 0;
}

/* Corrects the account when a socket did not accept a packet after all. */
static __always_inline void take_back(int error)
{
	struct pending *mine = bpf_map_lookup_elem(&pending, &ZERO);
	struct account *account = mine ? account_at(mine) : NULL;
	if (!account)
		return;
	account->handed--;
	if (error == -ENOSPC)
		account->too_long++;
	else
		account->no_room++;
}

/* xdp_redirect_err(dev, program, target, err, map type, map id, index): a packet could not be queued, or a socket did
 * not accept it. */
SEC("raw_tp/xdp_redirect_err")
int refused(struct bpf_raw_tracepoint_args *ctx)
{
	struct pending *mine;
	__u32 map = ctx->args[5];
	if (to_sockets && map == sockets_id)
		take_back(ctx->args[3]);
	if (map != target_id)
		return 0;
	struct account *account = take(&mine);
	if (!account)
		return 0;
	if ((int)ctx->args[3] == -EMSGSIZE)
		account->too_long++;
	else
		account->unable++;
	mine->packets--;
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
