/* SPDX-License-Identifier: Apache-2.0 */
/* The limit on events that repeat. What exceeds it is counted, and one line stands for all of them later.
 *
 * A line's key is its event and its reason (the pair `reason`; without one, the whole text). In a window of
 * LOG_LIMIT_WINDOW_S seconds the first LOG_LIMIT_SAME lines of a key are written. Of warnings and errors, the first
 * LOG_LIMIT_EVENT lines of an event are written, whatever their reasons. For further ones the newest is written with
 * `repeated=N` when the window has ended. While they go on, the following windows have only such a line. Lines of the
 * level debug have no limit.
 */
#ifndef BASE_LOG_LIMIT_H
#define BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

enum { LOG_LIMIT_SAME = 20, LOG_LIMIT_EVENT = 100, LOG_LIMIT_WINDOW_S = 60 };
enum { LOG_LIMIT_KEYS = 64, LOG_LIMIT_PAIRS_BYTES = 512 };

/* The lines of one key in the current window. */
struct log_repeat {
  uint64_t key; /* 0: unused */
  int64_t ends_ns;
  unsigned n_allowed;  /* lines that may still be written */
  uint64_t n_left_out; /* lines that were not */
  enum log_level level;
  const char *event;
  char pairs[LOG_LIMIT_PAIRS_BYTES]; /* of the newest line that was left out */
};

/* A limit starts as all zeros. A new key replaces the oldest one that owes no `repeated=` line. If all owe one, the new
 * key is not limited. Thread: one at a time. */
struct log_limit {
  struct log_repeat events[LOG_LIMIT_KEYS];
  struct log_repeat lines[LOG_LIMIT_KEYS];
};

/* May the line be written now? If not, it is counted.
 *
 * now_ns  of clock_now_ns()
 */
bool log_limit_allows(struct log_limit *l, const struct log_record *record, int64_t now_ns);

/* Take a line that stands for those left out in a window that has ended by `now_ns`. Returns false if there is none. */
bool log_limit_pop(struct log_limit *l, int64_t now_ns, struct log_repeat *out);

#endif
