/* SPDX-License-Identifier: Apache-2.0 */
/* Which shard of the catalogue the store has: a text in table `meta`. A store without it has the whole catalogue. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "store/store_private.h"

static const char shard_name[] = "shard";

enum { SHARD_TEXT_BYTES = 64 };

struct shard_setting {
  struct store *store;
  char *stored; /* NULL: the whole catalogue, or nothing yet */
  const char *wanted;
};

static err_code_t load_shard(void *context, MDB_txn *txn)
{
  struct shard_setting *setting = context;

  mem_free(&setting->stored); /* of an attempt that failed */
  return meta_get_text(setting->store->env, txn, setting->store->meta_table, shard_name, &setting->stored);
}

static err_code_t put_shard(void *context, MDB_txn *txn)
{
  const struct shard_setting *setting = context;

  return meta_put_text(setting->store->env, txn, setting->store->meta_table, shard_name, setting->wanted);
}

static bool has_contents(const struct store *s)
{
  size_t n;

  store_positions(s, &n);
  return n > 0 || s->meta.sides[s->meta.live].n_items > 0;
}

static const char *describe(const char *shard)
{
  return shard ? shard : "the whole catalogue";
}

static bool is_same(const char *a, const char *b)
{
  return strcmp(a ? a : "", b ? b : "") == 0;
}

static err_t set_shard(struct shard_setting *setting)
{
  struct store *s = setting->store;

  TRY(store_read(s, load_shard, setting));
  if (is_same(setting->stored, setting->wanted))
    return ERR_OK;
  if (has_contents(s))
    FAIL(ERR_CONFIG,
         "store %s has %s, and the configuration wants %s: give each layout a store.path of its own, or delete the "
         "store to fill it again from the topic",
         s->env->path, describe(setting->stored), describe(setting->wanted));
  return store_write(s, put_shard, setting, &s->meta);
}

err_t store_set_shard(struct store *s, uint64_t index, uint64_t n_shards)
{
  char text[SHARD_TEXT_BYTES];
  struct shard_setting setting = { .store = s, .wanted = n_shards ? text : NULL };

  snprintf(text, sizeof text, "shard %" PRIu64 " of %" PRIu64, index, n_shards);
  err_code_t err = set_shard(&setting);
  mem_free(&setting.stored);
  return err;
}
