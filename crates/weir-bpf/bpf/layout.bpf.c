/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* No program: variables, never loaded, of the types that programs share with the process. Clang describes a type only
 * if a variable, map or function has it. */
#include <linux/bpf.h>
#include "capture/arrival.h"
#include "capture/way.h"
#include "pool/pool.h"
#include "rules/record.h"
#include "shared.h"
#include "who/report.h"

struct progress progress;
struct queue queue;
struct order order;
struct way way;
enum way_bucket way_bucket;
enum stray stray;
struct arrival arrival;
enum timestamps timestamps;
enum steering steering;
enum sampling sampling;
enum key_field key_field;
enum direction direction;
enum forward_direction forward_direction;
enum hooks hooks;
enum no_number no_number;
enum mark mark;
enum commit commit;
enum trace trace;
enum rule_fate rule_fate;
enum rule_capture rule_capture;
enum verdict_of_rules verdict_of_rules;
enum limit_key limit_key;
enum limited limited;
enum log_sizes log_sizes;
enum continuing continuing;
struct log_record log_record;
enum rule_kind rule_kind;
enum rule_tables rule_tables;
struct who_executed who_executed;
struct who_report who_report;
enum who_cause who_cause;
