/* SPDX-License-Identifier: Apache-2.0 */
/* The log that a catalogue follows: its source, the positions in it, and the partitions that a refused put holds back.
 */
#include "store/store_private.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- Positions and source ---- */

enum { TEXT_NAME_BYTES = 32 };

/* Name a text of a side's source in table `meta`; `stem` is "cluster_id" or "topic". */
static void text_name(const char *stem, size_t side, char out[TEXT_NAME_BYTES])
{
  snprintf(out, TEXT_NAME_BYTES, "%s.%zu", stem, side);
}

static err_t load_text(struct store *s, MDB_txn *txn, const char *stem, size_t side, char **out)
{
  char name[TEXT_NAME_BYTES];

  text_name(stem, side, name);
  mem_free(out);
  return meta_get_text(s->env, txn, s->meta_table, name, out);
}

err_t store_load_side(struct store *s, MDB_txn *txn, size_t side)
{
  struct side *loaded = &s->sides[side];

  TRY(positions_get(s->env, txn, loaded->tables.positions, &loaded->positions));
  TRY(load_text(s, txn, "cluster_id", side, &loaded->cluster_id));
  return load_text(s, txn, "topic", side, &loaded->topic);
}

err_t store_forget_side(struct store *s, MDB_txn *txn, size_t side)
{
  char name[TEXT_NAME_BYTES];

  TRY(env_verify(s->env, mdb_drop(txn, s->sides[side].tables.positions, 0), "forget the positions"));
  text_name("cluster_id", side, name);
  TRY(meta_put_text(s->env, txn, s->meta_table, name, NULL));
  text_name("topic", side, name);
  return meta_put_text(s->env, txn, s->meta_table, name, NULL);
}

static bool get_source(const struct store *s, size_t side, struct store_source *out)
{
  const char *cluster_id = s->sides[side].cluster_id;
  const char *topic = s->sides[side].topic;

  if (!cluster_id || !topic)
    return false;
  *out = (struct store_source){ .cluster_id = cluster_id, .topic = topic };
  return true;
}

const struct store_position *store_positions(const struct store *s, size_t *n)
{
  const struct positions *positions = &s->sides[meta_current(&s->meta)].positions;

  *n = positions->n;
  return positions->rows;
}

const struct store_position *store_find_position(const struct store *s, int32_t partition)
{
  return positions_find(&s->sides[meta_current(&s->meta)].positions, partition);
}

bool store_source_get(const struct store *s, struct store_source *out)
{
  return get_source(s, meta_current(&s->meta), out);
}

bool store_live_source_get(const struct store *s, struct store_source *out)
{
  return get_source(s, s->meta.live, out);
}

struct source_put {
  struct store *store;
  const char *cluster_id;
  const char *topic;
};

static err_code_t write_source(void *context, MDB_txn *txn)
{
  const struct source_put *put = context;
  struct store *s = put->store;
  size_t side = meta_current(&s->meta);
  char name[TEXT_NAME_BYTES];

  text_name("cluster_id", side, name);
  TRY(meta_put_text(s->env, txn, s->meta_table, name, put->cluster_id));
  text_name("topic", side, name);
  return meta_put_text(s->env, txn, s->meta_table, name, put->topic);
}

static void replace_text(char **text, char **by)
{
  mem_free(text);
  *text = *by;
  *by = NULL;
}

err_t store_source_put(struct store *s, const struct store_source *source)
{
  AUTO(mem_free) char *cluster_id = NULL;
  AUTO(mem_free) char *topic = NULL;
  struct store_source was;

  if (store_source_get(s, &was) && strcmp(was.cluster_id, source->cluster_id) == 0 &&
      strcmp(was.topic, source->topic) == 0)
    return ERR_OK;
  TRY(mem_copy_str(source->cluster_id, &cluster_id));
  TRY(mem_copy_str(source->topic, &topic));
  struct source_put put = { s, cluster_id, topic };
  TRY(store_write(s, write_source, &put, &s->meta));
  replace_text(&store_current(s)->cluster_id, &cluster_id);
  replace_text(&store_current(s)->topic, &topic);
  return ERR_OK;
}

void store_clear_side(struct side *side)
{
  positions_clear(&side->positions);
  mem_free(&side->cluster_id);
  mem_free(&side->topic);
}

/* ---- Refused puts ---- */

void store_set_limit(struct store *s, uint64_t max_items)
{
  s->max_items = max_items;
}

bool store_has_refused(const struct store *s)
{
  return s->refused.n > 0;
}

void store_retry_refused(struct store *s)
{
  positions_clear(&s->refused);
  refused_keys_clear(&s->refused_keys);
}

void store_set_log_partitions(struct store *s, size_t n)
{
  s->n_log_partitions = n;
}

void store_begin_log(struct store *s)
{
  store_retry_refused(s);
  s->walk = (struct tombstone_walk){ .is_walking = true, .oldest_unix_ms = INT64_MAX };
}
