/* SPDX-License-Identifier: Apache-2.0 */
/* The queries that wait, by class, and what a query of each class costs: a hash table, sized at start. A class that is
 * idle keeps its place, and so its measurements, until a new class needs the place. fair_queue.h chooses between them.
 *
 * Thread: one at a time.
 */
#ifndef DAEMON_QUERIES_CLASS_QUEUES_H
#define DAEMON_QUERIES_CLASS_QUEUES_H

#include "daemon/queries/pending_query.h"

/* What queries have in common that are searched together. */
struct query_class {
  size_t space;  /* as pending_query.space; its generations share a weight */
  size_t number; /* as pending_query.number */
  struct method method;
  bool takes_longer; /* than others of the method, which would wait for it in a batch */
  bool is_background;
};

static inline struct query_class query_class_of(const struct pending_query *query)
{
  bool takes_longer = query_takes_rounds(&query->query) || query->query.mmr.diversity > 0;

  return (struct query_class){ query->space, query->number, query->method, takes_longer, query->query.is_background };
}

/* No index of a class. */
#define CLASS_QUEUES_NONE UINT32_MAX

/* A class: its queries in the order of their arrival. It is idle while none waits and none is searched. */
struct class_queue {
  struct query_class of;
  uint32_t next_in_table;
  uint32_t next_active; /* next class of the flow in which queries wait */
  struct pending_query *first;
  struct pending_query *last;
  size_t n;
  size_t n_running; /* batches that workers have */
  double virtual_ns;
  int64_t cost_ns;      /* average time of a query; 0: never measured */
  int64_t full_cost_ns; /* the same over batches that were at least half full */
  int64_t measured_ns;  /* when the last batch ended */
  bool pauses;          /* between the steps of its batches */
};

struct class_queues {
  struct class_queue *at; /* [max]; the first n were used */
  size_t max, n;
  size_t next_idle; /* where the search for an idle class continues */
  uint32_t *table;  /* [table_mask + 1] by hash */
  size_t table_mask;
};

/* Reserve room for `max` classes. At least as many as can be busy at a time: so a new one finds an idle one. */
err_t class_queues_init(size_t max, struct class_queues *out);
void class_queues_fini(struct class_queues *q);

/* Return the index of a class, or CLASS_QUEUES_NONE. */
uint32_t class_queues_find(const struct class_queues *q, const struct query_class *of);

/* The same. A class that is not there yet takes an unused place, else that of an idle one, whose measurements are lost.
 */
uint32_t class_queues_get(struct class_queues *q, const struct query_class *of);

/* Append a query. */
void class_queue_push(struct class_queue *c, struct pending_query *query);

/* Return the expected time of a query in a long queue, where batches are full. */
int64_t class_queue_cost_ns(const struct class_queue *c);

/* Return the expected time of all queries that wait. */
double class_queue_waiting_ns(const struct class_queue *c);

/* Was the class measured within the last second? An older measurement refuses no query: the next query measures again.
 */
bool class_queue_is_fresh(const struct class_queue *c, int64_t now_ns);

/* A batch of n queries has taken cost_ns.
 *
 * is_full  it was at least half full
 */
void class_queue_measure(struct class_queue *c, size_t n, bool is_full, int64_t cost_ns, int64_t now_ns);

#endif
