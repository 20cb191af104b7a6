/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Makes a host's stack receive a packet: runs on live frames (BPF_PROG_TEST_RUN), which seem to come from an interface.
 *
 * Input:    any packet. Action: XDP_PASS.
 * Kernel:   5.18 (BPF_F_TEST_XDP_LIVE_FRAMES). */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int receive(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
