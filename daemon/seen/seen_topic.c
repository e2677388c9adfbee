/* SPDX-License-Identifier: Apache-2.0 */
/* The partitions of the seen topic, compared with the positions that the seen store has. */
#include "daemon/seen/seen_topic.h"

#include <inttypes.h>

#include "base/log.h"
#include "base/mem.h"

enum { BROKER_TIMEOUT_MS = 5000 };

err_t seen_topic_init(const struct kafka_layers *layers, const char *name, int64_t ttl_ms, struct seen_store *store,
                      struct seen_topic *out)
{
  *out = (struct seen_topic){ .ttl_ms = ttl_ms, .store = store };
  return followed_topic_init(layers, name, &out->followed);
}

void seen_topic_fini(struct seen_topic *t)
{
  followed_topic_fini(&t->followed);
}

static err_t add_partition(struct seen_topic *t, int32_t partition)
{
  int64_t from;

  TRY(followed_topic_add(&t->followed, seen_store_find_position(t->store, partition), BROKER_TIMEOUT_MS, &from));
  if (!t->is_quiet)
    log_info("seen_partition", "partition=%" PRId32 " from=%" PRId64 " end=%" PRId64, partition, from,
             t->followed.positions.items[partition].end_at_start);
  return topic_reader_assign(t->followed.reader, partition, from);
}

static err_t verify_n_partitions(const struct seen_topic *t, int n)
{
  size_t n_stored;
  const struct store_position *positions = seen_store_positions(t->store, &n_stored);

  if (n_stored > 0 && positions[n_stored - 1].at.partition >= n)
    FAIL(ERR_DISCONTINUITY, "partition %" PRId32 " was read, but the topic has %d partitions: this is another topic",
         positions[n_stored - 1].at.partition, n);
  return ERR_OK;
}

err_t seen_topic_add_new_partitions(struct seen_topic *t)
{
  int n;

  TRY(topic_reader_n_partitions(t->followed.reader, BROKER_TIMEOUT_MS, &n));
  TRY(verify_n_partitions(t, n));
  for (int32_t p = (int32_t)t->followed.positions.n; p < n; p++)
    TRY(add_partition(t, p));
  return ERR_OK;
}

/* Waiting for a broker in the calls below would hide for long why none can be used. */
static err_t await_broker(struct seen_topic *t)
{
  AUTO(mem_free) char *cluster = NULL;

  return topic_reader_cluster_id(t->followed.reader, BROKER_TIMEOUT_MS, &cluster);
}

/* The store keeps what was read, but a daemon with an empty store has only what the topic still has. */
static void warn_of_losses(const struct seen_topic *t, const struct topic_policy *policy)
{
  bool is_short = policy->deletes && policy->retention_ms >= 0 && (t->ttl_ms == 0 || policy->retention_ms < t->ttl_ms);
  const char *remedy = t->ttl_ms > 0 ? "to seen.ttl_s" : "without limit, to -1";

  if (policy->is_compacted)
    log_warn("seen_topic_compacted",
             "topic=%s note=\"compaction keeps only the last record of each user: set cleanup.policy to delete\"",
             t->followed.name);
  if (is_short)
    log_warn(
        "seen_topic_short",
        "topic=%s retention_s=%" PRId64 " ttl_s=%" PRId64
        " note=\"a daemon with an empty store would return older items again: raise retention.ms of the topic %s\"",
        t->followed.name, policy->retention_ms / 1000, t->ttl_ms / 1000, remedy);
}

err_t seen_topic_resume(struct seen_topic *t)
{
  TRY(await_broker(t));
  struct topic_policy policy = topic_reader_policy(t->followed.reader, BROKER_TIMEOUT_MS);

  if (!t->is_quiet)
    warn_of_losses(t, &policy);
  followed_topic_clear(&t->followed);
  followed_topic_note_policy(&t->followed, &policy);
  return seen_topic_add_new_partitions(t);
}
