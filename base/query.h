/* SPDX-License-Identifier: Apache-2.0 */
/* Queries and answers: what ingest decodes and encodes and the engine searches for. */
#ifndef BASE_QUERY_H
#define BASE_QUERY_H

#include "base/item.h"

/* How to search: a name and up to two numbers, "average(4000)". */
enum { METHOD_NAME_MAX = 24, METHOD_ARGS_MAX = 2 };

struct method {
  char name[METHOD_NAME_MAX];
  uint32_t args[METHOD_ARGS_MAX];
  unsigned n_args;
};

/* Most bytes of an id and of a method, most keys to exclude, most positions to wait for. */
enum { QUERY_ID_MAX = 1024, QUERY_METHOD_MAX = 128, QUERY_EXCLUDE_MAX = 100000, QUERY_AT_LEAST_MAX = 4096 };

/* Borrowed from the message that it came in. */
struct query {
  struct span id;
  struct span space;
  struct span method; /* as written */
  uint32_t k;
  struct floats vector;
  struct floats components;
  struct floats query_gate;
  bool has_user_id;
  int64_t user_id;
  struct span *exclude; /* keys */
  size_t n_exclude;
  struct position *at_least;
  size_t n_at_least;
  bool has_deadline;
  int64_t deadline_unix_ms;
  struct span reply_topic; /* empty: the configured one */
};

struct hit {
  struct span key;
  float score;
};

/* What an answer guarantees. */
struct receipt {
  bool is_exact;
  bool has_bound; /* false: no admitted item was left out */
  float bound;    /* no item that was not returned scores above this */
};

struct counts {
  uint64_t items;
  uint64_t scored;
  uint64_t candidates;
};

/* Values of sluice.v1.Error.Code. */
enum answer_error {
  ANSWER_OK = 0,
  ANSWER_BAD_QUERY = 1,
  ANSWER_UNKNOWN_SPACE = 2,
  ANSWER_UNKNOWN_METHOD = 3,
  ANSWER_DEADLINE_PASSED = 4,
  ANSWER_NOT_SEEN = 5,
  ANSWER_UNAVAILABLE = 6,
  ANSWER_INTERNAL = 7,
};

struct answer {
  struct span id;
  struct span space;
  struct method method; /* the one that ran */
  struct hit *hits;     /* best first */
  size_t n_hits;
  struct receipt receipt;
  uint64_t epoch;
  const struct position *watermark;
  size_t n_watermark;
  struct counts counts;
  uint32_t queued_us;
  uint32_t searched_us;
  enum answer_error error;
  const char *error_message; /* where error is not ANSWER_OK */
};

#endif
