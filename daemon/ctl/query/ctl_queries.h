/* SPDX-License-Identifier: Apache-2.0 */
/* The queries of one command, each with its answer or the reason why there is none. Thread: one. */
#ifndef DAEMON_CTL_CTL_QUERIES_H
#define DAEMON_CTL_CTL_QUERIES_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"
#include "base/span.h"

struct ctl_query {
  char *id;
  char *text;    /* JSON, with the id */
  char *answer;  /* JSON; NULL: no answer yet */
  char *failure; /* why there will be no answer; NULL: there may still be one */
  size_t n_answer;
};

struct ctl_queries {
  struct ctl_query *items;
  size_t n;
  size_t capacity;
  size_t n_open;   /* number of queries neither answered nor failed */
  json_t *numbers; /* in `items`, by id */
  uint64_t series; /* part of the ids that are made here; differs from run to run */
};

/* Returns ERR_MEMORY. The caller calls ctl_queries_fini() then too. */
err_t ctl_queries_init(struct ctl_queries *q);
void ctl_queries_fini(struct ctl_queries *q);

/* Add a query.
 *
 * text          JSON; a query without an id gets one
 * answer_topic  topic that answers are read from
 *
 * Returns ERR_QUERY if it is not a JSON object, its id is not a string or is taken, or its reply_topic is another
 * topic.
 */
err_t ctl_queries_add(struct ctl_queries *q, struct span text, const char *answer_topic);

/* Give all queries fields (ctl_fields.h). Returns ERR_USAGE if a query has one of its own; ERR_MEMORY. */
err_t ctl_queries_give(struct ctl_queries *q, json_t *fields);

/* Store an answer if it belongs to an open query; ignore it otherwise. Returns ERR_MEMORY. */
err_t ctl_queries_take(struct ctl_queries *q, struct span answer);

/* Note that query i will get no answer, and why. Returns ERR_MEMORY. */
err_t ctl_queries_fail(struct ctl_queries *q, size_t i, const char *reason);

#endif
