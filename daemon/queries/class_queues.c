/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with chains of indices, and moving averages of costs. */
#include "daemon/queries/class_queues.h"

#include <string.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/mem.h"

/* The newest measurement weighs 1 / AVERAGE_OF in the moving average. */
enum { AVERAGE_OF = 4 };

#define FRESH_NS CLOCK_NS_PER_S

err_t class_queues_init(size_t max, struct class_queues *out)
{
  AUTO(class_queues_fini) struct class_queues q = { .max = max, .table_mask = 63 };

  while (q.table_mask < max)
    q.table_mask = 2 * q.table_mask + 1;
  TRY(mem_reserve(max, sizeof *q.at, &q.at));
  TRY(mem_array(q.table_mask + 1, sizeof *q.table, &q.table));
  memset(q.table, 0xff, (q.table_mask + 1) * sizeof *q.table); /* CLASS_QUEUES_NONE */
  *out = q;
  q = (struct class_queues){ 0 };
  return ERR_OK;
}

void class_queues_fini(struct class_queues *q)
{
  mem_release(&q->at, q->max, sizeof *q->at);
  mem_free(&q->table);
}

/* ---- The table ---- */

static size_t hash_of(const struct query_class *of)
{
  return XXH3_64bits_withSeed(&of->method, sizeof of->method,
                              of->space ^ of->number << 16 ^ (size_t)of->takes_longer << 63 ^
                                  (size_t)of->is_background << 62);
}

static bool is_same(const struct query_class *a, const struct query_class *b)
{
  return a->space == b->space && a->number == b->number && a->takes_longer == b->takes_longer &&
         a->is_background == b->is_background && memcmp(&a->method, &b->method, sizeof a->method) == 0;
}

uint32_t class_queues_find(const struct class_queues *q, const struct query_class *of)
{
  uint32_t i = q->table[hash_of(of) & q->table_mask];

  while (i != CLASS_QUEUES_NONE && !is_same(&q->at[i].of, of))
    i = q->at[i].next_in_table;
  return i;
}

static void drop_from_table(struct class_queues *q, uint32_t index)
{
  uint32_t *link = &q->table[hash_of(&q->at[index].of) & q->table_mask];

  while (*link != index)
    link = &q->at[*link].next_in_table;
  *link = q->at[index].next_in_table;
}

static bool is_idle(const struct class_queue *c)
{
  return c->n == 0 && c->n_running == 0;
}

static uint32_t take_place(struct class_queues *q)
{
  if (q->n < q->max)
    return (uint32_t)q->n++;
  while (!is_idle(&q->at[q->next_idle]))
    q->next_idle = (q->next_idle + 1) % q->max;
  drop_from_table(q, (uint32_t)q->next_idle);
  return (uint32_t)q->next_idle;
}

uint32_t class_queues_get(struct class_queues *q, const struct query_class *of)
{
  uint32_t index = class_queues_find(q, of);

  if (index != CLASS_QUEUES_NONE)
    return index;
  index = take_place(q);
  uint32_t *slot = &q->table[hash_of(of) & q->table_mask];
  q->at[index] = (struct class_queue){ .of = *of, .next_in_table = *slot };
  *slot = index;
  return index;
}

/* ---- One class ---- */

void class_queue_push(struct class_queue *c, struct pending_query *query)
{
  query->next = NULL;
  if (c->n == 0)
    c->first = query;
  else
    c->last->next = query;
  c->last = query;
  c->n++;
}

/* The average over all batches is too high if most were small. The average over full batches may be old. The smaller of
 * the two refuses fewer queries. */
int64_t class_queue_cost_ns(const struct class_queue *c)
{
  return c->full_cost_ns && c->full_cost_ns < c->cost_ns ? c->full_cost_ns : c->cost_ns;
}

double class_queue_waiting_ns(const struct class_queue *c)
{
  return (double)c->n * (double)class_queue_cost_ns(c);
}

bool class_queue_is_fresh(const struct class_queue *c, int64_t now_ns)
{
  return c->cost_ns && now_ns - c->measured_ns < FRESH_NS;
}

static void average(int64_t *cost_ns, int64_t newest_ns)
{
  *cost_ns = *cost_ns ? *cost_ns + (newest_ns - *cost_ns) / AVERAGE_OF : newest_ns;
  if (*cost_ns < 1)
    *cost_ns = 1;
}

void class_queue_measure(struct class_queue *c, size_t n, bool is_full, int64_t cost_ns, int64_t now_ns)
{
  if (is_full)
    average(&c->full_cost_ns, cost_ns / (int64_t)n);
  average(&c->cost_ns, cost_ns / (int64_t)n);
  c->measured_ns = now_ns;
}
