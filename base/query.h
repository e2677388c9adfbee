/* SPDX-License-Identifier: Apache-2.0 */
/* Queries and answers: ingest decodes and encodes them, the engine searches. */
#ifndef BASE_QUERY_H
#define BASE_QUERY_H

#include "base/item.h"

/* A search method: a name and up to two numbers, such as "average(4000)". */
enum { METHOD_NAME_MAX = 24, METHOD_ARGS_MAX = 2 };

struct method {
  char name[METHOD_NAME_MAX];
  uint32_t args[METHOD_ARGS_MAX];
  unsigned n_args;
};

/* Limits of a query. */
enum {
  QUERY_ID_MAX = 1024,        /* bytes */
  QUERY_METHOD_MAX = 128,     /* bytes */
  QUERY_EXCLUDE_MAX = 100000, /* keys */
  QUERY_AT_LEAST_MAX = 4096,  /* positions */
};

/* Kafka's limit on the length of a topic name, in bytes. */
enum { TOPIC_NAME_MAX = 249 };

/* A query. It borrows its bytes from its message. */
struct query {
  struct span id;
  struct span space;
  struct span method; /* as the client wrote it */
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
  struct span reply_topic; /* at most TOPIC_NAME_MAX bytes; empty: the configured topic */
};

struct hit {
  struct span key;
  float score;
};

/* The guarantees of an answer. */
struct receipt {
  bool is_exact;
  bool has_bound; /* false: the hits are all admitted items */
  float bound;    /* no item outside the hits scores above this */
};

/* The work of a search. */
struct counts {
  uint64_t items;      /* items of the space in the epoch */
  uint64_t scored;     /* items scored in full */
  uint64_t candidates; /* items that the first stage passed on */
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
  const char *error_message; /* set if error is not ANSWER_OK */
};

#endif
