/* SPDX-License-Identifier: Apache-2.0 */
/* A shard's part of an answer, as it is in the partials topic: shards write parts, the role merge joins them. */
#ifndef BASE_PARTIAL_H
#define BASE_PARTIAL_H

#include "base/query.h"

/* Most shards of a layout. */
enum { PARTIAL_SHARDS_MAX = 1024 };

/* Values of sluice.v1.Partial.Kind. */
enum partial_kind {
  PARTIAL_PART = 0,
  PARTIAL_ANSWERED = 1, /* the query of this key is answered */
  PARTIAL_HEARTBEAT = 2,
};

/* A record of the topic. PARTIAL_ANSWERED has only the kind, PARTIAL_HEARTBEAT also shard and n_shards. */
struct partial {
  enum partial_kind kind;
  uint32_t shard, n_shards;
  struct span model; /* answer.model; empty with an error */
  bool has_key;
  struct span key; /* of the query's record */
  bool is_json;    /* the query is */
  struct span reply_topic;
  uint32_t k;
  uint32_t candidates; /* of mmr, of which the part has vectors; 0: the query has no mmr */
  double diversity;    /* of mmr */
  uint32_t max_per;    /* max_per.n of the query */
  uint32_t boosts;     /* how many the query has */
  uint32_t attributes; /* how many the query names */
  bool has_deadline;
  uint64_t left_us; /* until the deadline, when the part was sent */
  bool allow_partial;
  const struct span *trace; /* [n_trace] values of headers, in the order of ingest/kafka/trace_headers.h */
  size_t n_trace;
  int64_t asked_unix_ms; /* timestamp of the query's record; -1: it has none, or is of the background */
  struct span answer;    /* a protobuf Answer */
};

#endif
