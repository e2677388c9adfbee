/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a file, pipe or terminal, without waiting for them. Thread: one. */
#ifndef DAEMON_CTL_CTL_TOPK_LINES_H
#define DAEMON_CTL_CTL_TOPK_LINES_H

#include "base/err.h"
#include "base/span.h"

struct ctl_topk_lines {
  const char *path;
  int fd;
  char *bytes; /* [n] those that were read */
  size_t n;
  size_t capacity;
  size_t begin;   /* of the next line */
  bool has_ended; /* there is nothing more to read */
};

/* Open a file.
 *
 * path  "-": standard input. It must outlive the lines
 *
 * Returns ERR_SYSTEM with the path. */
err_t ctl_topk_lines_open(const char *path, struct ctl_topk_lines *out);
void ctl_topk_lines_fini(struct ctl_topk_lines *l);

/* Get the next line. The last one may have no end.
 *
 * out  valid until the next call. p is NULL: there is none yet, or there is no more, and has_ended says which
 *
 * Returns ERR_SYSTEM if the file cannot be read; ERR_MEMORY. Blocks: no, but for a disk. */
err_t ctl_topk_lines_next(struct ctl_topk_lines *l, struct span *out);

#endif
