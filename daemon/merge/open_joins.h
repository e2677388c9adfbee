/* SPDX-License-Identifier: Apache-2.0 */
/* The queries that wait for parts. A part is kept as it was read, and decoded when its query is answered: so its
 * memory is known.
 *
 * Thread: the one that owns it.
 */
#ifndef DAEMON_MERGE_OPEN_JOINS_H
#define DAEMON_MERGE_OPEN_JOINS_H

#include <sys/queue.h>

#include "base/partial.h"
#include "daemon/merge/query_digest.h"
#include "ingest/readers/partial_reader.h"

struct open_part {
  struct open_part *next;
  uint32_t shard, n_shards;
  size_t n;
  uint8_t value[]; /* [n] the record's value */
};

/* A query with the parts that have come. */
struct open_join {
  TAILQ_ENTRY(open_join) in_order; /* of the first parts, by partition */
  TAILQ_ENTRY(open_join) in_ready;
  struct open_join *next_in_bucket;
  struct query_digest digest;
  struct span key; /* of the records; lives as long as the join */
  int32_t partition;
  int64_t first_offset;    /* of its first part */
  int64_t since_ns;        /* when that came */
  int64_t give_up_ns;      /* the end of the wait, until a shard has said how much time is left */
  bool has_time;           /* one has */
  int64_t end_then;        /* of the partition, when the wait was over: it is read to there first; 0: it is not over */
  struct open_part *parts; /* in no order */
  size_t n_parts;
  size_t n_bytes;
  bool is_ready; /* complete, or nobody waits any longer */
};

struct open_joins;

/* max_bytes  of parts, beyond which there is no room
 * wait_ns    how long a query waits for its parts */
err_t open_joins_open(size_t max_bytes, int64_t wait_ns, struct open_joins **out);
void open_joins_close(struct open_joins **j);

enum open_joins_added { OPEN_JOINS_ADDED, OPEN_JOINS_DUPLICATE };

/* A part, as it was read. Borrowed during the call. */
struct open_joins_part {
  struct span key;
  struct span value;
  int32_t partition;
  int64_t offset;
  const struct partial *partial; /* of the value */
};

/* Add a part. Its query is ready once every shard of its layout has answered. A shard's second part is a duplicate, and
 * dropped. Returns ERR_MEMORY. */
err_t open_joins_add(struct open_joins *j, const struct open_joins_part *part, int64_t now_ns,
                     enum open_joins_added *out);

/* Make the queries ready whose time is up. One that has waited for wait_ns, and not up to a deadline, is kept until its
 * partition is read to the end that it had then: a transaction that somebody left open may keep its parts from us.
 * While there is no room nothing is read, and none is kept.
 *
 * reach  [n] how far the partitions are read */
void open_joins_note_time(struct open_joins *j, int64_t now_ns, const struct partial_reach *reach, size_t n);

/* Return when to call open_joins_note_time() next; INT64_MAX: never. */
int64_t open_joins_due_ns(const struct open_joins *j);

/* Take the query that has been ready for longest; NULL: none is. The caller frees it with open_join_close(). */
struct open_join *open_joins_take_ready(struct open_joins *j);
void open_join_close(struct open_join **join);

/* Drop the query of a digest, if there is one: somebody has answered it. */
void open_joins_drop(struct open_joins *j, struct query_digest digest);

/* Drop all queries: their partitions may be another daemon's now. */
void open_joins_clear(struct open_joins *j);

/* Return the offset of the first part of the oldest open query of a partition; INT64_MAX: there is none. Offsets from
 * there on must be read again after a restart. */
int64_t open_joins_oldest(const struct open_joins *j, int32_t partition);

bool open_joins_have_room(const struct open_joins *j);
size_t open_joins_count(const struct open_joins *j);
size_t open_joins_bytes(const struct open_joins *j);

#endif
