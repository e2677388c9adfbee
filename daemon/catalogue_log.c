#include "daemon/catalogue_log.h"

#include <inttypes.h>

#include "base/log.h"

enum { BROKER_TIMEOUT_MS = 5000 };

err_t catalogue_log_init(const struct kafka_layers *layers, const char *topic, struct store *store,
                         struct catalogue_log *out)
{
  *out = (struct catalogue_log){ .topic = topic, .store = store };
  return catalogue_reader_open(layers, topic, &out->reader);
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
    if (positions[i].partition == partition)
      return &positions[i];
  }
  return NULL;
}

/* Take up partitions that are not read yet, up to n. */
static err_t add_partitions(struct catalogue_log *l, int n)
{
  for (int32_t p = (int32_t)l->at.n; p < n; p++) {
    int64_t first, end, from;
    TRY(catalogue_reader_bounds(l->reader, p, BROKER_TIMEOUT_MS, &first, &end));
    TRY(log_positions_add(&l->at, stored_position(l, p), first, end, &from));
    TRY(catalogue_reader_assign(l->reader, p, from));
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
  if (n > 0 && positions[n - 1].partition >= n_partitions)
    FAIL(ERR_DISCONTINUITY, "the store has read %zu partitions, the topic has %d", n, n_partitions);
  return ERR_OK;
}

err_t catalogue_log_take_up(struct catalogue_log *l)
{
  struct store_source source = { .topic = l->topic };
  int n;

  catalogue_reader_unassign(l->reader);
  log_positions_clear(&l->at);
  TRY(catalogue_reader_cluster_id(l->reader, BROKER_TIMEOUT_MS, &source.cluster_id));
  TRY(catalogue_reader_n_partitions(l->reader, BROKER_TIMEOUT_MS, &n));
  TRY(verify_source(l, &source, n));
  TRY(add_partitions(l, n));
  return store_source_put(l->store, &source);
}

err_t catalogue_log_take_up_new(struct catalogue_log *l)
{
  int n;

  TRY(catalogue_reader_n_partitions(l->reader, BROKER_TIMEOUT_MS, &n));
  if ((size_t)n < l->at.n)
    FAIL(ERR_DISCONTINUITY, "the topic had %zu partitions, now it has %d: it is another one", l->at.n, n);
  return add_partitions(l, n);
}
