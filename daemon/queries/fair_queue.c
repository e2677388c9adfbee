/* SPDX-License-Identifier: Apache-2.0 */
/* Start-time fair queueing over two levels: a hash table of classes, and for each space a list of its busy classes. */
#include "daemon/queries/fair_queue.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define NO_CLASS UINT32_MAX

/* The newest measurement weighs 1 / AVERAGE_OF in the moving average. */
enum { AVERAGE_OF = 4 };

/* A batch may interrupt one that takes at least so many times as long. */
enum { SHORT_SHARE = 4 };

/* A search pauses for so much longer than it has searched, at most: its epoch is held meanwhile, and publication waits.
 */
#define PAUSED_NS_MAX CLOCK_NS_PER_S

/* An older measurement refuses no query: the next query measures again. */
#define FRESH_NS CLOCK_NS_PER_S

struct class
{
  struct query_class of;
  uint32_t next_in_table;
  uint32_t next_active; /* next class of the space in which queries wait */
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

struct space {
  double weight;
  double virtual_ns;
  double newest_ns; /* virtual time of the class that was chosen last */
  uint32_t active;  /* first class in which queries wait */
};

/* A batch that a worker searches. */
struct running_batch {
  bool is_used;
  bool is_between;
  uint32_t class;
  int64_t began_ns;
  int64_t estimate_ns;
  int64_t between_ns; /* time of the batches that interrupted it */
};

struct fair_queue {
  struct fair_queue_config with;
  struct space *spaces;
  double newest_ns; /* virtual time of the space that was chosen last */
  struct class *classes;
  size_t max_classes;
  size_t n_classes; /* places in `classes` that were ever used */
  size_t next_idle; /* where the search for an idle class continues */
  uint32_t *table;  /* [table_mask + 1] by hash */
  size_t table_mask;
  struct running_batch *runs; /* [n_runs] */
  size_t n_runs;
  size_t n;
};

err_t fair_queue_open(const struct fair_queue_config *config, struct fair_queue **out)
{
  AUTO(fair_queue_close) struct fair_queue *f = NULL;

  TRY(mem_array(1, sizeof *f, &f));
  f->with = *config;
  f->max_classes =
      config->n_queries + 2 * config->n_workers; /* as many as can be busy: a new class finds an idle one */
  TRY(mem_array(config->n_spaces, sizeof *f->spaces, &f->spaces));
  for (size_t i = 0; i < config->n_spaces; i++)
    f->spaces[i] = (struct space){ .weight = config->weights[i], .active = NO_CLASS };
  TRY(mem_reserve(f->max_classes, sizeof *f->classes, &f->classes));
  for (f->table_mask = 63; f->table_mask < f->max_classes; f->table_mask = 2 * f->table_mask + 1)
    ;
  TRY(mem_array(f->table_mask + 1, sizeof *f->table, &f->table));
  memset(f->table, 0xff, (f->table_mask + 1) * sizeof *f->table); /* NO_CLASS */
  f->n_runs = 2 * config->n_workers;                              /* each may have one in between */
  TRY(mem_array(f->n_runs, sizeof *f->runs, &f->runs));
  *out = f;
  f = NULL;
  return ERR_OK;
}

void fair_queue_close(struct fair_queue **f)
{
  if (!*f)
    return;
  mem_release(&(*f)->classes, (*f)->max_classes, sizeof *(*f)->classes);
  mem_free(&(*f)->spaces);
  mem_free(&(*f)->table);
  mem_free(&(*f)->runs);
  mem_free(f);
}

size_t fair_queue_n(const struct fair_queue *f)
{
  return f->n;
}

/* ---- The table of classes ---- */

/* Hash by FNV-1a. */
static size_t hash_of(const struct query_class *of)
{
  const uint8_t *bytes = (const uint8_t *)&of->method;
  uint64_t hash = 0xcbf29ce484222325u ^ of->space ^ of->number << 16;

  for (size_t i = 0; i < sizeof of->method; i++)
    hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return (size_t)(hash ^ hash >> 32);
}

static bool is_same(const struct query_class *a, const struct query_class *b)
{
  return a->space == b->space && a->number == b->number && memcmp(&a->method, &b->method, sizeof a->method) == 0;
}

static uint32_t find_class(const struct fair_queue *f, const struct query_class *of)
{
  uint32_t i = f->table[hash_of(of) & f->table_mask];

  while (i != NO_CLASS && !is_same(&f->classes[i].of, of))
    i = f->classes[i].next_in_table;
  return i;
}

static void drop_from_table(struct fair_queue *f, uint32_t index)
{
  const struct class *c = &f->classes[index];
  uint32_t *link = &f->table[hash_of(&c->of) & f->table_mask];

  while (*link != index)
    link = &f->classes[*link].next_in_table;
  *link = c->next_in_table;
}

/* Return a place for a new class: an unused one, else that of an idle class, whose measurements are lost. */
static uint32_t take_place(struct fair_queue *f)
{
  if (f->n_classes < f->max_classes)
    return (uint32_t)f->n_classes++;
  while (f->classes[f->next_idle].n || f->classes[f->next_idle].n_running)
    f->next_idle = (f->next_idle + 1) % f->max_classes;
  drop_from_table(f, (uint32_t)f->next_idle);
  return (uint32_t)f->next_idle;
}

static uint32_t find_or_make_class(struct fair_queue *f, const struct query_class *of)
{
  uint32_t index = find_class(f, of);

  if (index != NO_CLASS)
    return index;
  index = take_place(f);
  uint32_t *slot = &f->table[hash_of(of) & f->table_mask];
  f->classes[index] = (struct class){ .of = *of, .next_in_table = *slot };
  *slot = index;
  return index;
}

/* ---- Costs ---- */

/* The expected time of a query in a long queue, where batches are full. The average over all batches is too high if
 * most were small. The average over full batches may be old. The smaller of the two refuses fewer queries. */
static int64_t queued_cost(const struct class *c)
{
  return c->full_cost_ns && c->full_cost_ns < c->cost_ns ? c->full_cost_ns : c->cost_ns;
}

static double waiting_cost(const struct class *c)
{
  return (double)c->n * (double)queued_cost(c);
}

static size_t batch_limit(const struct fair_queue *f, const struct class *c)
{
  if (c->cost_ns == 0)
    return 1;
  int64_t n = f->with.batch_time_ns / c->cost_ns;
  return n < 1 ? 1 : (size_t)n < f->with.max_batch ? (size_t)n : f->with.max_batch;
}

static bool is_fresh(const struct class *c, int64_t now_ns)
{
  return c->cost_ns && now_ns - c->measured_ns < FRESH_NS;
}

static void charge(struct fair_queue *f, struct class *c, double cost_ns)
{
  c->virtual_ns += cost_ns; /* all classes of a space have the same weight */
  f->spaces[c->of.space].virtual_ns += cost_ns / f->spaces[c->of.space].weight;
}

static void average(int64_t *cost_ns, int64_t newest_ns)
{
  *cost_ns = *cost_ns ? *cost_ns + (newest_ns - *cost_ns) / AVERAGE_OF : newest_ns;
  if (*cost_ns < 1)
    *cost_ns = 1;
}

/* ---- Pushing and popping ---- */

static double later(double a, double b)
{
  return a > b ? a : b;
}

static void activate(struct fair_queue *f, uint32_t index)
{
  struct class *c = &f->classes[index];
  struct space *space = &f->spaces[c->of.space];

  if (space->active == NO_CLASS)
    space->virtual_ns = later(space->virtual_ns, f->newest_ns);
  c->virtual_ns = later(c->virtual_ns, space->newest_ns);
  c->next_active = space->active;
  space->active = index;
}

void fair_queue_push(struct fair_queue *f, struct pending_query *query)
{
  const struct query_class of = query_class_of(query);
  uint32_t index = find_or_make_class(f, &of);
  struct class *c = &f->classes[index];

  query->next = NULL;
  if (c->n == 0) {
    c->first = query;
    activate(f, index);
  } else {
    c->last->next = query;
  }
  c->last = query;
  c->n++;
  f->n++;
}

static struct space *next_space(struct fair_queue *f)
{
  struct space *best = NULL;

  for (size_t i = 0; i < f->with.n_spaces; i++) {
    struct space *space = &f->spaces[i];
    if (space->active != NO_CLASS && (!best || space->virtual_ns < best->virtual_ns))
      best = space;
  }
  return best;
}

/* Return the link to the next class, so that the caller can unlink it. Among equal classes choose the last of the list:
 * it has waited longest. */
static uint32_t *next_class(struct fair_queue *f, struct space *space)
{
  uint32_t *best = &space->active;

  for (uint32_t *link = best; *link != NO_CLASS; link = &f->classes[*link].next_active) {
    if (f->classes[*link].virtual_ns <= f->classes[*best].virtual_ns)
      best = link;
  }
  return best;
}

static size_t take_run(struct fair_queue *f, int64_t now_ns, const struct query_batch *batch)
{
  size_t i = 0;

  while (f->runs[i].is_used)
    i++;
  f->runs[i] = (struct running_batch){
    .is_used = true, .class = batch->class, .began_ns = now_ns, .estimate_ns = batch->estimate_ns
  };
  return i;
}

/* Take at most `limit` queries of the class of a link. */
static void take_batch(struct fair_queue *f, uint32_t *link, size_t limit, int64_t now_ns, struct query_batch *batch)
{
  struct class *c = &f->classes[*link];
  struct space *space = &f->spaces[c->of.space];

  f->newest_ns = later(f->newest_ns, space->virtual_ns);
  space->newest_ns = later(space->newest_ns, c->virtual_ns);
  batch->class = *link;
  batch->is_between = false;
  for (batch->n = 0; batch->n < limit && c->first; c->first = c->first->next)
    batch->queries[batch->n++] = c->first;
  c->n -= batch->n;
  f->n -= batch->n;
  if (c->n == 0)
    *link = c->next_active;
  c->n_running++;
  batch->estimate_ns = (int64_t)batch->n * c->cost_ns;
  batch->is_fresh = is_fresh(c, now_ns);
  batch->run = take_run(f, now_ns, batch);
  charge(f, c, (double)batch->estimate_ns);
}

bool fair_queue_pop(struct fair_queue *f, int64_t now_ns, struct query_batch *batch)
{
  struct space *space = next_space(f);

  if (!space)
    return false;
  uint32_t *link = next_class(f, space);
  take_batch(f, link, batch_limit(f, &f->classes[*link]), now_ns, batch);
  return true;
}

/* ---- Between the steps of a running batch ---- */

/* How long a batch has been searched, without interruptions. */
static int64_t searched_ns(const struct running_batch *run, int64_t now_ns)
{
  return now_ns - run->began_ns - run->between_ns;
}

/* How long a running batch takes, as far as it is known. */
static int64_t running_time(const struct running_batch *run, int64_t now_ns)
{
  int64_t so_far_ns = searched_ns(run, now_ns);

  return run->estimate_ns > so_far_ns ? run->estimate_ns : so_far_ns;
}

static bool has_paused_enough(const struct running_batch *run, int64_t now_ns)
{
  return run->between_ns >= searched_ns(run, now_ns) + PAUSED_NS_MAX;
}

void fair_queue_note_pause(struct fair_queue *f, const struct query_batch *running)
{
  f->classes[running->class].pauses = true;
}

/* How many queries of a class may interrupt a batch that takes this long? */
static size_t between_limit(const struct fair_queue *f, const struct class *c, int64_t running_ns)
{
  if (c->cost_ns == 0)
    return 0;
  int64_t n = running_ns / SHORT_SHARE / c->cost_ns;
  size_t limit = batch_limit(f, c);
  return n < (int64_t)limit ? (size_t)n : limit;
}

/* Return the link to the class with the smallest virtual time below max_ns that may interrupt a batch of class `own`.
 * NULL: none. */
static uint32_t *next_between(struct fair_queue *f, struct space *space, uint32_t own, double max_ns,
                              int64_t running_ns)
{
  uint32_t *best = NULL;

  for (uint32_t *link = &space->active; *link != NO_CLASS; link = &f->classes[*link].next_active) {
    const struct class *c = &f->classes[*link];
    if (*link != own && c->virtual_ns < max_ns && between_limit(f, c, running_ns) > 0) {
      max_ns = c->virtual_ns;
      best = link;
    }
  }
  return best;
}

bool fair_queue_pop_between(struct fair_queue *f, const struct query_batch *running, int64_t now_ns,
                            struct query_batch *batch)
{
  const struct class *own = &f->classes[running->class];
  const struct space *own_space = &f->spaces[own->of.space];
  const struct running_batch *run = &f->runs[running->run];
  int64_t running_ns = running_time(run, now_ns);
  double late_ns = (double)(running_ns - running->estimate_ns); /* not charged yet */
  double max_ns = own_space->virtual_ns + late_ns / own_space->weight;
  uint32_t *best = next_between(f, &f->spaces[own->of.space], running->class, own->virtual_ns + late_ns, running_ns);

  if (has_paused_enough(run, now_ns))
    return false;
  for (size_t i = 0; i < f->with.n_spaces; i++) {
    struct space *space = &f->spaces[i];
    if (i == own->of.space || !(space->virtual_ns < max_ns))
      continue;
    uint32_t *link = next_between(f, space, running->class, INFINITY, running_ns);
    if (!link)
      continue;
    best = link;
    max_ns = space->virtual_ns;
  }
  if (!best)
    return false;
  take_batch(f, best, between_limit(f, &f->classes[*best], running_ns), now_ns, batch);
  batch->is_between = true;
  batch->outer_run = running->run;
  f->runs[batch->run].is_between = true;
  return true;
}

void fair_queue_done(struct fair_queue *f, const struct query_batch *batch, size_t n, int64_t cost_ns, int64_t now_ns)
{
  struct class *c = &f->classes[batch->class];

  f->runs[batch->run].is_used = false;
  if (batch->is_between)
    f->runs[batch->outer_run].between_ns += cost_ns;
  c->n_running--;
  charge(f, c, (double)(cost_ns - batch->estimate_ns));
  if (n == 0)
    return;
  if (2 * n >= batch_limit(f, c))
    average(&c->full_cost_ns, cost_ns / (int64_t)n);
  average(&c->cost_ns, cost_ns / (int64_t)n);
  c->measured_ns = now_ns;
}

struct pending_query *fair_queue_take_all(struct fair_queue *f)
{
  struct pending_query *all = NULL;

  for (size_t i = 0; i < f->with.n_spaces; i++) {
    for (uint32_t *link = &f->spaces[i].active; *link != NO_CLASS; *link = f->classes[*link].next_active) {
      struct class *c = &f->classes[*link];
      c->last->next = all;
      all = c->first;
      c->first = NULL;
      c->n = 0;
    }
  }
  f->n = 0;
  return all;
}

/* ---- Estimates ---- */

static double smaller(double a, double b)
{
  return a < b ? a : b;
}

/* May a query of cost own_ns interrupt this batch? */
static bool is_interruptible(const struct fair_queue *f, const struct running_batch *run, double own_ns, int64_t now_ns)
{
  return own_ns > 0 && f->classes[run->class].pauses && !run->is_between && !has_paused_enough(run, now_ns) &&
         SHORT_SHARE * own_ns <= (double)running_time(run, now_ns);
}

/* The remaining time of the batches that run, without those that a query of cost own_ns may interrupt. */
static double running_cost(const struct fair_queue *f, double own_ns, int64_t now_ns)
{
  double cost_ns = 0;

  for (size_t i = 0; i < f->n_runs; i++) {
    const struct running_batch *run = &f->runs[i];
    int64_t left = run->began_ns + run->between_ns + run->estimate_ns - now_ns;
    if (run->is_used && left > 0 && !is_interruptible(f, run, own_ns, now_ns))
      cost_ns += (double)left;
  }
  return cost_ns;
}

/* The time of the queries that wait in a space. Class `own` counts nothing, each other one limit_ns at most. */
static double space_cost(const struct fair_queue *f, size_t space, uint32_t own, double limit_ns)
{
  double cost_ns = 0;

  for (uint32_t i = f->spaces[space].active; i != NO_CLASS; i = f->classes[i].next_active) {
    if (i != own)
      cost_ns += smaller(waiting_cost(&f->classes[i]), limit_ns);
  }
  return cost_ns;
}

/* A query waits for the queries before it in its class. In that time each other class of its space gets at most the
 * same time, and each other space gets its share by weight. None gets more than its waiting queries need. */
int64_t fair_queue_estimate_ns(const struct fair_queue *f, const struct query_class *of, int64_t now_ns)
{
  uint32_t index = find_class(f, of);
  const struct class *c = index == NO_CLASS ? NULL : &f->classes[index];
  double cost_ns = 0, own_ns = 0, batch_ns = 0;

  if (c && (c->n || c->n_running || is_fresh(c, now_ns))) {
    size_t limit = batch_limit(f, c);
    cost_ns = c->n ? (double)queued_cost(c) : (double)c->cost_ns;
    own_ns = waiting_cost(c) + cost_ns;
    batch_ns = smaller(own_ns, (double)limit * cost_ns);
  }
  double total_ns = own_ns + space_cost(f, of->space, index, own_ns);
  double share_ns = total_ns / f->spaces[of->space].weight;
  for (size_t i = 0; i < f->with.n_spaces; i++) {
    if (i != of->space)
      total_ns += smaller(space_cost(f, i, NO_CLASS, INFINITY), share_ns * f->spaces[i].weight);
  }
  return (int64_t)((running_cost(f, cost_ns, now_ns) + total_ns - batch_ns) / (double)f->with.n_workers + batch_ns);
}
