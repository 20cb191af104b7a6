/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Rules in front of a capture's program, in the slot of its filter (gate.h). */
#pragma once
#include "filter/gate.h"
#include "rules/rules.h"
#include "rules/ruling.h"

/* The program behind forwards: a packet that just goes on is forwarded, whether it is captured or not. */
const volatile bool forwards = false;

/* Goes on in the capture's program for a packet that rules have decided about; returns if there is none. Most packets go on, and
 * take the way of those that a filter wants, or does not want. */
static __always_inline void go_on(CONTEXT *ctx, __u32 hook, __u32 turned, __u64 decision)
{
	bool captured = decision & IS_CAPTURED;
	__u32 fate = decision & FATE;
	if (likely(fate == FATE_PASS && (captured || !forwards)))
		bpf_tail_call(ctx, &outcomes, 2 * hook + !captured);
	struct ruling *ruling = this_ruling();
	if (!ruling)
		return;
	*ruling = (struct ruling){.fate = fate, .interface = decision >> 32, .captured = captured, .turned = turned};
	bpf_tail_call(ctx, &outcomes, HOOKS * RULED + hook);
}
