/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Gives each packet that an interface sends a VLAN tag, the way a VLAN interface does: beside the frame, for the device
 * to put in. A packet that has one already gets it put in, and the new one beside it.
 *
 * Input:    struct __sk_buff on its way out.
 * Verdicts: TC_ACT_UNSPEC, which tcx takes as: the next program decides.
 * Kernel:   6.6 (tcx). */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

const volatile __u16 protocol = 0x8100;
const volatile __u16 tci = 0;

SEC("tcx/egress")
int tag(struct __sk_buff *skb)
{
	bpf_skb_vlan_push(skb, bpf_htons(protocol), tci);
	return TC_ACT_UNSPEC;
}

/* The other way round: takes the tag off, as a stack would that has an interface for it. */
SEC("tcx/ingress")
int untag(struct __sk_buff *skb)
{
	bpf_skb_vlan_pop(skb);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual MIT/GPL";
