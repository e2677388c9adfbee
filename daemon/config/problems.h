/* SPDX-License-Identifier: Apache-2.0 */
/* A list of mistakes in an input: all are collected first, so that a person sees them at once. Thread: one. */
#ifndef DAEMON_CONFIG_PROBLEMS_H
#define DAEMON_CONFIG_PROBLEMS_H

#include "base/err.h"

enum { PROBLEMS_MAX = 20 };

/* All zeros: an empty list. */
struct problems {
  char *items[PROBLEMS_MAX]; /* messages, in the order found */
  size_t n;
  size_t n_more; /* further ones, counted only */
};

void problems_fini(struct problems *p);

/* Add the calling thread's newest error message, unless the list has it. Returns ERR_MEMORY. */
err_t problems_add(struct problems *p);

/* Add the newest error message if err is ERR_CONFIG: then the caller can go on. Returns any other error as it is. */
err_t problems_note(struct problems *p, err_code_t err);

/* Turn the list into one error: ERR_CONFIG with a line for each problem. Those that do not fit into a message are
 * counted in its last line. Returns ERR_OK if the list is empty. */
err_t problems_verify(const struct problems *p);

/* Print each problem to standard error, on its own line after the program's name. */
void problems_print(const struct problems *p, const char *program);

#endif
