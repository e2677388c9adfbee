/* SPDX-License-Identifier: Apache-2.0 */
/* A query on its way through the daemon, and a batch of queries that are searched together. */
#ifndef DAEMON_QUERIES_PENDING_QUERY_H
#define DAEMON_QUERIES_PENDING_QUERY_H

#include "base/query.h"
#include "base/region.h"
#include "ingest/kafka/trace_headers.h"
#include "ingest/wire/wire.h"

/* Longest record key, in bytes. The reply carries the same key. */
enum { QUERY_KEY_MAX = 4096 };

struct trial;
struct query_trace;

struct pending_query {
  struct pending_query *next; /* in the list that holds the query */
  struct region region;       /* holds everything that the spans below point to */
  size_t bytes;               /* size of the region when query_queue_weigh() last counted it */
  struct query query;
  bool is_in_background; /* counted by query_queue_take_background() */
  bool has_key;
  bool is_key_too_long;       /* the query is refused, and the reply has no key */
  struct span key;            /* of the record */
  struct trace_headers trace; /* likewise */
  enum wire_format format;
  uint32_t ticket;
  int32_t partition; /* of the record */
  int64_t offset;
  int64_t timestamp_ms; /* likewise; -1: it has none */
  int64_t received_ns;
  int64_t asked_ns;           /* when it was written, by clock_now_ns(); 0: unknown */
  int64_t deadline_ns;        /* by clock_now_ns(); PENDING_NO_DEADLINE if the query has none */
  int64_t give_up_ns;         /* when its wait ends */
  bool is_seen;               /* what it waits for was reached */
  struct query_trace *traced; /* notes for its spans, until it has its reply; NULL: it is not traced */
  struct trial *trial;        /* what waits for the answer; NULL: the query is from Kafka */
  size_t space;               /* index in the configuration: its weight */
  size_t number;              /* of the generation to search (engine.h) */
  struct method method;
};

#define PENDING_NO_DEADLINE INT64_MAX

/* A batch of queries of one space and method, taken by a search worker. */
struct query_batch {
  struct pending_query **queries; /* [max_batch] */
  size_t n;
  uint32_t class;
  size_t run;      /* index of the batch among those that run */
  bool is_between; /* it interrupts the batch of index `outer_run` */
  size_t outer_run;
  int64_t estimate_ns; /* how long the search should take; 0: unknown */
  bool is_fresh;       /* the estimate comes from a recent search */
};

#endif
