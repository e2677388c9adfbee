/* SPDX-License-Identifier: Apache-2.0 */
/* Start-time fair queueing over two levels: a hash table of classes, and for each flow a list of its busy classes. */
#include "daemon/queries/fair_queue.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

/* A batch may interrupt one that takes at least so many times as long. */
enum { SHORT_SHARE = 4 };

/* All background queries together get so much less than the others of the lightest space, and their batches are so much
 * shorter. */
enum { BACKGROUND_SHARE = 20, BACKGROUND_BATCH_SHARE = 4 };

/* A search pauses for so much longer than it has searched, at most: its epoch is held meanwhile, and publication waits.
 */
#define PAUSED_NS_MAX CLOCK_NS_PER_S

/* The queries of a space, or its background queries. */
struct flow {
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
  struct flow *flows; /* [n_flows]: those of the spaces, then those of their background queries */
  size_t n_flows;
  double newest_ns; /* virtual time of the flow that was chosen last */
  struct class_queues classes;
  struct running_batch *runs; /* [n_runs] */
  size_t n_runs;
  size_t n;
};

/* A unit of weight of a space is worth so much for its background queries. */
static double background_unit(const struct fair_queue_config *config)
{
  double lightest = config->weights[0], sum = 0;

  for (size_t i = 0; i < config->n_spaces; i++) {
    lightest = config->weights[i] < lightest ? config->weights[i] : lightest;
    sum += config->weights[i];
  }
  return lightest / sum / BACKGROUND_SHARE;
}

err_t fair_queue_open(const struct fair_queue_config *config, struct fair_queue **out)
{
  AUTO(fair_queue_close) struct fair_queue *f = NULL;

  TRY(mem_array(1, sizeof *f, &f));
  f->with = *config;
  f->n_flows = 2 * config->n_spaces;
  TRY(mem_array(f->n_flows, sizeof *f->flows, &f->flows));
  for (size_t i = 0; i < config->n_spaces; i++) {
    double weight = config->weights[i];
    f->flows[i] = (struct flow){ .weight = weight, .active = CLASS_QUEUES_NONE };
    f->flows[config->n_spaces + i] =
        (struct flow){ .weight = weight * background_unit(config), .active = CLASS_QUEUES_NONE };
  }
  f->n_runs = 2 * config->n_workers; /* each may have one in between */
  TRY(class_queues_init(config->n_queries + f->n_runs, &f->classes));
  TRY(mem_array(f->n_runs, sizeof *f->runs, &f->runs));
  *out = f;
  f = NULL;
  return ERR_OK;
}

void fair_queue_close(struct fair_queue **f)
{
  if (!*f)
    return;
  class_queues_fini(&(*f)->classes);
  mem_free(&(*f)->flows);
  mem_free(&(*f)->runs);
  mem_free(f);
}

size_t fair_queue_n(const struct fair_queue *f)
{
  return f->n;
}

static size_t flow_index(const struct fair_queue *f, const struct query_class *of)
{
  return of->space + (of->is_background ? f->with.n_spaces : 0);
}

static struct flow *flow_of(const struct fair_queue *f, const struct class_queue *c)
{
  return &f->flows[flow_index(f, &c->of)];
}

/* ---- Costs ---- */

static size_t batch_limit(const struct fair_queue *f, const struct class_queue *c)
{
  int64_t time_ns = c->of.is_background ? f->with.batch_time_ns / BACKGROUND_BATCH_SHARE : f->with.batch_time_ns;

  if (c->cost_ns == 0)
    return 1;
  int64_t n = time_ns / c->cost_ns;
  return n < 1 ? 1 : (size_t)n < f->with.max_batch ? (size_t)n : f->with.max_batch;
}

static void charge(struct fair_queue *f, struct class_queue *c, double cost_ns)
{
  struct flow *flow = flow_of(f, c);

  c->virtual_ns += cost_ns; /* all classes of a flow have the same weight */
  flow->virtual_ns += cost_ns / flow->weight;
}

/* ---- Pushing and popping ---- */

static double later(double a, double b)
{
  return a > b ? a : b;
}

static void activate(struct fair_queue *f, uint32_t index)
{
  struct class_queue *c = &f->classes.at[index];
  struct flow *flow = flow_of(f, c);

  if (flow->active == CLASS_QUEUES_NONE)
    flow->virtual_ns = later(flow->virtual_ns, f->newest_ns);
  c->virtual_ns = later(c->virtual_ns, flow->newest_ns);
  c->next_active = flow->active;
  flow->active = index;
}

void fair_queue_push(struct fair_queue *f, struct pending_query *query)
{
  const struct query_class of = query_class_of(query);
  uint32_t index = class_queues_get(&f->classes, &of);
  struct class_queue *c = &f->classes.at[index];

  if (c->n == 0)
    activate(f, index);
  class_queue_push(c, query);
  f->n++;
}

static struct flow *next_flow(struct fair_queue *f)
{
  struct flow *best = NULL;

  for (size_t i = 0; i < f->n_flows; i++) {
    struct flow *flow = &f->flows[i];
    if (flow->active != CLASS_QUEUES_NONE && (!best || flow->virtual_ns < best->virtual_ns))
      best = flow;
  }
  return best;
}

/* Return the link to the next class, so that the caller can unlink it. Among equal classes choose the last of the list:
 * it has waited longest. */
static uint32_t *next_class(struct fair_queue *f, struct flow *flow)
{
  uint32_t *best = &flow->active;

  for (uint32_t *link = best; *link != CLASS_QUEUES_NONE; link = &f->classes.at[*link].next_active) {
    if (f->classes.at[*link].virtual_ns <= f->classes.at[*best].virtual_ns)
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
  struct class_queue *c = &f->classes.at[*link];
  struct flow *flow = flow_of(f, c);

  f->newest_ns = later(f->newest_ns, flow->virtual_ns);
  flow->newest_ns = later(flow->newest_ns, c->virtual_ns);
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
  batch->is_fresh = class_queue_is_fresh(c, now_ns);
  batch->run = take_run(f, now_ns, batch);
  charge(f, c, (double)batch->estimate_ns);
}

bool fair_queue_pop(struct fair_queue *f, int64_t now_ns, struct query_batch *batch)
{
  struct flow *flow = next_flow(f);

  if (!flow)
    return false;
  uint32_t *link = next_class(f, flow);
  take_batch(f, link, batch_limit(f, &f->classes.at[*link]), now_ns, batch);
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
  f->classes.at[running->class].pauses = true;
}

/* How many queries of a class may interrupt a batch that takes this long? */
static size_t between_limit(const struct fair_queue *f, const struct class_queue *c, int64_t running_ns)
{
  if (c->cost_ns == 0)
    return 0;
  int64_t n = running_ns / SHORT_SHARE / c->cost_ns;
  size_t limit = batch_limit(f, c);
  return n < (int64_t)limit ? (size_t)n : limit;
}

/* Return the link to the class with the smallest virtual time below max_ns that may interrupt a batch of class `own`.
 * NULL: none. */
static uint32_t *next_between(struct fair_queue *f, struct flow *flow, uint32_t own, double max_ns, int64_t running_ns)
{
  uint32_t *best = NULL;

  for (uint32_t *link = &flow->active; *link != CLASS_QUEUES_NONE; link = &f->classes.at[*link].next_active) {
    const struct class_queue *c = &f->classes.at[*link];
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
  const struct class_queue *own = &f->classes.at[running->class];
  struct flow *own_flow = flow_of(f, own);
  const struct running_batch *run = &f->runs[running->run];
  int64_t running_ns = running_time(run, now_ns);
  double late_ns = (double)(running_ns - running->estimate_ns); /* not charged yet */
  double max_ns = own_flow->virtual_ns + late_ns / own_flow->weight;
  uint32_t *best = next_between(f, own_flow, running->class, own->virtual_ns + late_ns, running_ns);

  if (has_paused_enough(run, now_ns))
    return false;
  for (size_t i = 0; i < f->n_flows; i++) {
    struct flow *flow = &f->flows[i];
    if (flow == own_flow || !(flow->virtual_ns < max_ns))
      continue;
    uint32_t *link = next_between(f, flow, running->class, INFINITY, running_ns);
    if (!link)
      continue;
    best = link;
    max_ns = flow->virtual_ns;
  }
  if (!best)
    return false;
  take_batch(f, best, between_limit(f, &f->classes.at[*best], running_ns), now_ns, batch);
  batch->is_between = true;
  batch->outer_run = running->run;
  f->runs[batch->run].is_between = true;
  return true;
}

void fair_queue_done(struct fair_queue *f, const struct query_batch *batch, size_t n, int64_t cost_ns, int64_t now_ns)
{
  struct class_queue *c = &f->classes.at[batch->class];

  f->runs[batch->run].is_used = false;
  if (batch->is_between)
    f->runs[batch->outer_run].between_ns += cost_ns;
  c->n_running--;
  charge(f, c, (double)(cost_ns - batch->estimate_ns));
  if (n > 0)
    class_queue_measure(c, n, 2 * n >= batch_limit(f, c), cost_ns, now_ns);
}

struct pending_query *fair_queue_take_all(struct fair_queue *f)
{
  struct pending_query *all = NULL;

  for (size_t i = 0; i < f->n_flows; i++) {
    for (uint32_t *link = &f->flows[i].active; *link != CLASS_QUEUES_NONE; *link = f->classes.at[*link].next_active) {
      struct class_queue *c = &f->classes.at[*link];
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
  return own_ns > 0 && f->classes.at[run->class].pauses && !run->is_between && !has_paused_enough(run, now_ns) &&
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

/* The time of the queries that wait in a flow. Class `own` counts nothing, each other one limit_ns at most. */
static double flow_cost(const struct fair_queue *f, size_t flow, uint32_t own, double limit_ns)
{
  double cost_ns = 0;

  for (uint32_t i = f->flows[flow].active; i != CLASS_QUEUES_NONE; i = f->classes.at[i].next_active) {
    if (i != own)
      cost_ns += smaller(class_queue_waiting_ns(&f->classes.at[i]), limit_ns);
  }
  return cost_ns;
}

/* A query waits for the queries before it in its class. In that time each other class of its flow gets at most the
 * same time, and each other flow gets its share by weight. None gets more than its waiting queries need. */
int64_t fair_queue_estimate_ns(const struct fair_queue *f, const struct query_class *of, int64_t now_ns)
{
  uint32_t index = class_queues_find(&f->classes, of);
  size_t own_flow = flow_index(f, of);
  const struct class_queue *c = index == CLASS_QUEUES_NONE ? NULL : &f->classes.at[index];
  double cost_ns = 0, own_ns = 0, batch_ns = 0;

  if (c && (c->n || c->n_running || class_queue_is_fresh(c, now_ns))) {
    size_t limit = batch_limit(f, c);
    cost_ns = c->n ? (double)class_queue_cost_ns(c) : (double)c->cost_ns;
    own_ns = class_queue_waiting_ns(c) + cost_ns;
    batch_ns = smaller(own_ns, (double)limit * cost_ns);
  }
  double total_ns = own_ns + flow_cost(f, own_flow, index, own_ns);
  double share_ns = total_ns / f->flows[own_flow].weight;
  for (size_t i = 0; i < f->n_flows; i++) {
    if (i != own_flow)
      total_ns += smaller(flow_cost(f, i, CLASS_QUEUES_NONE, INFINITY), share_ns * f->flows[i].weight);
  }
  return (int64_t)((running_cost(f, cost_ns, now_ns) + total_ns - batch_ns) / (double)f->with.n_workers + batch_ns);
}
