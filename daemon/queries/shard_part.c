/* SPDX-License-Identifier: Apache-2.0 */
/* Making parts: the query's side of it, then the answer. */
#include "daemon/queries/shard_part.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "ingest/wire/wire_partial.h"

/* A topic, three numbers, and what is between them. */
enum { KEY_BYTES = TOPIC_NAME_MAX + 80 };

/* Name the query's record. With its timestamp: offsets begin again when a topic is deleted and created again. */
static err_t make_key(const struct config *config, const struct pending_query *query, struct region *r,
                      struct span *out)
{
  char text[KEY_BYTES];
  int n = snprintf(text, sizeof text, "%s/%" PRId32 "/%" PRId64 "/%" PRId64, config->query.topic, query->partition,
                   query->offset, query->timestamp_ms);

  return region_copy(r, span_of(text, (size_t)n), out);
}

static uint64_t left_us(const struct pending_query *query)
{
  int64_t left_ns = query->deadline_ns - clock_now_ns();

  return left_ns > 0 ? (uint64_t)(left_ns / CLOCK_NS_PER_US) : 0;
}

err_t shard_part_make(const struct config *config, const struct pending_query *query, const struct answer *answer,
                      struct region *r, struct shard_part *out)
{
  bool has_mmr = query->query.mmr.diversity > 0;
  struct span encoded;
  struct partial partial = {
    .shard = (uint32_t)config->catalogue.shard,
    .n_shards = (uint32_t)config->catalogue.n_shards,
    .has_key = query->has_key,
    .key = query->key,
    .is_json = query->format == WIRE_JSON,
    .reply_topic = query->query.reply_topic,
    .k = query->query.k,
    .candidates = has_mmr ? query_mmr_candidates(&query->query, config->query.max_k) : 0,
    .diversity = query->query.mmr.diversity,
    .max_per = query->query.max_per.n,
    .boosts = (uint32_t)query->query.n_boosts,
    .attributes = (uint32_t)query->query.n_attributes,
    .has_deadline = query->deadline_ns != PENDING_NO_DEADLINE,
    .left_us = left_us(query),
    .allow_partial = query->query.allow_partial,
    .trace = query->trace.value,
    .n_trace = TRACE_HEADERS,
    .asked_unix_ms = query->query.is_background ? -1 : query->timestamp_ms, /* the answer's delivery is not measured */
  };

  if (!answer->error)
    partial.model = span_of_str(answer->model);
  TRY(make_key(config, query, r, &out->key));
  TRY(wire_encode_partial(&partial, r, &out->head));
  TRY(wire_encode_answer(answer, WIRE_PROTOBUF, r, &encoded));
  return wire_complete_partial(out->head, encoded, r, &out->value);
}
