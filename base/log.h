/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one line for each event, `event=name key=value ...`, on standard error, unless a sink takes it.
 *
 * A line starts with a UTC time and the level's name. Where standard error is the journal's stream, it starts with its
 * journald priority instead (<3> error, <4> warning, <6> info, <7> debug). The caller quotes values that contain
 * spaces; log_quote() quotes text from outside. Events that repeat are limited and counted (base/log_limit.h).
 *
 * Thread: any. Each line is one write(2), so lines of different threads never mix.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"
#include "base/span.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Set the lowest level that is logged; LOG_LEVEL_INFO at first. */
void log_set_level(enum log_level level);

struct log_record {
  enum log_level level;
  const char *event;
  const char *pairs; /* "key=value ..."; secrets are hidden */
};

/* Take a record to another place than standard error. Returns false if that fails; then the line is written there. */
typedef bool log_sink(const struct log_record *record);

/* Set the sink of all further records. Thread: before there are others. */
void log_set_sink(log_sink *sink);

/* The priority of a level, as in syslog(3). */
int log_priority(enum log_level level);

/* Is standard error the stream that the journal reads? */
bool log_is_journal(void);

/* Log an event.
 *
 * event   name of the event, a literal without spaces; the daemon's have a row in daemon/journal/journal_events.c
 * format  printf format of the `key=value` pairs; "" for none
 */
void log_event(enum log_level level, const char *event, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define log_error(...) log_event(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_event(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_event(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_event(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Write a line with `repeated=N` for each event that was limited in a window that ends by `until_ns` of
 * clock_now_ns(). Call it now and then. */
void log_write_repeats(int64_t until_ns);

/* Quote text for a value. Control characters, quotes, backslashes and bytes above 0x7e become \xHH. Text that is too
 * long is cut and ends in "...". The result is in one of four buffers of the calling thread, which are used in turn. */
const char *log_quote(struct span text);

/* Return the calling thread's newest failure, quoted, for error=%s. Uses a buffer of log_quote(). */
const char *log_failure(void);

#endif
