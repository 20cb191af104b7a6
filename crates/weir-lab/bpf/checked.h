/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Numbers that programs share with the process. They are written here alone: programs/hooks.rs has what clang says about them
 * (layout.bpf.c). */
#pragma once

/* Frames of test traffic (weir-traffic/src/tables.rs): headers of one flow, and a signature without a time. */
enum checked_frame {
	CHECKED = 60,      /* bytes of frames that can be checked */
	CHECKED_HEAD = 42, /* bytes of their headers */
};
