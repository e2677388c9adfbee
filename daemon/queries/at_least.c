/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing what a query wants with what was read, and the message that explains a difference. */
#include "daemon/queries/at_least.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_seen_reached(const struct at_least_sources *sources, const struct query *query)
{
  return query->exclude_seen_by.n == 0 ||
         seen_progress_has_reached(seen_progress_of(sources->seen), query->at_least_seen, query->n_at_least_seen);
}

bool at_least_is_reached(const struct at_least_sources *sources, const struct query *query)
{
  return engine_has_seen(sources->engine, query->at_least, query->n_at_least) && is_seen_reached(sources, query);
}

void at_least_state_get(const struct at_least_sources *sources, struct at_least_state *out)
{
  struct engine_epoch epoch;

  engine_epoch_get(sources->engine, &epoch, NULL, 0);
  out->epoch = epoch.number;
  out->seen = sources->seen ? atomic_load(&seen_progress_of(sources->seen)->version) : 0;
}

/* ---- The seen topic ---- */

static void explain_seen(const struct at_least_sources *sources, const struct query *query, enum at_least_end end,
                         char *message, size_t n)
{
  static const char *const reasons[] = {
    [AT_LEAST_DEADLINE] = "the deadline passed before the seen topic was read as far as the query wants",
    [AT_LEAST_TIMEOUT] = "the seen topic was not read as far as the query wants within query.at_least_timeout_ms",
    [AT_LEAST_NO_WAIT] = "the seen topic was not read as far as the query wants, and the query has no_wait",
  };
  struct seen_progress *progress = seen_progress_of(sources->seen);
  struct position want;
  int64_t have;

  if (!atomic_load(&progress->has_caught_up))
    snprintf(message, n, "%s: it has not been read to its end since the daemon started", reasons[end]);
  else if (!seen_progress_find_missing(progress, query->at_least_seen, query->n_at_least_seen, &want, &have))
    snprintf(message, n, "%s", reasons[end]); /* it has been reached meanwhile */
  else if (have < 0)
    snprintf(message, n, "%s: at_least_seen wants partition %" PRId32 ", but the seen topic has no such partition",
             reasons[end], want.partition);
  else
    snprintf(message, n, "%s: at_least_seen wants partition %" PRId32 " at offset %" PRId64 ", and it is at %" PRId64,
             reasons[end], want.partition, want.next, have);
}

/* ---- The catalogue ---- */

static const struct position *find_partition(const struct position *positions, size_t n, int32_t partition)
{
  for (size_t i = 0; i < n; i++) {
    if (positions[i].partition == partition)
      return &positions[i];
  }
  return NULL;
}

/* Explain the first position that is not among those that were read. */
static void explain_positions(const struct query *query, const struct position *seen, size_t n_seen, const char *reason,
                              char *message, size_t n)
{
  for (size_t i = 0; i < query->n_at_least; i++) {
    const struct position *want = &query->at_least[i];
    const struct position *have = find_partition(seen, n_seen, want->partition);
    if (!have && want->next > 0)
      snprintf(message, n,
               "%s: at_least wants partition %" PRId32 " at offset %" PRId64
               ", but the catalogue topic has no such partition: %zu are known",
               reason, want->partition, want->next, n_seen);
    else if (have && have->next < want->next)
      snprintf(message, n, "%s: at_least wants partition %" PRId32 " at offset %" PRId64 ", and it is at %" PRId64,
               reason, want->partition, want->next, have->next);
    else
      continue;
    return;
  }
}

static void explain_catalogue(struct engine *engine, const struct query *query, enum at_least_end end,
                              struct region *scratch, char *message, size_t n)
{
  static const char *const reasons[] = {
    [AT_LEAST_DEADLINE] = "the deadline passed before the catalogue had seen at_least",
    [AT_LEAST_TIMEOUT] = "the catalogue has not seen at_least within query.at_least_timeout_ms",
    [AT_LEAST_NO_WAIT] = "the catalogue has not seen at_least, and the query has no_wait",
  };
  struct engine_epoch epoch;
  struct position *seen;

  snprintf(message, n, "%s", reasons[end]);
  region_reset(scratch);
  engine_epoch_get(engine, &epoch, NULL, 0);
  size_t capacity = epoch.n_positions;
  if (region_array(scratch, capacity + 1, sizeof *seen, &seen) != ERR_OK)
    return;
  engine_epoch_get(engine, &epoch, seen, capacity);
  size_t n_seen = epoch.n_positions < capacity ? epoch.n_positions : capacity;
  if (n_seen == 0)
    snprintf(message, n, "%s: nothing of the catalogue topic has been seen yet, or a new catalogue is still being read",
             reasons[end]);
  else
    explain_positions(query, seen, n_seen, reasons[end], message, n);
}

void at_least_explain(const struct at_least_sources *sources, const struct query *query, enum at_least_end end,
                      struct region *scratch, char *message, size_t n)
{
  if (engine_has_seen(sources->engine, query->at_least, query->n_at_least) && !is_seen_reached(sources, query))
    explain_seen(sources, query, end, message, n);
  else
    explain_catalogue(sources->engine, query, end, scratch, message, n);
}
