/* SPDX-License-Identifier: Apache-2.0 */
/* The list of queries that wait for at_least and at_least_seen. */
#include "daemon/queries/at_least_list.h"

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

struct pending_query *at_least_list_take_ended(struct at_least_list *list, const struct at_least_sources *sources,
                                               int64_t now_ns, size_t max)
{
  struct pending_query *ended = NULL, **link = &ended;
  size_t n_ended = 0;
  struct at_least_state state;

  if (list->n == 0)
    return NULL;
  at_least_state_get(sources, &state); /* first, so that what is read meanwhile is noticed next time */
  if (state.epoch == list->state.epoch && state.seen == list->state.seen && now_ns < list->due_ns)
    return NULL;
  list->state = state;
  for (struct pending_query *query = at_least_list_take_all(list), *next; query; query = next) {
    next = query->next;
    query->is_seen = n_ended < max && at_least_is_reached(sources, &query->query);
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
