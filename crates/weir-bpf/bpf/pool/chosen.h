/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The receive queues that are captured: all, or a run of them. What arrives on others is none of the capture's business:
 * it passes untouched and uncounted. A program asks before anything else. */
#pragma once
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 first_chosen = 0;
const volatile __u32 chosen = 0; /* number of queues; 0: all */

static __always_inline bool is_chosen(struct xdp_md *ctx)
{
	return chosen == 0 || ctx->rx_queue_index - first_chosen < chosen;
}

/* Returns the place of the packet's queue among those chosen. */
static __always_inline __u32 place_of_queue(struct xdp_md *ctx)
{
	return chosen == 0 ? ctx->rx_queue_index : ctx->rx_queue_index - first_chosen;
}
