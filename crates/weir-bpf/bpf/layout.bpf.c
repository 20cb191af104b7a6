/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* No program: variables, never loaded, of the types that programs share with the process. Clang describes a type only
 * if a variable, map or function has it. */
#include <linux/bpf.h>
#include "capture/arrival.h"
#include "pool/pool.h"

struct progress progress;
struct queue queue;
struct order order;
enum stray stray;
struct arrival arrival;
