/* SPDX-License-Identifier: Apache-2.0 */
/* Log: one line an event, `event=name key=value ...`, to standard error.
 *
 * Under systemd each line starts with its journald priority (<3> error, <4> warning, <6> info, <7> debug); elsewhere
 * with a UTC time and the level's name. Values with spaces are quoted by the caller: log_quote() does it for
 * text from outside.
 *
 * Thread: any; a line is written by one write(2), so that lines never mix.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"
#include "base/span.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_set_level(enum log_level level);

/* Find the level by name: error, warn, info, debug. */
bool log_level_find(const char *name, enum log_level *out);

/* event   name of the event, a literal without spaces
 * format  printf format of the `key=value` pairs; "" for none
 */
void log_event(enum log_level level, const char *event, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define log_error(...) log_event(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_event(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_event(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_event(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Quote text for a value: "..." with control characters, quotes and bytes over 0x7e as \xHH; cut with "..." where too
 * long. The result lives in one of four buffers of the calling thread, used in turn. */
const char *log_quote(struct span text);

/* The newest failure, quoted, for error=%s. */
const char *log_failure(void);

#endif
