/* SPDX-License-Identifier: Apache-2.0 */
/* The queries of one command, each with its answer or the reason why there is none. Thread: one. */
#ifndef DAEMON_CTL_CTL_QUERIES_H
#define DAEMON_CTL_CTL_QUERIES_H

#include <jansson.h>
#include <stdio.h>

#include "base/query.h"
#include "daemon/ctl/text/ctl_boosts.h"

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

/* Give all queries a space, a k, or a vector. Returns ERR_USAGE if a text is not UTF-8, or no vector, or if a query has
 * one of its own; ERR_MEMORY.
 *
 * numbers  with commas between them
 */
err_t ctl_queries_space(struct ctl_queries *q, const char *name);
err_t ctl_queries_k(struct ctl_queries *q, uint64_t k);
err_t ctl_queries_vector(struct ctl_queries *q, const char *numbers);

/* Give all queries a filter.
 *
 * filter      text
 * parameters  JSON: a list; NULL: none
 *
 * Returns ERR_USAGE if the parameters are not a list, or if a query has a filter of its own; ERR_MEMORY.
 */
err_t ctl_queries_set_filter(struct ctl_queries *q, const char *filter, const char *parameters);

/* Let all queries leave out what a user has seen. Returns ERR_USAGE if the user is not UTF-8, or if a query names a
 * user of its own; ERR_MEMORY. */
err_t ctl_queries_exclude_seen_by(struct ctl_queries *q, const char *user);

/* Let all queries ask for items like one. Errors as above. */
err_t ctl_queries_like(struct ctl_queries *q, const char *key);

/* Limit the hits of all queries that have the same value of an attribute. Errors as above. */
err_t ctl_queries_max_per(struct ctl_queries *q, const struct max_per *max_per);

/* Choose the hits of all queries by maximal marginal relevance.
 *
 * text  DIVERSITY[:CANDIDATES]
 *
 * Errors as above. */
err_t ctl_queries_mmr(struct ctl_queries *q, const char *text);

/* Let the hits of all queries show attributes.
 *
 * names  with commas between them
 *
 * Errors as above. */
err_t ctl_queries_show(struct ctl_queries *q, const char *names);

/* Give all queries boosts, if there are some, and the time that ages in boosts are counted to, if it is given. Errors
 * as above. */
err_t ctl_queries_set_boosts(struct ctl_queries *q, const struct ctl_boosts *boosts);

/* Let all queries explain items. Returns ERR_USAGE if a query has a list of its own; ERR_MEMORY.
 *
 * keys  [n]
 */
err_t ctl_queries_explain(struct ctl_queries *q, char **keys, int n);

/* Store an answer if it belongs to an open query; ignore it otherwise. Returns ERR_MEMORY. */
err_t ctl_queries_take(struct ctl_queries *q, struct span answer);

/* Note that query i will get no answer, and why. Returns ERR_MEMORY. */
err_t ctl_queries_fail(struct ctl_queries *q, size_t i, const char *reason);

#endif
