/* SPDX-License-Identifier: Apache-2.0 */
/* Queries to ask, and what was answered. Thread: one. */
#ifndef DAEMON_CTL_CTL_QUESTION_H
#define DAEMON_CTL_CTL_QUESTION_H

#include <stdio.h>

#include "base/err.h"
#include "base/span.h"

struct ctl_question {
  char *id;
  char *text;    /* JSON, with the id */
  char *answer;  /* JSON; NULL: none yet */
  char *failure; /* why there will be none; NULL */
  size_t n_answer;
};

struct ctl_questions {
  struct ctl_question *items;
  size_t n;
  size_t capacity;
  size_t n_open;   /* neither answered nor failed */
  uint64_t series; /* told apart from other runs: part of the ids that are given here */
};

void ctl_questions_init(struct ctl_questions *q);
void ctl_questions_fini(struct ctl_questions *q);

/* Add a query.
 *
 * text          JSON; a query without an id gets one
 * answer_topic  where answers are read
 *
 * Returns ERR_QUERY when it is not a JSON object, its id is not text or is taken, or its answer would go elsewhere.
 */
err_t ctl_questions_add(struct ctl_questions *q, struct span text, const char *answer_topic);

/* Take an answer if it is to one of the open questions; others are passed over. Returns ERR_MEMORY. */
err_t ctl_questions_take(struct ctl_questions *q, struct span answer);

/* There will be no answer. */
err_t ctl_questions_fail(struct ctl_questions *q, size_t i, const char *reason);

#endif
