/* SPDX-License-Identifier: Apache-2.0 */
/* Formatting and writing log lines, and quoting text for them. */
#include "base/log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_limit.h"
#include "base/log_recent.h"
#include "base/secrets.h"

enum { LINE_BYTES = 2048, QUOTE_BYTES = 512, QUOTE_BUFFERS = 4 };

static const struct {
  const char *name;
  int priority; /* syslog(3) */
} levels[] = {
  [LOG_LEVEL_ERROR] = { "error", 3 },
  [LOG_LEVEL_WARN] = { "warn", 4 },
  [LOG_LEVEL_INFO] = { "info", 6 },
  [LOG_LEVEL_DEBUG] = { "debug", 7 },
};

static _Atomic int threshold = LOG_LEVEL_INFO;
static log_sink *sink;
static pthread_mutex_t limit_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct log_limit limit;

void log_set_level(enum log_level level)
{
  atomic_store(&threshold, (int)level);
}

int log_priority(enum log_level level)
{
  return levels[level].priority;
}

void log_set_sink(log_sink *new_sink)
{
  sink = new_sink;
}

/* The variable alone does not prove it, because terminals inherit it. */
bool log_is_journal(void)
{
  const char *text = getenv("JOURNAL_STREAM");
  unsigned long long device, inode;
  struct stat stream;

  return text && sscanf(text, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &stream) == 0 &&
         stream.st_dev == device && stream.st_ino == inode;
}

static size_t print_prefix(char *line, size_t size, enum log_level level)
{
  if (log_is_journal())
    return (size_t)snprintf(line, size, "<%d>", levels[level].priority);

  struct timespec now;
  struct tm utc;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &utc);
  size_t n = strftime(line, size, "%Y-%m-%dT%H:%M:%S", &utc);
  return n + (size_t)snprintf(line + n, size - n, ".%03ldZ %-5s ", now.tv_nsec / 1000000, levels[level].name);
}

/* Write the record as a line. A line that is too long is cut. */
static void write_line(const struct log_record *r)
{
  char line[LINE_BYTES];
  size_t prefix = print_prefix(line, sizeof line, r->level);

  snprintf(line + prefix, sizeof line - 1 - prefix, "event=%s%s%s", r->event, *r->pairs ? " " : "", r->pairs);
  size_t n = strlen(line);
  line[n++] = '\n';
  if (write(STDERR_FILENO, line, n) < 0)
    return; /* there is no place left to report the failure */
}

static void emit(const struct log_record *r)
{
  if (r->level <= LOG_LEVEL_WARN)
    log_recent_add(r);
  if (!sink || !sink(r))
    write_line(r);
}

static bool limit_allows(const struct log_record *r)
{
  pthread_mutex_lock(&limit_mutex);
  bool is_allowed = log_limit_allows(&limit, r, clock_now_ns());
  pthread_mutex_unlock(&limit_mutex);
  return is_allowed;
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
  char pairs[LINE_BYTES];
  struct log_record record = { level, event, pairs };
  va_list args;

  if ((int)level > atomic_load_explicit(&threshold, memory_order_relaxed))
    return;
  va_start(args, format);
  vsnprintf(pairs, sizeof pairs, format, args);
  va_end(args);
  secrets_hide(pairs, sizeof pairs);
  if (limit_allows(&record))
    emit(&record);
}

static bool pop_repeat(int64_t until_ns, struct log_repeat *out)
{
  pthread_mutex_lock(&limit_mutex);
  bool is_there = log_limit_pop(&limit, until_ns, out);
  pthread_mutex_unlock(&limit_mutex);
  return is_there;
}

void log_write_repeats(int64_t until_ns)
{
  char pairs[LOG_LIMIT_PAIRS_BYTES + 32];
  struct log_repeat r;

  while (pop_repeat(until_ns, &r)) {
    snprintf(pairs, sizeof pairs, "repeated=%" PRIu64 " %s", r.n_left_out, r.pairs);
    emit(&(struct log_record){ r.level, r.event, pairs });
  }
}

const char *log_quote(struct span text)
{
  static _Thread_local char buffers[QUOTE_BUFFERS][QUOTE_BYTES];
  static _Thread_local unsigned turn;
  char *out = buffers[turn++ % QUOTE_BUFFERS];
  size_t n = 0;

  out[n++] = '"';
  for (size_t i = 0; i < text.n; i++) {
    uint8_t c = text.p[i];
    if (n > QUOTE_BYTES - 12) {
      memcpy(out + n, "...", 3);
      n += 3;
      break;
    }
    if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
      n += (size_t)snprintf(out + n, 5, "\\x%02x", c);
    else
      out[n++] = (char)c;
  }
  out[n++] = '"';
  out[n] = '\0';
  return out;
}

const char *log_failure(void)
{
  return log_quote(span_of_str(err_message()));
}
