/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one line for each event, `event=name key=value ...`, on standard error.
 *
 * Under systemd each line starts with its journald priority (<3> error, <4> warning, <6> info, <7> debug); elsewhere
 * with a UTC time and the level's name. The caller quotes values that contain spaces; log_quote() quotes text from
 * outside.
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

/* Find a level by its name: error, warn, info, debug. */
bool log_level_find(const char *name, enum log_level *out);

/* Log an event.
 *
 * event   name of the event, a literal without spaces
 * format  printf format of the `key=value` pairs; "" for none
 */
void log_event(enum log_level level, const char *event, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define log_error(...) log_event(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_event(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_event(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_event(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Quote text for a value. Control characters, quotes, backslashes and bytes above 0x7e become \xHH. Text that is too
 * long is cut and ends in "...". The result is in one of four buffers of the calling thread, which are used in turn. */
const char *log_quote(struct span text);

/* Return the calling thread's newest failure, quoted, for error=%s. Uses a buffer of log_quote(). */
const char *log_failure(void);

#endif
