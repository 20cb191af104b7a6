/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Follows sockets from birth, and finds those that are older: who has made, bound, connected and closed them.
 *
 * The programs of hooks.h, and:
 * executed  tp_btf/sched_process_exec. A process runs another program.
 * ended     tp_btf/sched_process_exit. The last thread of a process ends.
 * files     iter/task_file (kernel 5.11, sock_from_file). Output: a `struct who_report` for each process and each of its open
 *           files that is a socket of IPv4 or IPv6. The process is kept with one that takes connections, unless another is.
 *
 * They need a kernel that describes its types (BTF); who_plain.bpf.c does not. */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "who/kernel.h"
#include "who/report.h"

/* Writes both ends, as far as the socket has them. `sk` may be any pointer to a socket, since nothing is read through it. */
static __always_inline void tell_ends(struct who_report *report, const struct sock *sk)
{
	struct sock_common common;
	bpf_core_read(&report->local_port, sizeof(report->local_port), &sk->__sk_common.skc_num);
	bpf_core_read(&common.skc_dport, sizeof(common.skc_dport), &sk->__sk_common.skc_dport);
	bpf_core_read(&common.skc_family, sizeof(common.skc_family), &sk->__sk_common.skc_family);
	report->remote_port = bpf_ntohs(common.skc_dport);
	report->family = common.skc_family;
	if (common.skc_family == AF_INET6) {
		bpf_core_read(report->local, sizeof(report->local), &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_core_read(report->remote, sizeof(report->remote), &sk->__sk_common.skc_v6_daddr);
	} else {
		bpf_core_read(report->local, sizeof(report->local[0]), &sk->__sk_common.skc_rcv_saddr);
		bpf_core_read(report->remote, sizeof(report->remote[0]), &sk->__sk_common.skc_daddr);
	}
}

#include "who/hooks.h"

SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed, struct task_struct *task, int before, struct linux_binprm *binary)
{
	struct who_executed *executed = bpf_ringbuf_reserve(&reports, sizeof(*executed), 0);
	if (!executed) {
		count_missed();
		return 0;
	}
	executed->report = (struct who_report){
	        .at = bpf_ktime_get_tai_ns(),
	        .cause = WHO_EXECUTED,
	        .missed = take_missed(),
	};
	describe_current(&executed->report.process);
	if (bpf_probe_read_kernel_str(executed->program, sizeof(executed->program), binary->filename) < 0)
		executed->program[0] = 0;
	bpf_ringbuf_submit(executed, waking());
	return 0;
}

SEC("tp_btf/sched_process_exit") int BPF_PROG(ended, struct task_struct *task)
{
	if (task->signal->live.counter)
		return 0;
	struct who_report *report = begin(WHO_ENDED, 0, 0);
	if (!report)
		return 0;
	describe_current(&report->process);
	bpf_ringbuf_submit(report, waking());
	return 0;
}

SEC("iter/task_file") int files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	if (!task || !file)
		return 0;
	struct socket *socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	struct sock *sk = socket->sk;
	if (!sk)
		return 0;
	__u16 family = sk->__sk_common.skc_family;
	if (family != AF_INET && family != AF_INET6)
		return 0;
	struct who_report report = {
	        .at = bpf_ktime_get_tai_ns(),
	        .socket = bpf_get_socket_cookie(sk),
	        .namespace = sk->__sk_common.skc_net.net->net_cookie,
	        .kind = sk->sk_type,
	        .protocol = sk->sk_protocol,
	        .cause = WHO_FOUND,
	};
	describe(&report.process, task);
	report.process.cgroup = task->cgroups->dfl_cgrp->kn->id;
	tell_ends(&report, sk);
	if (sk->sk_type == SOCK_STREAM && sk->__sk_common.skc_state == TCP_LISTEN) {
		struct kept *kept = bpf_sk_storage_get(&sockets, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (kept && !kept->listener.number)
			kept->listener = report.process;
	}
	bpf_seq_write(ctx->meta->seq, &report, sizeof(report));
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
