/* SPDX-License-Identifier: Apache-2.0 */
/* What the broker says of the topic, beside what the store remembers. */
#include "daemon/catalogue/catalogue_log.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

/* STILL_MIN_S: a batch may take that long. */
enum { BROKER_TIMEOUT_MS = 5000, STILL_MIN_S = 5 };

err_t catalogue_log_init(const struct kafka_layers *layers, const char *topic, struct store *store,
                         struct catalogue_log *out)
{
  *out = (struct catalogue_log){ .layers = *layers, .topic = topic, .store = store };
  return catalogue_reader_open(layers, topic, &out->reader);
}

err_t catalogue_log_reopen(struct catalogue_log *l)
{
  catalogue_reader_abandon(&l->reader);
  log_positions_clear(&l->at);
  return catalogue_reader_open(&l->layers, l->topic, &l->reader);
}

void catalogue_log_fini(struct catalogue_log *l)
{
  catalogue_reader_close(&l->reader);
  log_positions_fini(&l->at);
}

static const struct store_position *stored_position(const struct catalogue_log *l, int32_t partition)
{
  size_t n;
  const struct store_position *positions = store_positions(l->store, &n);

  for (size_t i = 0; i < n; i++) {
    if (positions[i].at.partition == partition)
      return &positions[i];
  }
  return NULL;
}

/* Learn where partitions that are not known yet stand, up to n. */
static err_t add_partitions(struct catalogue_log *l, int n)
{
  for (int32_t p = (int32_t)l->at.n; p < n; p++) {
    int64_t first, end, from;
    TRY(catalogue_reader_bounds(l->reader, p, BROKER_TIMEOUT_MS, &first, &end));
    TRY(log_positions_add(&l->at, stored_position(l, p), first, end, &from));
    log_info("partition", "partition=%" PRId32 " from=%" PRId64 " end=%" PRId64, p, from, end);
  }
  return ERR_OK;
}

/* Verify that cluster, topic and number of partitions are those that the store came from. */
static err_t verify_source(struct catalogue_log *l, const struct store_source *now, int n_partitions)
{
  struct store_source was;
  size_t n;
  const struct store_position *positions = store_positions(l->store, &n);

  if (!store_source_get(l->store, &was))
    return ERR_OK;
  if (strcmp(was.topic, now->topic) != 0)
    FAIL(ERR_DISCONTINUITY, "the store came from topic %s, not %s", was.topic, now->topic);
  if (*was.cluster_id && *now->cluster_id && strcmp(was.cluster_id, now->cluster_id) != 0)
    FAIL(ERR_DISCONTINUITY, "the store came from Kafka cluster %s, this is %s", was.cluster_id, now->cluster_id);
  if (n > 0 && positions[n - 1].at.partition >= n_partitions)
    FAIL(ERR_DISCONTINUITY, "the store has read %zu partitions, the topic has %d", n, n_partitions);
  return ERR_OK;
}

static bool is_source(const struct store_source *a, const struct store_source *b)
{
  return strcmp(a->topic, b->topic) == 0 && strcmp(a->cluster_id, b->cluster_id) == 0;
}

/* A configuration that named the wrong broker or topic has begun a rebuild, and was mended. */
static err_t return_to_live(struct catalogue_log *l, const struct store_source *now)
{
  struct store_source live, rebuilt;
  bool is_live = store_live_source_get(l->store, &live) && is_source(&live, now);
  bool is_another = store_source_get(l->store, &rebuilt) && !is_source(&rebuilt, now);

  if (!store_is_rebuilding(l->store) || !is_live || !is_another)
    return ERR_OK;
  log_info("rebuild_given_up", "number=%" PRIu64 " note=\"the topic is the served catalogue's own again\"",
           store_rebuild_number(l->store));
  return store_abandon_rebuild(l->store);
}

static bool was_still(const struct catalogue_log *l)
{
  int64_t still_ns = clock_boot_ns() - l->read_ns;

  return l->was_taken_up && l->tombstones_for_ns > 0 && still_ns > l->tombstones_for_ns &&
         still_ns > STILL_MIN_S * CLOCK_NS_PER_S;
}

/* For how long the position has not moved although the log may have. The store knows it of a daemon that was down; one
 * that runs may have been suspended, or without broker or disk. */
static int64_t absence_ms(const struct catalogue_log *l, const struct store_position *position)
{
  if (position->committed_unix_ms <= 0) /* of a log that is read for the first time */
    return 0;
  if (l->was_taken_up)
    return was_still(l) ? (clock_boot_ns() - l->read_ns) / CLOCK_NS_PER_MS : 0;
  return clock_unix_ms() - position->committed_unix_ms;
}

/* Compaction removes a tombstone when it is older than delete.retention.ms: who was away for longer may miss
 * deletes. */
static err_t verify_absence(struct catalogue_log *l, const struct topic_policy *policy)
{
  if (!policy->is_known || !policy->is_compacted)
    return ERR_OK;
  for (size_t i = 0; i < l->at.n; i++) {
    const struct log_position *p = &l->at.items[i];
    int64_t away_ms = absence_ms(l, &p->position);
    if (away_ms > policy->delete_retention_ms && p->position.at.next < p->end_at_start)
      FAIL(ERR_DISCONTINUITY,
           "the daemon was away for %" PRId64 " s, the topic keeps tombstones for %" PRId64
           " s (delete.retention.ms): deletes may be missing",
           away_ms / 1000, policy->delete_retention_ms / 1000);
  }
  return ERR_OK;
}

err_t catalogue_log_note_reading(struct catalogue_log *l)
{
  if (was_still(l))
    FAIL(ERR_KAFKA_RETRY, "topic %s was not read for %" PRId64 " s: deletes may be missing", l->topic,
         (clock_boot_ns() - l->read_ns) / CLOCK_NS_PER_S);
  l->read_ns = clock_boot_ns();
  return ERR_OK;
}

static int64_t retention_ns(const struct topic_policy *policy)
{
  return policy->delete_retention_ms < INT64_MAX / CLOCK_NS_PER_MS ? policy->delete_retention_ms * CLOCK_NS_PER_MS
                                                                   : INT64_MAX;
}

static err_t take_up_from(struct catalogue_log *l, const struct store_source *source)
{
  struct topic_policy policy;
  int n;

  TRY(catalogue_reader_n_partitions(l->reader, BROKER_TIMEOUT_MS, &n));
  TRY(return_to_live(l, source));
  TRY(verify_source(l, source, n));
  policy = catalogue_reader_policy(l->reader, BROKER_TIMEOUT_MS);
  l->at.has_holes = !policy.is_known || policy.is_compacted;
  TRY(add_partitions(l, n));
  TRY(verify_absence(l, &policy));
  TRY(store_source_put(l->store, source));
  l->was_taken_up = true;
  l->read_ns = clock_boot_ns();
  l->tombstones_for_ns = policy.is_known && policy.is_compacted ? retention_ns(&policy) : 0;
  return ERR_OK;
}

err_t catalogue_log_take_up(struct catalogue_log *l)
{
  AUTO(mem_free) char *cluster_id = NULL;

  catalogue_reader_unassign(l->reader);
  log_positions_clear(&l->at);
  TRY(catalogue_reader_cluster_id(l->reader, BROKER_TIMEOUT_MS, &cluster_id));
  return take_up_from(l, &(struct store_source){ .topic = l->topic, .cluster_id = cluster_id });
}

err_t catalogue_log_take_up_new(struct catalogue_log *l)
{
  int n;

  TRY(catalogue_reader_n_partitions(l->reader, BROKER_TIMEOUT_MS, &n));
  if ((size_t)n < l->at.n)
    FAIL(ERR_DISCONTINUITY, "the topic had %zu partitions, now it has %d: it is another one", l->at.n, n);
  TRY(add_partitions(l, n));
  return catalogue_log_read(l);
}

static err_t read_partition(struct catalogue_log *l, struct log_position *p)
{
  p->is_read = true;
  return catalogue_reader_assign(l->reader, p->position.at.partition,
                                 p->must_verify ? p->position.last_offset : p->position.at.next);
}

err_t catalogue_log_read(struct catalogue_log *l)
{
  for (size_t i = 0; i < l->at.n; i++) {
    struct log_position *p = &l->at.items[i];
    if (!p->is_read && !p->is_left)
      TRY(read_partition(l, p));
  }
  return ERR_OK;
}

err_t catalogue_log_retry(struct catalogue_log *l, int32_t partition)
{
  struct log_position *p = &l->at.items[partition];

  p->is_left = false;
  catalogue_reader_leave(l->reader, partition);
  return read_partition(l, p);
}

err_t catalogue_log_verify_inside(struct catalogue_log *l, int32_t partition)
{
  int64_t first, end;

  TRY(catalogue_reader_bounds(l->reader, partition, BROKER_TIMEOUT_MS, &first, &end));
  int64_t next = l->at.items[partition].position.at.next;
  if (next < first)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": %" PRId64 " records are gone: the log begins at offset %" PRId64 ", and %" PRId64
         " was to be read",
         partition, first - next, first, next);
  if (next > end)
    FAIL(ERR_DISCONTINUITY, "partition %" PRId32 ": offset %" PRId64 " was to be read, and the log ends at %" PRId64,
         partition, next, end);
  return ERR_OK;
}
