/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue topic, as the broker describes it, compared with what the store has recorded of it. */
#include "daemon/catalogue/catalogue_topic.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/config/config_shard.h"

/* A gap between reads counts only above GAP_MIN_S, because one batch may take that long. */
enum { BROKER_TIMEOUT_MS = 5000, GAP_MIN_S = 5 };

err_t catalogue_topic_init(const struct kafka_layers *layers, const struct config *config, struct store *store,
                           struct catalogue_topic *out)
{
  *out = (struct catalogue_topic){
    .layers = *layers,
    .name = config->catalogue.topic,
    .config = config,
    .store = store,
  };
  return topic_reader_open(layers, out->name, &out->reader);
}

void catalogue_topic_leave(struct catalogue_topic *t)
{
  t->must_reopen = true;
}

bool catalogue_topic_is_outdated(const struct catalogue_topic *t)
{
  return t->must_reopen || topic_reader_is_outdated(t->reader);
}

err_t catalogue_topic_open_next(const struct catalogue_topic *t, struct topic_reader **out)
{
  return topic_reader_open_again(&t->layers, t->name, out);
}

void catalogue_topic_take_over(struct catalogue_topic *t, struct topic_reader **next)
{
  if (topic_reader_is_outdated(t->reader))
    log_info("kafka_client_renewed", "client=catalogue");
  topic_reader_abandon(&t->reader);
  t->reader = *next;
  *next = NULL;
  t->must_reopen = false;
  t->committed_digest = 0;
  topic_positions_clear(&t->positions);
}

err_t catalogue_topic_renew(struct catalogue_topic *t)
{
  struct topic_reader *next;

  if (!catalogue_topic_is_outdated(t))
    return ERR_OK;
  TRY(catalogue_topic_open_next(t, &next));
  catalogue_topic_take_over(t, &next);
  return ERR_OK;
}

void catalogue_topic_fini(struct catalogue_topic *t)
{
  topic_reader_close(&t->reader);
  topic_positions_fini(&t->positions);
}

static err_t add_partition(struct catalogue_topic *t, int32_t p)
{
  int64_t first, end, from;

  TRY(topic_reader_bounds(t->reader, p, BROKER_TIMEOUT_MS, &first, &end));
  TRY(topic_positions_add(&t->positions, store_find_position(t->store, p), first, end, &from));
  log_info("partition", "partition=%" PRId32 " from=%" PRId64 " end=%" PRId64, p, from, end);
  return ERR_OK;
}

/* Add positions for partitions that have none yet, up to n. */
static err_t add_partitions(struct catalogue_topic *t, int n)
{
  for (int32_t p = (int32_t)t->positions.n; p < n; p++)
    TRY(config_shard_has(t->config, p) ? add_partition(t, p) : topic_positions_add_foreign(&t->positions));
  return ERR_OK;
}

/* A shard beyond the partitions would have no items, and its layout would be a mistake. */
static err_t verify_shards(const struct catalogue_topic *t, int n_partitions)
{
  uint64_t n_shards = t->config->catalogue.shard.of;

  if ((uint64_t)n_partitions >= n_shards)
    return ERR_OK;
  err_code_t err = err_set(ERR_CONFIG, __FILE__, __LINE__,
                           "topic %s has %d partitions, fewer than the %" PRIu64
                           " shards: use at most %d shards, or write the catalogue to a new topic with more partitions",
                           t->name, n_partitions, n_shards, n_partitions);
  return config_blame(t->config, "catalogue.shard.of", err);
}

/* Verify that topic and cluster are those that filled the store, and that the topic still has every partition that the
 * store has a position for. New partitions are allowed. */
static err_t verify_source(struct catalogue_topic *t, const struct store_source *now, int n_partitions)
{
  struct store_source was;
  size_t n;
  const struct store_position *positions = store_positions(t->store, &n);

  if (!store_source_get(t->store, &was))
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
static err_t return_to_live(struct catalogue_topic *t, const struct store_source *now)
{
  struct store_source live, rebuilt;
  bool is_live = store_live_source_get(t->store, &live) && is_source(&live, now);
  bool is_another = store_source_get(t->store, &rebuilt) && !is_source(&rebuilt, now);

  if (!store_is_rebuilding(t->store) || !is_live || !is_another)
    return ERR_OK;
  log_info("rebuild_given_up", "number=%" PRIu64 " note=\"the topic is again that of the served catalogue\"",
           store_rebuild_number(t->store));
  return store_abandon_rebuild(t->store);
}

static bool has_long_gap(const struct catalogue_topic *t)
{
  int64_t gap_ns = clock_boot_ns() - t->last_read_ns;

  return t->has_resumed && t->tombstone_retention_ns > 0 && gap_ns > t->tombstone_retention_ns &&
         gap_ns > GAP_MIN_S * CLOCK_NS_PER_S;
}

/* Return for how long some of the partition's records may not have been read. If the daemon lagged behind when it was
 * stopped, the time began before the stop. Later, it counts only if the process was suspended, or without broker
 * or disk. */
static int64_t absence_ms(const struct catalogue_topic *t, const struct store_position *position)
{
  if (t->has_resumed && !has_long_gap(t))
    return 0;
  return clock_unix_ms() - position->complete_unix_ms;
}

/* Verify that no tombstones can have been missed. Compaction removes a tombstone once it is older than
 * delete.retention.ms. */
static err_t verify_absence(struct catalogue_topic *t, const struct topic_policy *policy)
{
  if (!policy->is_known || !policy->is_compacted)
    return ERR_OK;
  for (size_t i = 0; i < t->positions.n; i++) {
    const struct topic_position *p = &t->positions.items[i];
    int64_t away_ms = absence_ms(t, &p->position);
    if (away_ms > policy->delete_retention_ms && p->position.at.next < p->end_at_start)
      FAIL(ERR_DISCONTINUITY,
           "records of the last %" PRId64 " s were not all read, but the topic keeps tombstones for only %" PRId64
           " s (delete.retention.ms): deletes may be missing",
           away_ms / 1000, policy->delete_retention_ms / 1000);
  }
  return ERR_OK;
}

err_t catalogue_topic_note_reading(struct catalogue_topic *t)
{
  if (has_long_gap(t))
    FAIL(ERR_KAFKA_RETRY, "topic %s was not read for %" PRId64 " s: deletes may be missing", t->name,
         (clock_boot_ns() - t->last_read_ns) / CLOCK_NS_PER_S);
  t->last_read_ns = clock_boot_ns();
  return ERR_OK;
}

static int64_t retention_ns(const struct topic_policy *policy)
{
  return policy->delete_retention_ms < INT64_MAX / CLOCK_NS_PER_MS ? policy->delete_retention_ms * CLOCK_NS_PER_MS
                                                                   : INT64_MAX;
}

static err_t resume_from(struct catalogue_topic *t, const struct store_source *source)
{
  struct topic_policy policy;
  int n;

  TRY(topic_reader_n_partitions(t->reader, BROKER_TIMEOUT_MS, &n));
  TRY(verify_shards(t, n));
  TRY(return_to_live(t, source));
  TRY(verify_source(t, source, n));
  policy = topic_reader_policy(t->reader, BROKER_TIMEOUT_MS);
  t->positions.has_holes = !policy.is_known || policy.is_compacted;
  TRY(add_partitions(t, n));
  TRY(verify_absence(t, &policy));
  TRY(store_source_put(t->store, source));
  t->has_resumed = true;
  t->last_read_ns = clock_boot_ns();
  t->tombstone_retention_ns = policy.is_known && policy.is_compacted ? retention_ns(&policy) : 0;
  return ERR_OK;
}

err_t catalogue_topic_resume(struct catalogue_topic *t)
{
  AUTO(mem_free) char *cluster_id = NULL;

  topic_reader_unassign(t->reader);
  topic_positions_clear(&t->positions);
  TRY(topic_reader_cluster_id(t->reader, BROKER_TIMEOUT_MS, &cluster_id));
  return resume_from(t, &(struct store_source){ .topic = t->name, .cluster_id = cluster_id });
}

err_t catalogue_topic_add_new_partitions(struct catalogue_topic *t)
{
  int n;

  TRY(topic_reader_n_partitions(t->reader, BROKER_TIMEOUT_MS, &n));
  if ((size_t)n < t->positions.n)
    FAIL(ERR_DISCONTINUITY, "the topic had %zu partitions, now it has %d: this is another topic", t->positions.n, n);
  TRY(add_partitions(t, n));
  return catalogue_topic_start_reading(t);
}

static err_t read_partition(struct catalogue_topic *t, struct topic_position *p)
{
  p->is_assigned = true;
  return topic_reader_assign(t->reader, p->position.at.partition,
                             p->must_verify ? p->position.last_offset : p->position.at.next);
}

err_t catalogue_topic_start_reading(struct catalogue_topic *t)
{
  for (size_t i = 0; i < t->positions.n; i++) {
    struct topic_position *p = &t->positions.items[i];
    if (!p->is_assigned && !p->is_paused && !p->is_foreign)
      TRY(read_partition(t, p));
  }
  return ERR_OK;
}

err_t catalogue_topic_retry(struct catalogue_topic *t, int32_t partition)
{
  struct topic_position *p = &t->positions.items[partition];

  p->is_paused = false;
  topic_reader_leave(t->reader, partition);
  return read_partition(t, p);
}

err_t catalogue_topic_verify_position(struct catalogue_topic *t, int32_t partition)
{
  int64_t first, end;

  TRY(topic_reader_bounds(t->reader, partition, BROKER_TIMEOUT_MS, &first, &end));
  int64_t next = t->positions.items[partition].position.at.next;
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
