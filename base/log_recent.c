/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of log lines. */
#include "base/log_recent.h"

#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/size.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct log_line lines[LOG_RECENT_MAX];
static size_t n_added;

void log_recent_add(const struct log_record *record)
{
  pthread_mutex_lock(&mutex);
  struct log_line *line = &lines[n_added++ % LOG_RECENT_MAX];
  line->unix_ms = clock_unix_ms();
  line->level = record->level;
  snprintf(line->text, sizeof line->text, "event=%s%s%s", record->event, *record->pairs ? " " : "", record->pairs);
  pthread_mutex_unlock(&mutex);
}

size_t log_recent_get(struct log_line *out)
{
  pthread_mutex_lock(&mutex);
  size_t n = size_min(n_added, LOG_RECENT_MAX);
  for (size_t i = 0; i < n; i++)
    out[i] = lines[(n_added - 1 - i) % LOG_RECENT_MAX];
  pthread_mutex_unlock(&mutex);
  return n;
}
