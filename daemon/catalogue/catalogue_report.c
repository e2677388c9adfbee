/* SPDX-License-Identifier: Apache-2.0 */
/* The report of the catalogue thread: a mutex, and the rows that it guards. */
#include "daemon/catalogue/catalogue_report.h"

#include <stdio.h>

#include "base/mem.h"

void catalogue_report_init(struct catalogue_report *r)
{
  *r = (struct catalogue_report){ 0 };
  pthread_mutex_init(&r->mutex, NULL);
}

void catalogue_report_fini(struct catalogue_report *r)
{
  pthread_mutex_destroy(&r->mutex);
  mem_free(&r->partitions);
}

void catalogue_report_lock(struct catalogue_report *r)
{
  pthread_mutex_lock(&r->mutex);
}

void catalogue_report_unlock(struct catalogue_report *r)
{
  pthread_mutex_unlock(&r->mutex);
}

err_t catalogue_report_resize(struct catalogue_report *r, size_t n)
{
  TRY(mem_grow(n, sizeof *r->partitions, &r->capacity, &r->partitions));
  for (; r->n < n; r->n++)
    r->partitions[r->n] = (struct report_partition){ 0 };
  r->n = n;
  return ERR_OK;
}

bool catalogue_report_is_near(struct catalogue_report *r, uint64_t max)
{
  uint64_t lag = 0;

  catalogue_report_lock(r);
  bool is_known = r->n > 0 && !r->is_away;
  for (size_t i = 0; i < r->n && is_known; i++) {
    const struct report_partition *p = &r->partitions[i];
    is_known = p->is_foreign || p->end >= 0;
    lag += !p->is_foreign && p->end > p->read ? (uint64_t)(p->end - p->read) : 0;
  }
  catalogue_report_unlock(r);
  return is_known && lag <= max;
}

void catalogue_report_problem(struct catalogue_report *r, const char *text)
{
  catalogue_report_lock(r);
  snprintf(r->problem, sizeof r->problem, "%s", text);
  catalogue_report_unlock(r);
}
