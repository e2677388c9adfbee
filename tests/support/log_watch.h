/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a warning in the log of the process. Include it after cmocka.h. */
#ifndef TESTS_SUPPORT_LOG_WATCH_H
#define TESTS_SUPPORT_LOG_WATCH_H

#include <string.h>

#include "base/clock.h"
#include "base/log_recent.h"

/* Return how many of the newest warnings have the words. */
static inline size_t log_watch_count(const char *words)
{
  struct log_line lines[LOG_RECENT_MAX];
  size_t n = log_recent_get(lines), n_found = 0;

  for (size_t i = 0; i < n; i++)
    n_found += strstr(lines[i].text, words) != NULL;
  return n_found;
}

static inline bool log_watch_has(const char *words)
{
  return log_watch_count(words) > 0;
}

static inline void log_watch_wait(const char *words)
{
  int64_t end_ns = clock_now_ns() + 10 * CLOCK_NS_PER_S;

  while (!log_watch_has(words) && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  if (!log_watch_has(words))
    fail_msg("no warning has `%s`", words);
}

#endif
