/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a handover: when it is time to drain, and when that has lasted long enough. */
#include "daemon/queries/query_handover.h"

#include "base/clock.h"

/* How long the queries that were taken may take to be answered. The rest is read again by the next consumer. */
enum { DRAIN_MS = 1500 };

void query_handover_begin(struct query_handover *h, struct query_reader **next, struct query_reader *former)
{
  *h = (struct query_handover){ .next = *next };
  *next = NULL;
  query_reader_stand_by(h->next, true);
  query_reader_keep_partitions(former);
}

void query_handover_abort(struct query_handover *h)
{
  query_reader_abandon(&h->next);
  *h = (struct query_handover){ 0 };
}

/* Can the next consumer take over? It is assigned before the former one was asked for its partitions if that one has
 * none, or lost them because no broker lets it in. */
static bool can_begin(const struct query_handover *h, const struct query_reader *former)
{
  return query_reader_is_assigned(h->next) || (query_reader_is_awaited(former) && query_reader_is_member(h->next));
}

err_t query_handover_step(struct query_handover *h, struct query_reader *former, size_t n_open, bool *is_due)
{
  struct query_record none;
  bool has_record;

  TRY(query_reader_poll(h->next, 0, false, &has_record, &none));
  if (!h->until_ns && can_begin(h, former))
    h->until_ns = clock_now_ns() + DRAIN_MS * CLOCK_NS_PER_MS;
  else if (!h->until_ns && query_reader_is_awaited(former))
    query_reader_give_up(former); /* another member has joined: the next consumer may never be let in */
  *is_due = h->until_ns && (n_open == 0 || clock_now_ns() >= h->until_ns);
  return ERR_OK;
}

struct query_reader *query_handover_end(struct query_handover *h)
{
  struct query_reader *next = h->next;

  *h = (struct query_handover){ 0 };
  return next;
}
