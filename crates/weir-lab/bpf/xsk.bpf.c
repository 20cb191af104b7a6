/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Sends packets to AF_XDP sockets.
 *
 * redirect  Input: any packet. Action: XDP_REDIRECT to the socket of its receive queue, or XDP_PASS if it has none.
 *           Map: `sockets`. Kernel 5.3 (the fallback action). */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32); /* receive queue */
	__type(value, __u32);
	__uint(max_entries, 1); /* the loader sets the number of queues */
} sockets SEC(".maps");

SEC("xdp") int redirect(struct xdp_md *ctx)
{
	return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

char _license[] SEC("license") = "Dual MIT/GPL";
