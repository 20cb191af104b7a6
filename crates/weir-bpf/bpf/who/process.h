/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The process that runs. With WITHOUT_BTF, for kernels that do not describe their types, less is known of it. */
#pragma once
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include "who/report.h"

#ifndef WITHOUT_BTF
#include "who/kernel.h"

/* Writes what a process is, without its control group. */
static __always_inline void describe(struct who_process *to, struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;
	to->started = leader->start_boottime;
	to->number = task->tgid;
	to->parent = leader->real_parent->tgid;
	to->user = task->cred->euid.val;
	to->zero = 0;
	__builtin_memcpy(to->name, leader->comm, sizeof(to->name));
}

/* Writes what the process is that runs. */
static __always_inline void describe_current(struct who_process *to)
{
	describe(to, bpf_get_current_task_btf());
	to->cgroup = bpf_get_current_cgroup_id();
}

/* Returns whether no process runs, but the kernel's own work, which connects by MPTCP. */
static __always_inline bool is_kernel_thread(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	return task->flags & PF_KTHREAD;
}

static __always_inline __u64 current_started(void)
{
	return ((struct task_struct *)bpf_get_current_task_btf())->group_leader->start_boottime;
}
#else
static __always_inline bool is_kernel_thread(void)
{
	return false; /* not known */
}

static __always_inline void describe_current(struct who_process *to)
{
	to->started = 0;
	to->cgroup = bpf_get_current_cgroup_id();
	to->number = bpf_get_current_pid_tgid() >> 32;
	to->parent = 0;
	to->user = bpf_get_current_uid_gid(); /* the real one */
	to->zero = 0;
	bpf_get_current_comm(to->name, sizeof(to->name)); /* of the thread */
}

static __always_inline __u64 current_started(void)
{
	return 0;
}
#endif
