/* SPDX-License-Identifier: Apache-2.0 */
/* The newest warnings and errors of the log, for those who ask the daemon instead of reading its log. Thread: any. */
#ifndef BASE_LOG_RECENT_H
#define BASE_LOG_RECENT_H

#include "base/log.h"

/* LOG_RECENT_MAX lines are kept. Longer ones are cut. */
enum { LOG_RECENT_MAX = 20, LOG_RECENT_BYTES = 400 };

struct log_line {
  int64_t unix_ms;
  enum log_level level;
  char text[LOG_RECENT_BYTES]; /* "event=..." */
};

/* Keep a line. The oldest gives way. */
void log_recent_add(const struct log_record *record);

/* Copy the lines, newest first, and return their number.
 *
 * out  [LOG_RECENT_MAX]
 */
size_t log_recent_get(struct log_line *out);

#endif
