/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Gives each outgoing packet a VLAN tag, as a VLAN interface does: beside the frame, for the device to insert. If the
 * packet already has a tag there, that one is inserted into the frame and replaced by the new one.
 *
 * Input:    struct __sk_buff on its way out.
 * Actions:  TC_ACT_UNSPEC: tcx lets the next program decide.
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

/* Removes the tag, as a stack with a VLAN interface for it would. */
SEC("tcx/ingress")
int untag(struct __sk_buff *skb)
{
	bpf_skb_vlan_pop(skb);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual MIT/GPL";
