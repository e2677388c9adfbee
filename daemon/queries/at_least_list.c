/* SPDX-License-Identifier: Apache-2.0 */
/* The list of queries that wait for at_least, and the message that explains why a wait failed. */
#include "daemon/queries/at_least_list.h"

#include <inttypes.h>
#include <stdio.h>

bool at_least_list_has_room(const struct at_least_list *list, const struct pending_query *query)
{
  return list->n < list->max_queries && (list->n == 0 || list->bytes + query->bytes <= list->max_bytes);
}

static int64_t end_of(const struct pending_query *query)
{
  return query->deadline_ns < query->give_up_ns ? query->deadline_ns : query->give_up_ns;
}

static void append(struct at_least_list *list, struct pending_query *query)
{
  query->next = NULL;
  if (list->last)
    list->last->next = query;
  else
    list->first = query;
  list->last = query;
  list->n++;
  list->bytes += query->bytes;
  if (list->n == 1 || end_of(query) < list->due_ns)
    list->due_ns = end_of(query);
}

void at_least_list_push(struct at_least_list *list, struct pending_query *query)
{
  append(list, query);
}

struct pending_query *at_least_list_take_all(struct at_least_list *list)
{
  struct pending_query *all = list->first;

  list->first = list->last = NULL;
  list->n = list->bytes = 0;
  return all;
}

struct pending_query *at_least_list_take_ended(struct at_least_list *list, struct engine *engine, int64_t now_ns,
                                               size_t max)
{
  struct pending_query *ended = NULL, **link = &ended;
  size_t n_ended = 0;
  struct engine_epoch epoch;

  if (list->n == 0)
    return NULL;
  engine_epoch_get(engine, &epoch, NULL, 0); /* read first, so that an epoch published meanwhile is seen next time */
  if (epoch.number == list->epoch && now_ns < list->due_ns)
    return NULL;
  list->epoch = epoch.number;
  for (struct pending_query *query = at_least_list_take_all(list), *next; query; query = next) {
    next = query->next;
    query->is_seen = n_ended < max && engine_has_seen(engine, query->query.at_least, query->query.n_at_least);
    if (n_ended < max && (query->is_seen || end_of(query) <= now_ns)) {
      n_ended++;
      query->next = NULL;
      *link = query;
      link = &query->next;
    } else {
      append(list, query);
    }
  }
  if (n_ended == max && list->n > 0)
    list->due_ns = now_ns; /* look at the rest in the next call */
  return ended;
}

static const struct position *find_partition(const struct position *positions, size_t n, int32_t partition)
{
  for (size_t i = 0; i < n; i++) {
    if (positions[i].partition == partition)
      return &positions[i];
  }
  return NULL;
}

void at_least_list_explain(struct engine *engine, const struct query *query, const char *reason, struct region *scratch,
                           char *message, size_t n)
{
  struct engine_epoch epoch;
  struct position *seen;

  snprintf(message, n, "%s", reason);
  region_reset(scratch);
  engine_epoch_get(engine, &epoch, NULL, 0);
  size_t capacity = epoch.n_positions;
  if (region_array(scratch, capacity + 1, sizeof *seen, &seen) != ERR_OK)
    return;
  engine_epoch_get(engine, &epoch, seen, capacity);
  size_t n_seen = epoch.n_positions < capacity ? epoch.n_positions : capacity;
  if (n_seen == 0) {
    snprintf(message, n, "%s: nothing of the catalogue topic has been seen yet, or a new catalogue is still being read",
             reason);
    return;
  }
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
