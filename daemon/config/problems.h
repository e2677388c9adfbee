/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with an input, gathered so that a person sees all of it at once. Thread: one. */
#ifndef DAEMON_CONFIG_PROBLEMS_H
#define DAEMON_CONFIG_PROBLEMS_H

#include "base/err.h"

enum { PROBLEMS_MAX = 20 };

/* All zeros: none. */
struct problems {
  char *items[PROBLEMS_MAX]; /* sentences, in the order in which they were found */
  size_t n;
  size_t n_more; /* found after these, and not kept */
};

void problems_fini(struct problems *p);

/* Keep the calling thread's newest failure, if it is not there yet. Returns ERR_MEMORY. */
err_t problems_add(struct problems *p);

/* Returns ERR_OK where there are none, else ERR_CONFIG with all of them, one a line: those that do not fit into a
 * message are counted at its end. */
err_t problems_verify(const struct problems *p);

/* Print each to standard error, in a line of its own, after the program's name. */
void problems_print(const struct problems *p, const char *program);

#endif
