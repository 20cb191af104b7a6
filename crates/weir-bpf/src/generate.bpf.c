/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The lab's generator of frames.
 *
 * generate  Input: live frames of BPF_PROG_TEST_RUN, all copies of one template. Verdict: XDP_TX, so that a test run
 *           sends on the device that the frames seem to come from (5% cheaper than bpf_redirect to it).
 *           Kernel 5.18 (BPF_F_TEST_XDP_LIVE_FRAMES). */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "scatter.h"

const volatile __u32 size = 60;        /* bytes of each frame */
const volatile bool tagged = false;    /* a VLAN tag precedes the IPv4 header */
const volatile __u32 flows = 1;        /* flow numbers are below this */
const volatile bool scattered = false; /* flows in pseudo-random order; otherwise in turn */

/* The Ethernet header of tagged frames, 18 bytes. */
const volatile struct {
	__u64 words[2];
	__u16 type;
} ethernet;

/* The generator's position. `generate` writes it while it runs, the process before and after: never both at once. */
struct generator_state {
	__u64 sequence; /* number of the next frame */
	__u32 flow;     /* its flow, when flows come in turn */
	__u32 unused;
} state;

static __always_inline __u32 next_flow(__u64 sequence)
{
	if (flows == 1)
		return 0;
	if (scattered)
		return scattered_flow(sequence, flows);
	__u32 flow = state.flow;
	state.flow = flow + 1 == flows ? 0 : flow + 1;
	return flow;
}

/* The kernel recycles a few pages, with the contents that the last receiver left. This function rewrites everything
 * that differs between frames, and the Ethernet header of tagged frames, which the network stack moves when it removes
 * the tag. The rest is as in the template, unless a receiver wrote there; such changes last until the next test run. */
SEC("xdp") int generate(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (data + size > end)
		return XDP_ABORTED;
	__u64 sequence = state.sequence;
	state.sequence = sequence + 1;
	__u32 flow = next_flow(sequence);
	__u16 host = flow >> 15;

	void *ip = data + 14;
	if (tagged) {
		*(__u64 *)data = ethernet.words[0];
		*(__u64 *)(data + 8) = ethernet.words[1];
		*(__u16 *)(data + 16) = ethernet.type;
		ip = data + 18;
	}
	/* The identification and the low half of the source address always add up to 0xffff, so the template's header
	 * checksum stays correct. The UDP checksum is 0: not used. */
	*(__be16 *)(ip + 4) = bpf_htons(0xffff - host);
	*(__be16 *)(ip + 14) = bpf_htons(host);
	*(__be16 *)(ip + 20) = bpf_htons(1024 + (flow & 0x7fff));
	*(__be64 *)(ip + 28) = bpf_cpu_to_be64(sequence);
	*(__be32 *)(ip + 36) = bpf_htonl(flow);
	*(__be32 *)(data + size - 4) = bpf_htonl((__u32)sequence ^ flow);
	return XDP_TX;
}

char _license[] SEC("license") = "Dual MIT/GPL";
