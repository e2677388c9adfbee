/* SPDX-License-Identifier: Apache-2.0 */
/* Starting threads for one piece of work, and handing the failure of one of them to the caller. */
#include "base/parallel.h"

#include <pthread.h>
#include <stdio.h>

/* A thread's work, and how it ended: a failure's message belongs to its thread. */
struct worker {
  pthread_t thread;
  parallel_body body;
  void *context;
  err_code_t err;
  char message[1024];
  char origin[128];
};

static void *run(void *context)
{
  struct worker *w = context;

  w->err = w->body(w->context);
  if (w->err != ERR_OK) {
    snprintf(w->message, sizeof w->message, "%s", err_message());
    snprintf(w->origin, sizeof w->origin, "%s", err_origin());
  }
  return NULL;
}

err_t parallel_run(size_t n, parallel_body body, void *context)
{
  struct worker workers[PARALLEL_MAX - 1];
  const struct worker *failed = NULL;
  size_t n_started = 0;

  while (n_started + 1 < n && n_started + 1 < PARALLEL_MAX) {
    struct worker *w = &workers[n_started];
    w->body = body;
    w->context = context;
    if (pthread_create(&w->thread, NULL, run, w) != 0)
      break; /* the others do its work too */
    n_started++;
  }
  err_code_t err = body(context);
  for (size_t i = 0; i < n_started; i++) {
    pthread_join(workers[i].thread, NULL);
    if (workers[i].err != ERR_OK)
      failed = &workers[i];
  }
  if (err != ERR_OK || !failed)
    return err;
  return err_take_over(failed->err, failed->message, failed->origin);
}
