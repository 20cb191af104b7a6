/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The kernel's structs, as far as they are read: the kernel at hand says where the fields are. */
#pragma once
#include <linux/types.h>

#define PF_KTHREAD 0x00200000
#define TCP_LISTEN 10

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	__u32 val;
} kuid_t;

struct cred {
	kuid_t euid;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp; /* of version 2 */
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads */
};

struct task_struct {
	unsigned int flags;
	int tgid;
	__u64 start_boottime;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	const struct cred *cred;
	struct css_set *cgroups;
	struct signal_struct *signal;
	char comm[16];
};

struct linux_binprm {
	const char *filename;
};

struct net {
	__u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_type;
	__u16 sk_protocol;
};

struct socket {
	struct sock *sk;
};

struct file;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

#pragma clang attribute pop
