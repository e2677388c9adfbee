/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a thread for one call, and keeping its failure, whose message belongs to that thread. */
#include "base/errand.h"

static void *run(void *context)
{
  struct errand *e = context;

  progress_listener_set(e->listener);
  err_keep(e->body(e->context), &e->failure);
  return NULL;
}

bool errand_begin(errand_body body, void *context, struct errand *out)
{
  out->body = body;
  out->context = context;
  out->listener = progress_listener_get();
  return pthread_create(&out->thread, NULL, run, out) == 0;
}

void errand_join(struct errand *errand)
{
  pthread_join(errand->thread, NULL);
}
