/* SPDX-License-Identifier: Apache-2.0 */
/* Counting the lines of each key in its window. */
#include "base/log_limit.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log_pairs.h"

static const int64_t window_ns = LOG_LIMIT_WINDOW_S * CLOCK_NS_PER_S;

/* FNV-1a. It does not return 0, the key of an unused row. */
static uint64_t hash(uint64_t seed, struct span text)
{
  uint64_t h = seed ^ UINT64_C(0xcbf29ce484222325);

  for (size_t i = 0; i < text.n; i++)
    h = (h ^ text.p[i]) * UINT64_C(0x100000001b3);
  return h ? h : 1;
}

static uint64_t hash_of_line(uint64_t event, const struct log_record *record)
{
  struct log_pair reason;
  bool has_reason = log_pairs_find(record->pairs, "reason", &reason);

  return hash(event, has_reason ? reason.value : span_of_str(record->pairs));
}

static bool is_over(const struct log_repeat *r, int64_t now_ns)
{
  return now_ns >= r->ends_ns && r->n_left_out == 0;
}

static struct log_repeat *find(struct log_repeat rows[LOG_LIMIT_KEYS], uint64_t key, int64_t now_ns)
{
  for (size_t i = 0; i < LOG_LIMIT_KEYS; i++) {
    if (rows[i].key == key && !is_over(&rows[i], now_ns))
      return &rows[i];
  }
  return NULL;
}

/* Take the row with the oldest window. Rows that have left out lines keep their count. NULL: all have. */
static struct log_repeat *add(struct log_repeat rows[LOG_LIMIT_KEYS], uint64_t key, unsigned n_allowed, int64_t now_ns)
{
  struct log_repeat *oldest = NULL;

  for (size_t i = 0; i < LOG_LIMIT_KEYS; i++) {
    if (rows[i].n_left_out == 0 && (!oldest || rows[i].ends_ns < oldest->ends_ns))
      oldest = &rows[i];
  }
  if (oldest)
    *oldest = (struct log_repeat){ .key = key, .ends_ns = now_ns + window_ns, .n_allowed = n_allowed };
  return oldest;
}

static struct log_repeat *find_or_add(struct log_repeat rows[LOG_LIMIT_KEYS], uint64_t key, unsigned n_allowed,
                                      int64_t now_ns)
{
  struct log_repeat *row = find(rows, key, now_ns);

  return row ? row : add(rows, key, n_allowed, now_ns);
}

static bool allows(struct log_repeat *row, const struct log_record *record)
{
  if (!row)
    return true;
  if (row->n_allowed > 0) {
    row->n_allowed--;
    return true;
  }
  row->n_left_out++;
  row->level = record->level;
  row->event = record->event;
  snprintf(row->pairs, sizeof row->pairs, "%s", record->pairs);
  return false;
}

bool log_limit_allows(struct log_limit *l, const struct log_record *record, int64_t now_ns)
{
  uint64_t event = hash(0, span_of_str(record->event));

  if (record->level == LOG_LEVEL_DEBUG)
    return true;
  if (!allows(find_or_add(l->lines, hash_of_line(event, record), LOG_LIMIT_SAME, now_ns), record))
    return false;
  return record->level > LOG_LEVEL_WARN || allows(find_or_add(l->events, event, LOG_LIMIT_EVENT, now_ns), record);
}

static bool pop(struct log_repeat rows[LOG_LIMIT_KEYS], int64_t now_ns, struct log_repeat *out)
{
  for (size_t i = 0; i < LOG_LIMIT_KEYS; i++) {
    struct log_repeat *row = &rows[i];
    if (row->key == 0 || row->n_left_out == 0 || now_ns < row->ends_ns)
      continue;
    *out = *row;
    row->n_left_out = 0;
    row->ends_ns = now_ns + window_ns;
    return true;
  }
  return false;
}

bool log_limit_pop(struct log_limit *l, int64_t now_ns, struct log_repeat *out)
{
  return pop(l->lines, now_ns, out) || pop(l->events, now_ns, out);
}
