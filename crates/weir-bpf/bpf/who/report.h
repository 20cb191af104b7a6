/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* What the programs that follow sockets tell the process. */
#pragma once
#include <linux/types.h>

#define AF_INET 2
#define AF_INET6 10

enum who_sizes {
	WHO_NAME = 16,     /* bytes of a process's name, with the zero at its end */
	WHO_PROGRAM = 256, /* of the path of a program, likewise; a longer one is cut */
};

/* What has happened. */
enum who_cause {
	WHO_FOUND = 1,
	WHO_CREATED,
	WHO_BOUND,
	WHO_CONNECTING,
	WHO_SENT,
	WHO_LISTENING,
	WHO_ACCEPTED,
	WHO_ESTABLISHED,
	WHO_CLOSED,
	WHO_EXECUTED, /* a process runs another program: `struct who_executed` */
	WHO_ENDED,    /* a process has ended */
};

/* A process. */
struct who_process {
	__u64 started; /* since the system did, ns; 0: not known */
	__u64 cgroup;
	__u32 number; /* 0: none */
	__u32 parent;
	__u32 user; /* effective */
	__u32 zero;
	char name[WHO_NAME]; /* of the main thread */
};

struct who_report {
	__u64 at; /* CLOCK_TAI, ns */
	__u64 socket;
	__u64 namespace;
	struct who_process process;
	/* IPv4: the first word. Zeros, too, if it is not known. */
	__be32 local[4];
	__be32 remote[4];
	__u16 local_port; /* in the machine's byte order, like the others */
	__u16 remote_port;
	__u16 protocol;
	__u8 family; /* AF_INET, AF_INET6, or 0: the ends are not told */
	__u8 kind;   /* SOCK_STREAM and others */
	__u8 cause;  /* enum who_cause */
	__u8 zero[3];
	__u32 missed; /* reports lost on this processor since the last one */
};

struct who_executed {
	struct who_report report;
	char program[WHO_PROGRAM]; /* as it was given to the kernel */
};
