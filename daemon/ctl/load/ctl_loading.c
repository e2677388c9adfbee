/* SPDX-License-Identifier: Apache-2.0 */
/* Send rows at a rate, and note those that Kafka has. */
#include "daemon/ctl/load/ctl_loading.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"

enum { IDENTITY_BYTES = 4000 };

void ctl_loading_fini(struct ctl_loading *l)
{
  ctl_progress_hide(&l->progress);
  ctl_writer_close(&l->writer); /* may still report rows that Kafka has */
  ctl_resume_close(&l->resume);
  region_fini(&l->region);
}

err_t ctl_loading_open_resume(struct ctl_loading *l, const char *more, uint64_t n_rows, const char *row)
{
  const struct ctl_load_options *o = l->options;
  char identity[IDENTITY_BYTES], path[PATH_MAX];
  struct stat status;

  if (!o->resume)
    return ERR_OK;
  if (!realpath(o->path, path) || stat(path, &status) != 0)
    FAIL(ERR_SYSTEM, "%s cannot be opened: %s", o->path, strerror(errno));
  int n = snprintf(identity, sizeof identity,
                   "sluicectl load 1\nfile %s\n" CTL_RESUME_STATE "%lld bytes\n" CTL_RESUME_STATE
                   "changed at %lld.%09ld s\ntopic %s\n%s",
                   path, (long long)status.st_size, (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                   l->writer->ctx->config->catalogue.topic, more);
  if (n < 0 || (size_t)n >= sizeof identity)
    FAIL(ERR_SYSTEM, "--resume: the names of the files are too long to note");
  TRY(ctl_resume_open(o->resume, identity, n_rows, row, &l->resume));
  l->writer->resume = l->resume;
  return ERR_OK;
}

bool ctl_loading_has(struct ctl_loading *l, uint64_t row)
{
  bool has = l->resume && ctl_resume_has(l->resume, row);

  l->n_known += has;
  return has;
}

err_t ctl_loading_send(struct ctl_loading *l, uint64_t row, const struct ctl_record *record)
{
  int64_t due_ns;

  if (l->n_sent == 0)
    l->pace = (struct ctl_pace){ clock_now_ns(), (double)l->options->rate };
  due_ns = ctl_pace_due_ns(&l->pace, l->n_sent);
  while (clock_now_ns() < due_ns)
    ctl_writer_idle(l->writer, due_ns);
  TRY(ctl_writer_send(l->writer, row, record));
  l->n_sent++;
  return ERR_OK;
}
