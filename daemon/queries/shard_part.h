/* SPDX-License-Identifier: Apache-2.0 */
/* A shard's part of an answer: what it sends to the partials topic in place of the answer (docs/sharding.md). */
#ifndef DAEMON_QUERIES_SHARD_PART_H
#define DAEMON_QUERIES_SHARD_PART_H

#include "daemon/config/config.h"
#include "daemon/queries/pending_query.h"

/* A part, in the region that made it. */
struct shard_part {
  struct span key;  /* of the record: the same in every shard */
  struct span head; /* the part without its answer, for an error in its place */
  struct span value;
};

/* Make the part of an answer or an error. */
err_t shard_part_make(const struct config *config, const struct pending_query *query, const struct answer *answer,
                      struct region *r, struct shard_part *out);

#endif
