/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* The programs of hooks.h, for kernels that do not describe their types (BTF): without the time at which a process has started,
 * its parent, and the ends of a socket that is closed. The user is the real one, and the name the thread's. */
#define WITHOUT_BTF
#include "who/hooks.h"

char _license[] SEC("license") = "Dual MIT/GPL";
