/* SPDX-License-Identifier: Apache-2.0 */
/* One query on its way through the daemon, and a batch of them. */
#ifndef DAEMON_QUERIES_PENDING_QUERY_H
#define DAEMON_QUERIES_PENDING_QUERY_H

#include "base/query.h"
#include "base/region.h"
#include "ingest/wire.h"

/* Most bytes of a record's key, which the reply has too. */
enum { QUERY_KEY_MAX = 4096 };

struct pending_query {
  struct pending_query *next; /* in the list that has it */
  struct region region;       /* everything below points into it */
  size_t bytes;               /* of the region, as far as query_queue_weigh() has counted them */
  struct query query;
  bool has_key;
  bool is_key_too_long; /* then the query is refused, without its key */
  struct span key;      /* of the record: the reply has the same */
  enum wire_format format;
  uint32_t ticket;
  int32_t partition; /* of the record */
  int64_t offset;
  int64_t received_ns;
  int64_t deadline_ns; /* by clock_now_ns(); PENDING_NO_DEADLINE: none */
  int64_t give_up_ns;  /* when at_least is no longer waited for */
  bool is_seen;        /* at_least was reached */
  size_t space;
  struct method method;
};

#define PENDING_NO_DEADLINE INT64_MAX

/* A batch of one space and method, in the hands of a search worker. */
struct query_batch {
  struct pending_query **queries; /* [batch] */
  size_t n;
  uint32_t class;
  size_t run;          /* its place among the running ones */
  int64_t estimate_ns; /* that it was expected to take; 0: nothing is known */
  bool is_fresh;       /* the estimate comes from a recent search */
};

#endif
