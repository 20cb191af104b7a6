/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Programs that are told of sockets by the kernel's control groups. All let happen what happens, and change nothing.
 *
 * create    Kernel 5.11 (get_current_cgroup_id at this hook). Input: a socket of IPv4 or IPv6 that a process has made.
 * release   Input: one that nobody has open any longer.
 * bind4, bind6
 *           Input: one that a process has bound to an address or port.
 * connect4, connect6
 *           Input: one that a process is about to connect; UDP may have no port yet.
 * send4, send6
 *           Input: one that a process sends on without a connection. Those with one cost nothing.
 * tcp       Input: one of TCP that begins to connect, listens, or has a connection now. It asks the kernel for no other calls. */
#pragma once
#include "who/keep.h"

#define ALLOW 1

/* 1 while `tcp` is attached: it then tells of TCP's connections, with both ends. */
__u32 tcp_is_told = 0;

/* Notes that a socket has new ends: who sends on it is told again. */
static __always_inline void forget_sender(void *sk)
{
	struct kept *kept = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	if (kept)
		kept->sender = 0;
}

SEC("cgroup/sock_create") int create(struct bpf_sock *ctx)
{
	struct who_report *report = begin(WHO_CREATED, bpf_get_socket_cookie(ctx), bpf_get_netns_cookie(ctx));
	if (!report)
		return ALLOW;
	describe_current(&report->process);
	report->family = ctx->family;
	report->kind = ctx->type;
	report->protocol = ctx->protocol;
	bpf_ringbuf_submit(report, waking());
	return ALLOW;
}

SEC("cgroup/sock_release") int release(struct bpf_sock *ctx)
{
	struct who_report *report = begin(WHO_CLOSED, bpf_get_socket_cookie(ctx), bpf_get_netns_cookie(ctx));
	if (!report)
		return ALLOW;
	describe_current(&report->process);
	report->kind = ctx->type;
	report->protocol = ctx->protocol;
#ifndef WITHOUT_BTF
	tell_ends(report, (const struct sock *)ctx);
#endif
	bpf_ringbuf_submit(report, waking());
	return ALLOW;
}

/* Begins the report of a socket that is bound, but for its address. */
static __always_inline struct who_report *bound(struct bpf_sock *ctx, __u8 family)
{
	forget_sender(ctx);
	struct who_report *report = begin(WHO_BOUND, bpf_get_socket_cookie(ctx), bpf_get_netns_cookie(ctx));
	if (!report)
		return NULL;
	describe_current(&report->process);
	report->family = family;
	report->kind = ctx->type;
	report->protocol = ctx->protocol;
	report->local_port = ctx->src_port;
	return report;
}

SEC("cgroup/post_bind4") int bind4(struct bpf_sock *ctx)
{
	struct who_report *report = bound(ctx, AF_INET);
	if (!report)
		return ALLOW;
	report->local[0] = ctx->src_ip4;
	bpf_ringbuf_submit(report, waking());
	return ALLOW;
}

SEC("cgroup/post_bind6") int bind6(struct bpf_sock *ctx)
{
	struct who_report *report = bound(ctx, AF_INET6);
	if (!report)
		return ALLOW;
	report->local[0] = ctx->src_ip6[0];
	report->local[1] = ctx->src_ip6[1];
	report->local[2] = ctx->src_ip6[2];
	report->local[3] = ctx->src_ip6[3];
	bpf_ringbuf_submit(report, waking());
	return ALLOW;
}

/* Begins the report of a socket that is about to be connected, but for the other end's address. None if `tcp` will tell of it. */
static __always_inline struct who_report *connecting(struct bpf_sock_addr *ctx, struct bpf_sock *sk)
{
	if (tcp_is_told && sk->type == SOCK_STREAM)
		return NULL;
	forget_sender(sk);
	struct who_report *report = begin(WHO_CONNECTING, bpf_get_socket_cookie(ctx), bpf_get_netns_cookie(ctx));
	if (!report)
		return NULL;
	describe_current(&report->process);
	tell_socket(report, sk);
	report->remote_port = bpf_ntohs(ctx->user_port);
	return report;
}

SEC("cgroup/connect4") int connect4(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct who_report *report = sk ? connecting(ctx, sk) : NULL;
	if (!report)
		return ALLOW;
	if (sk->family == AF_INET6) { /* IPv4 in IPv6 */
		report->remote[2] = bpf_htonl(0xffff);
		report->remote[3] = ctx->user_ip4;
	} else {
		report->remote[0] = ctx->user_ip4;
	}
	bpf_ringbuf_submit(report, waking());
	return ALLOW;
}

SEC("cgroup/connect6") int connect6(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct who_report *report = sk ? connecting(ctx, sk) : NULL;
	if (!report)
		return ALLOW;
	report->remote[0] = ctx->user_ip6[0];
	report->remote[1] = ctx->user_ip6[1];
	report->remote[2] = ctx->user_ip6[2];
	report->remote[3] = ctx->user_ip6[3];
	bpf_ringbuf_submit(report, waking());
	return ALLOW;
}

/* Tells once of each process that sends, until the socket has other ends. */
static __always_inline int sends(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	if (!sk)
		return ALLOW;
	struct kept *kept = bpf_sk_storage_get(&sockets, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!kept)
		return ALLOW;
	__u32 sender = bpf_get_current_pid_tgid() >> 32;
	__u64 started = current_started();
	if (kept->sender == sender && kept->sender_started == started)
		return ALLOW;
	struct who_report *report = begin(WHO_SENT, bpf_get_socket_cookie(ctx), bpf_get_netns_cookie(ctx));
	if (!report)
		return ALLOW; /* tried again when it sends next */
	kept->sender = sender;
	kept->sender_started = started;
	describe_current(&report->process);
	tell_socket(report, sk);
	bpf_ringbuf_submit(report, waking());
	return ALLOW;
}

SEC("cgroup/sendmsg4") int send4(struct bpf_sock_addr *ctx)
{
	return sends(ctx);
}

SEC("cgroup/sendmsg6") int send6(struct bpf_sock_addr *ctx)
{
	return sends(ctx);
}

SEC("sockops") int tcp(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	__u8 cause;
	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		cause = WHO_CONNECTING;
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		cause = WHO_ESTABLISHED;
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		cause = WHO_ACCEPTED;
		break;
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		cause = WHO_LISTENING;
		break;
	default:
		return ALLOW;
	}
	if (!sk)
		return ALLOW;
	/* Two are a process's own calls; the others come for a packet, and what runs then has nothing to do with it. A socket
	 * that is made for a connection has got a copy of what was kept with the listening one. */
	struct kept *kept = NULL;
	if (cause == WHO_LISTENING) {
		kept = bpf_sk_storage_get(&sockets, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (kept)
			describe_current(&kept->listener);
	} else if (cause == WHO_ACCEPTED) {
		kept = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	}
	struct who_report *report = begin(cause, bpf_get_socket_cookie(ctx), bpf_get_netns_cookie(ctx));
	if (!report)
		return ALLOW;
	if (kept)
		report->process = kept->listener;
	else if (cause == WHO_LISTENING || (cause == WHO_CONNECTING && !is_kernel_thread()))
		describe_current(&report->process);
	tell_socket(report, sk);
	if (cause != WHO_LISTENING)
		tell_remote(report, sk);
	bpf_ringbuf_submit(report, waking());
	return ALLOW;
}
