/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of counters, kept in a ring. */
#include "daemon/http/history.h"

#include "base/clock.h"

enum { US_PER_MS = 1000 };

void history_init(struct history *h)
{
  pthread_mutex_init(&h->mutex, NULL);
}

bool history_is_due(const struct history *h)
{
  return clock_now_ns() >= h->at_ns + HISTORY_STEP_S * CLOCK_NS_PER_S;
}

static double quantile_ms(const struct hist_window *w, const struct hist *h, double q)
{
  return (double)hist_window_quantile(w, h, q) / US_PER_MS;
}

static uint64_t n_updates_of(const struct counters *c)
{
  return counters_get(&c->applied) + counters_get(&c->deleted);
}

static struct moment moment_of(const struct history *h, const struct counters *c, double seconds)
{
  return (struct moment){
    .queries_per_s = (double)(counters_get(&c->queries) - h->n_queries) / seconds,
    .updates_per_s = (double)(n_updates_of(c) - h->n_updates) / seconds,
    .errors_per_s = (double)(counters_sum(c->errors, COUNTERS_ERRORS) - h->n_errors) / seconds,
    .letters_per_s = (double)(counters_sum(c->dead_letters, COUNTERS_LETTERS) - h->n_letters) / seconds,
    .answer_p50_ms = quantile_ms(&h->answer_us, &c->answer_us, 0.5),
    .answer_p99_ms = quantile_ms(&h->answer_us, &c->answer_us, 0.99),
    .visible_p50_ms = quantile_ms(&h->visible_us, &c->visible_us, 0.5),
    .visible_p99_ms = quantile_ms(&h->visible_us, &c->visible_us, 0.99),
  };
}

static void push(struct history *h, const struct moment *moment)
{
  pthread_mutex_lock(&h->mutex);
  h->moments[h->n++ % HISTORY_MAX] = *moment;
  pthread_mutex_unlock(&h->mutex);
}

void history_add(struct history *h, const struct counters *counters, uint64_t lag_records)
{
  int64_t now_ns = clock_now_ns();

  if (h->at_ns) { /* the first call only notes where counting begins */
    struct moment moment = moment_of(h, counters, (double)(now_ns - h->at_ns) / (double)CLOCK_NS_PER_S);
    moment.lag_records = (double)lag_records;
    push(h, &moment);
  }
  h->at_ns = now_ns;
  h->n_queries = counters_get(&counters->queries);
  h->n_updates = n_updates_of(counters);
  h->n_errors = counters_sum(counters->errors, COUNTERS_ERRORS);
  h->n_letters = counters_sum(counters->dead_letters, COUNTERS_LETTERS);
  hist_window_turn(&h->answer_us, &counters->answer_us);
  hist_window_turn(&h->visible_us, &counters->visible_us);
}

size_t history_get(struct history *h, struct moment *out)
{
  pthread_mutex_lock(&h->mutex);
  size_t n = h->n < HISTORY_MAX ? h->n : HISTORY_MAX;
  for (size_t i = 0; i < n; i++)
    out[i] = h->moments[(h->n - n + i) % HISTORY_MAX];
  pthread_mutex_unlock(&h->mutex);
  return n;
}
