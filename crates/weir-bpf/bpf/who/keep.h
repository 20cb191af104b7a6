/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* What is kept with sockets, and the way of reports to the process. */
#pragma once
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "who/process.h"
#include "who/report.h"

#define SOCK_STREAM 1

const volatile __u64 wake_at = 0; /* bytes of reports that wait to be read: then the process is woken */

/* Reports, which the process reads. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} reports SEC(".maps");

/* Reports that found no room and that no other has told of yet. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
} missed SEC(".maps");

/* What is kept with a socket that takes connections, or on which something is sent without one: others cost no memory. A
 * socket that is made for a connection gets a copy of the listening one's. */
struct kept {
	struct who_process listener; /* that has opened it for connections */
	__u64 sender_started;        /* the process that was last told to send without a connection */
	__u32 sender;                /* 0: none since the socket has had its ends */
	__u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct kept);
} sockets SEC(".maps");

/* Counts what finds no room. A program in a process's call may be interrupted by one that runs for a packet. */
static __always_inline void count_missed(void)
{
	__u32 only = 0;
	__u64 *count = bpf_map_lookup_elem(&missed, &only);
	if (count)
		__sync_fetch_and_add(count, 1);
}

/* Returns what was missed before the next report. */
static __always_inline __u32 take_missed(void)
{
	__u32 only = 0;
	__u64 *count = bpf_map_lookup_elem(&missed, &only);
	return count && *count ? __sync_lock_test_and_set(count, 0) : 0;
}

/* Returns how a report goes to the process: it looks by itself, and is woken only once much waits. */
static __always_inline __u64 waking(void)
{
	return bpf_ringbuf_query(&reports, BPF_RB_AVAIL_DATA) >= wake_at ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Begins a report about a socket; NULL: there is no room. */
static __always_inline struct who_report *begin(__u8 cause, __u64 socket, __u64 namespace)
{
	struct who_report *report = bpf_ringbuf_reserve(&reports, sizeof(*report), 0);
	if (!report) {
		count_missed();
		return NULL;
	}
	*report = (struct who_report){
	        .at = bpf_ktime_get_tai_ns(),
	        .socket = socket,
	        .namespace = namespace,
	        .cause = cause,
	        .missed = take_missed(),
	};
	return report;
}

/* Writes what a socket is, and its own end. */
static __always_inline void tell_socket(struct who_report *report, const struct bpf_sock *sk)
{
	report->family = sk->family;
	report->kind = sk->type;
	report->protocol = sk->protocol;
	report->local_port = sk->src_port;
	if (sk->family == AF_INET6) {
		report->local[0] = sk->src_ip6[0];
		report->local[1] = sk->src_ip6[1];
		report->local[2] = sk->src_ip6[2];
		report->local[3] = sk->src_ip6[3];
	} else {
		report->local[0] = sk->src_ip4;
	}
}

/* Writes a socket's other end. */
static __always_inline void tell_remote(struct who_report *report, const struct bpf_sock *sk)
{
	report->remote_port = bpf_ntohs(sk->dst_port);
	if (sk->family == AF_INET6) {
		report->remote[0] = sk->dst_ip6[0];
		report->remote[1] = sk->dst_ip6[1];
		report->remote[2] = sk->dst_ip6[2];
		report->remote[3] = sk->dst_ip6[3];
	} else {
		report->remote[0] = sk->dst_ip4;
	}
}
