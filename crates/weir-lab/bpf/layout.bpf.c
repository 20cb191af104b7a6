/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* No program: a variable, never loaded, of the type that has numbers which a program shares with the process. Clang describes
 * a type only if a variable, map or function has it. */
#include <linux/bpf.h>
#include "checked.h"

enum checked_frame checked_frame;
