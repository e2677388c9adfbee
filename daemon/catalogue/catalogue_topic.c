/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue topic, as the broker describes it, compared with what the store has recorded of it. */
#include "daemon/catalogue/catalogue_state.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/config/config_shard.h"

/* A gap between reads counts only above GAP_MIN_S, because one batch may take that long. */
enum { BROKER_TIMEOUT_MS = 5000, GAP_MIN_S = 5 };

static err_t add_partition(struct catalogue *c, int32_t p)
{
  int64_t from;

  TRY(followed_topic_add(&c->topic, store_find_position(c->with.store, p), BROKER_TIMEOUT_MS, &from));
  log_info("partition", "partition=%" PRId32 " from=%" PRId64 " end=%" PRId64, p, from,
           c->topic.positions.items[p].end_at_start);
  return ERR_OK;
}

/* Add positions for partitions that have none yet, up to n. */
static err_t add_partitions(struct catalogue *c, int n)
{
  for (int32_t p = (int32_t)c->topic.positions.n; p < n; p++)
    TRY(config_shard_has(c->with.config, p) ? add_partition(c, p) : topic_positions_add_foreign(&c->topic.positions));
  return ERR_OK;
}

/* A shard beyond the partitions would have no items, and its layout would be a mistake. */
static err_t verify_shards(const struct catalogue *c, int n_partitions)
{
  uint64_t n_shards = c->with.config->catalogue.n_shards;

  if ((uint64_t)n_partitions >= n_shards)
    return ERR_OK;
  err_code_t err = err_set(ERR_CONFIG, __FILE__, __LINE__,
                           "topic %s has %d partitions, fewer than the %" PRIu64
                           " shards: use at most %d shards, or write the catalogue to a new topic with more partitions",
                           c->topic.name, n_partitions, n_shards, n_partitions);
  return config_blame(c->with.config, "catalogue.shard.of", err);
}

/* Verify that topic and cluster are those that filled the store, and that the topic still has every partition that the
 * store has a position for. New partitions are allowed. */
static err_t verify_source(struct catalogue *c, const struct store_source *now, int n_partitions)
{
  struct store_source was;
  size_t n;
  const struct store_position *positions = store_positions(c->with.store, &n);

  if (!store_source_get(c->with.store, &was))
    return ERR_OK;
  if (strcmp(was.topic, now->topic) != 0)
    FAIL(ERR_DISCONTINUITY, "the store was filled from topic %s, not %s", was.topic, now->topic);
  if (*was.cluster_id && *now->cluster_id && strcmp(was.cluster_id, now->cluster_id) != 0)
    FAIL(ERR_DISCONTINUITY, "the store was filled from Kafka cluster %s, this is %s", was.cluster_id, now->cluster_id);
  if (n > 0 && positions[n - 1].at.partition >= n_partitions)
    FAIL(ERR_DISCONTINUITY, "the store was filled from partition %" PRId32 " too, but the topic has only %d partitions",
         positions[n - 1].at.partition, n_partitions);
  return ERR_OK;
}

static bool is_source(const struct store_source *a, const struct store_source *b)
{
  return strcmp(a->topic, b->topic) == 0 && strcmp(a->cluster_id, b->cluster_id) == 0;
}

/* Abandon a rebuild if the topic is the served catalogue's own: a wrong configuration began it, and was corrected. */
static err_t return_to_live(struct catalogue *c, const struct store_source *now)
{
  struct store_source live, rebuilt;
  bool is_live = store_live_source_get(c->with.store, &live) && is_source(&live, now);
  bool is_another = store_source_get(c->with.store, &rebuilt) && !is_source(&rebuilt, now);

  if (!store_is_rebuilding(c->with.store) || !is_live || !is_another)
    return ERR_OK;
  log_info("rebuild_given_up", "number=%" PRIu64 " note=\"the topic is again that of the served catalogue\"",
           store_rebuild_number(c->with.store));
  return store_abandon_rebuild(c->with.store);
}

static bool has_long_gap(const struct catalogue *c)
{
  int64_t gap_ns = clock_boot_ns() - c->reading.last_read_ns;

  return c->reading.has_resumed && c->reading.tombstone_retention_ns > 0 &&
         gap_ns > c->reading.tombstone_retention_ns && gap_ns > GAP_MIN_S * CLOCK_NS_PER_S;
}

/* Return for how long some of the partition's records may not have been read. If the daemon lagged behind when it was
 * stopped, the time began before the stop. Later, it counts only if the process was suspended, or without broker
 * or disk. */
static int64_t absence_ms(const struct catalogue *c, const struct store_position *position)
{
  if (c->reading.has_resumed && !has_long_gap(c))
    return 0;
  return clock_unix_ms() - position->complete_unix_ms;
}

/* Verify that no tombstones can have been missed. Compaction removes a tombstone once it is older than
 * delete.retention.ms. */
static err_t verify_absence(struct catalogue *c, const struct topic_policy *policy)
{
  if (!policy->is_known || !policy->is_compacted)
    return ERR_OK;
  for (size_t i = 0; i < c->topic.positions.n; i++) {
    const struct topic_position *p = &c->topic.positions.items[i];
    int64_t away_ms = absence_ms(c, &p->position);
    if (away_ms > policy->delete_retention_ms && p->position.at.next < p->end_at_start)
      FAIL(ERR_DISCONTINUITY,
           "records of the last %" PRId64 " s were not all read, but the topic keeps tombstones for only %" PRId64
           " s (delete.retention.ms): deletes may be missing",
           away_ms / 1000, policy->delete_retention_ms / 1000);
  }
  return ERR_OK;
}

err_t catalogue_topic_note_reading(struct catalogue *c)
{
  if (has_long_gap(c))
    FAIL(ERR_KAFKA_RETRY, "topic %s was not read for %" PRId64 " s: deletes may be missing", c->topic.name,
         (clock_boot_ns() - c->reading.last_read_ns) / CLOCK_NS_PER_S);
  c->reading.last_read_ns = clock_boot_ns();
  return ERR_OK;
}

static int64_t retention_ns(const struct topic_policy *policy)
{
  return policy->delete_retention_ms < INT64_MAX / CLOCK_NS_PER_MS ? policy->delete_retention_ms * CLOCK_NS_PER_MS
                                                                   : INT64_MAX;
}

static err_t resume_from(struct catalogue *c, const struct store_source *source)
{
  struct topic_policy policy;
  int n;

  TRY(topic_reader_n_partitions(c->topic.reader, BROKER_TIMEOUT_MS, &n));
  TRY(verify_shards(c, n));
  TRY(return_to_live(c, source));
  TRY(verify_source(c, source, n));
  policy = topic_reader_policy(c->topic.reader, BROKER_TIMEOUT_MS);
  followed_topic_note_policy(&c->topic, &policy);
  TRY(add_partitions(c, n));
  TRY(verify_absence(c, &policy));
  TRY(store_source_put(c->with.store, source));
  c->reading.has_resumed = true;
  c->reading.last_read_ns = clock_boot_ns();
  c->reading.tombstone_retention_ns = policy.is_known && policy.is_compacted ? retention_ns(&policy) : 0;
  return ERR_OK;
}

err_t catalogue_topic_resume(struct catalogue *c)
{
  AUTO(mem_free) char *cluster_id = NULL;

  followed_topic_clear(&c->topic);
  TRY(topic_reader_cluster_id(c->topic.reader, BROKER_TIMEOUT_MS, &cluster_id));
  return resume_from(c, &(struct store_source){ .topic = c->topic.name, .cluster_id = cluster_id });
}

err_t catalogue_topic_add_new_partitions(struct catalogue *c)
{
  int n;

  TRY(topic_reader_n_partitions(c->topic.reader, BROKER_TIMEOUT_MS, &n));
  if ((size_t)n < c->topic.positions.n)
    FAIL(ERR_DISCONTINUITY, "the topic had %zu partitions, now it has %d: this is another topic", c->topic.positions.n,
         n);
  TRY(add_partitions(c, n));
  return catalogue_topic_start_reading(c);
}

static err_t read_partition(struct catalogue *c, struct topic_position *p)
{
  p->is_assigned = true;
  return topic_reader_assign(c->topic.reader, p->position.at.partition,
                             p->must_verify ? p->position.last_offset : p->position.at.next);
}

err_t catalogue_topic_start_reading(struct catalogue *c)
{
  for (size_t i = 0; i < c->topic.positions.n; i++) {
    struct topic_position *p = &c->topic.positions.items[i];
    if (!p->is_assigned && !p->is_paused && !p->is_foreign)
      TRY(read_partition(c, p));
  }
  return ERR_OK;
}

err_t catalogue_topic_retry(struct catalogue *c, int32_t partition)
{
  struct topic_position *p = &c->topic.positions.items[partition];

  p->is_paused = false;
  topic_reader_leave(c->topic.reader, partition);
  return read_partition(c, p);
}

err_t catalogue_topic_verify_position(struct catalogue *c, int32_t partition)
{
  int64_t first, end;

  TRY(topic_reader_bounds(c->topic.reader, partition, BROKER_TIMEOUT_MS, &first, &end));
  int64_t next = c->topic.positions.items[partition].position.at.next;
  if (next < first)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": %" PRId64 " records are gone: the partition begins at offset %" PRId64
         ", but the next offset to read is %" PRId64,
         partition, first - next, first, next);
  if (next > end)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the next offset to read is %" PRId64 ", but the partition ends at %" PRId64, partition,
         next, end);
  return ERR_OK;
}
