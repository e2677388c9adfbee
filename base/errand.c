/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a thread for one call, and keeping its failure, whose message belongs to that thread. */
#include "base/errand.h"

#include "base/clock.h"

enum { DROP_STEP_MS = 5 };

static _Atomic size_t n_left;

static void drop(struct errand *e)
{
  e->drop(e->context);
  atomic_fetch_sub(&n_left, 1);
}

static void *run(void *context)
{
  struct errand *e = context;

  pthread_setname_np(pthread_self(), e->name);
  progress_listener_set(e->listener);
  err_keep(e->body(e->context), &e->failure);
  if (atomic_exchange(&e->is_met, true))
    drop(e);
  return NULL;
}

bool errand_begin(const char *name, errand_body body, void *context, struct errand *out)
{
  out->name = name;
  out->body = body;
  out->context = context;
  out->listener = progress_listener_get();
  atomic_init(&out->is_met, false);
  return pthread_create(&out->thread, NULL, run, out) == 0;
}

bool errand_is_over(const struct errand *errand)
{
  return atomic_load(&errand->is_met);
}

void errand_join(struct errand *errand)
{
  pthread_join(errand->thread, NULL);
}

void errand_leave(struct errand *errand, void (*drop_context)(void *context))
{
  errand->drop = drop_context;
  atomic_fetch_add(&n_left, 1);
  pthread_detach(errand->thread);
  if (atomic_exchange(&errand->is_met, true))
    drop(errand);
}

void errand_drop(struct errand *errand, int64_t limit_ms, void (*drop_context)(void *context))
{
  int64_t until_ns = clock_now_ns() + limit_ms * CLOCK_NS_PER_MS;

  while (!errand_is_over(errand) && clock_now_ns() < until_ns)
    clock_sleep_ns(DROP_STEP_MS * CLOCK_NS_PER_MS);
  errand_leave(errand, drop_context);
}

size_t errand_n_left(void)
{
  return atomic_load(&n_left);
}
