/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads claim batches in order, search them, store the answers and measure the time. */
#include "daemon/ctl/eval/ctl_eval_run.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"

/* Time at least this many batches, repeating them if necessary, unless that would take longer than TIMED_NS. */
enum { TIMED_BATCHES = 20, TIMED_NS = 1000000000 };

/* State shared by the threads of a run. */
struct run {
  const struct ctl_eval_search *search;
  const char *text;
  const struct method *method;
  struct ctl_eval_answers *answers;
  size_t n_batches;
  int64_t started_ns;
  atomic_size_t n_claimed;
  atomic_size_t n_done; /* queries searched */
  atomic_bool has_failed;
};

struct worker {
  struct run *run;
  const struct ctl_eval_watch *watch; /* NULL in all but the calling thread */
  struct searcher *searcher;
  float *numbers;
  struct query *queries;
  const struct query **pointers;
  struct answer *answers;
  pthread_t thread;
  bool is_started;
  bool is_warm;
  err_code_t result;
  char reason[256];
};

static void store_answer(struct ctl_eval_answers *a, size_t i, const struct answer *answer)
{
  assert(answer->n_hits <= a->width);
  for (size_t j = 0; j < a->width; j++) {
    bool is_hit = j < answer->n_hits;
    a->ids[i * a->width + j] = is_hit ? ctl_eval_id_of(answer->hits[j].key) : -1;
    a->scores[i * a->width + j] = is_hit ? answer->hits[j].score : -INFINITY;
  }
  a->n_hits[i] = answer->n_hits;
  a->exact[i] = answer->receipt.is_exact;
  a->bound[i] = answer->receipt.has_bound ? answer->receipt.bound : -INFINITY;
  a->scored[i] = answer->counts.scored;
  a->candidates[i] = answer->counts.candidates;
  if (i == 0) {
    a->has_admitted = answer->counts.has_admitted;
    a->admitted = answer->counts.admitted;
  }
}

/* Must batch i be searched? Every batch is searched once for its answers. Repeats only measure time. */
static bool is_wanted(const struct run *run, size_t i)
{
  return i < run->n_batches || (i < TIMED_BATCHES && clock_now_ns() - run->started_ns < TIMED_NS);
}

static err_t search_batch(struct worker *w, size_t i)
{
  struct run *run = w->run;
  const struct ctl_eval_search *search = run->search;
  size_t first = i % run->n_batches * search->batch;
  size_t left = search->queries->n - first;
  size_t n = left < search->batch ? left : search->batch;

  ctl_eval_queries_get(search->queries, first, n, (uint32_t)search->width, run->text, w->numbers, w->queries);
  int64_t begin_ns = clock_now_ns();
  TRY(searcher_search(w->searcher, 0, run->method, w->pointers, n, w->answers));
  run->answers->timings[i] = (struct ctl_eval_timing){ clock_now_ns() - begin_ns, n == search->batch, w->is_warm };
  w->is_warm = true;
  if (i >= run->n_batches)
    return ERR_OK;
  for (size_t q = 0; q < n; q++)
    store_answer(run->answers, first + q, &w->answers[q]);
  atomic_fetch_add(&run->n_done, n);
  return ERR_OK;
}

static void *work(void *context)
{
  struct worker *w = context;
  size_t i;

  while (!atomic_load(&w->run->has_failed) && is_wanted(w->run, i = atomic_fetch_add(&w->run->n_claimed, 1))) {
    w->result = search_batch(w, i);
    if (w->result != ERR_OK) {
      snprintf(w->reason, sizeof w->reason, "%s", err_message());
      atomic_store(&w->run->has_failed, true);
      break;
    }
    if (w->watch)
      w->watch->tick(w->watch->context, atomic_load(&w->run->n_done));
  }
  return NULL;
}

static err_t init_worker(struct run *run, struct worker *w)
{
  const struct ctl_eval_search *search = run->search;

  w->run = run;
  TRY(searcher_open(search->engine, &w->searcher));
  TRY(mem_array(search->batch * search->queries->width, sizeof *w->numbers, &w->numbers));
  TRY(mem_array(search->batch, sizeof *w->queries, &w->queries));
  TRY(mem_array(search->batch, sizeof *w->pointers, &w->pointers));
  TRY(mem_array(search->batch, sizeof *w->answers, &w->answers));
  for (size_t i = 0; i < search->batch; i++)
    w->pointers[i] = &w->queries[i];
  return ERR_OK;
}

static void fini_worker(struct worker *w)
{
  searcher_close(&w->searcher);
  mem_free(&w->numbers);
  mem_free(&w->queries);
  mem_free(&w->pointers);
  mem_free(&w->answers);
}

static err_t init_answers(const struct ctl_eval_search *search, size_t n_timings, struct ctl_eval_answers *a)
{
  size_t n = search->queries->n;

  *a = (struct ctl_eval_answers){ .n = n, .k = search->k, .width = search->width };
  TRY(mem_array(n * a->width, sizeof *a->ids, &a->ids));
  TRY(mem_array(n * a->width, sizeof *a->scores, &a->scores));
  TRY(mem_array(n, sizeof *a->exact, &a->exact));
  TRY(mem_array(n, sizeof *a->bound, &a->bound));
  TRY(mem_array(n, sizeof *a->n_hits, &a->n_hits));
  TRY(mem_array(n, sizeof *a->scored, &a->scored));
  TRY(mem_array(n, sizeof *a->candidates, &a->candidates));
  return mem_array(n_timings, sizeof *a->timings, &a->timings);
}

void ctl_eval_answers_fini(struct ctl_eval_answers *a)
{
  mem_free(&a->ids);
  mem_free(&a->scores);
  mem_free(&a->exact);
  mem_free(&a->bound);
  mem_free(&a->n_hits);
  mem_free(&a->scored);
  mem_free(&a->candidates);
  mem_free(&a->timings);
}

static err_t start(struct worker *workers, size_t n)
{
  for (size_t i = 1; i < n; i++) {
    int error = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    if (error)
      FAIL(ERR_SYSTEM, "thread %zu cannot be started: %s", i + 1, strerror(error));
    workers[i].is_started = true;
  }
  return ERR_OK;
}

/* The calling thread is the first worker. */
static err_t run_workers(struct run *run, struct worker *workers, size_t n)
{
  err_code_t result = start(workers, n);

  if (result == ERR_OK)
    work(&workers[0]);
  else
    atomic_store(&run->has_failed, true);
  for (size_t i = 1; i < n; i++) {
    if (workers[i].is_started)
      pthread_join(workers[i].thread, NULL);
  }
  for (size_t i = 0; result == ERR_OK && i < n; i++) {
    if (workers[i].result != ERR_OK)
      FAIL(workers[i].result, "%s", workers[i].reason);
  }
  return result;
}

static err_t init_workers(struct run *run, struct worker *workers, size_t n)
{
  for (size_t i = 0; i < n; i++)
    TRY(init_worker(run, &workers[i]));
  return ERR_OK;
}

err_t ctl_eval_run(const struct ctl_eval_search *search, const char *text, const struct method *method,
                   const struct ctl_eval_watch *watch, struct ctl_eval_answers *out)
{
  AUTO(ctl_eval_answers_fini) struct ctl_eval_answers answers = { 0 };
  AUTO(mem_free) struct worker *workers = NULL;
  struct run run = { .search = search, .text = text, .method = method, .answers = &answers };

  run.n_batches = (search->queries->n + search->batch - 1) / search->batch;
  size_t n_timings = run.n_batches < TIMED_BATCHES ? TIMED_BATCHES : run.n_batches;
  TRY(init_answers(search, n_timings, &answers));
  TRY(mem_array(search->n_threads, sizeof *workers, &workers));
  err_code_t result = init_workers(&run, workers, search->n_threads);
  workers[0].watch = watch;
  run.started_ns = clock_now_ns();
  if (result == ERR_OK)
    result = run_workers(&run, workers, search->n_threads);
  for (size_t i = 0; i < search->n_threads; i++)
    fini_worker(&workers[i]);
  TRY(result);
  answers.n_timings = n_timings;
  *out = answers;
  answers = (struct ctl_eval_answers){ 0 };
  return ERR_OK;
}
