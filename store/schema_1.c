/* SPDX-License-Identifier: Apache-2.0 */
/* Converting stores of schema 1. They had one catalogue, which a rebuild marked and swept in place. It becomes side 0.
 *
 * A store in the middle of such a rebuild mixes items of two logs, and its positions are those of the newer log. Its
 * items become the live catalogue, which no log continues, and a new rebuild begins.
 */
#include "store/store_private.h"

#include "base/mem.h"

struct schema_1 {
  uint64_t log_number;
  uint64_t is_rebuilding;
  uint64_t n_items;
};

static err_t take_number(struct store *s, MDB_txn *txn, const char *name, uint64_t *out)
{
  TRY(meta_get_number(s->env, txn, s->meta_table, name, out));
  return meta_put_text(s->env, txn, s->meta_table, name, NULL);
}

static err_t rename_text(struct store *s, MDB_txn *txn, const char *stem)
{
  AUTO(mem_free) char *text = NULL;
  char name[STORE_TEXT_NAME_BYTES];

  store_text_name(stem, 0, name);
  TRY(meta_get_text(s->env, txn, s->meta_table, stem, &text));
  TRY(meta_put_text(s->env, txn, s->meta_table, name, text));
  return meta_put_text(s->env, txn, s->meta_table, stem, NULL);
}

err_code_t store_convert_schema_1(void *context, MDB_txn *txn)
{
  struct store *s = context;
  struct schema_1 was;

  for (size_t i = 0; i < TABLES_SIDES; i++)
    TRY(tables_open_side(s->env, txn, i, true, &s->sides[i].tables));
  TRY(take_number(s, txn, "generation", &was.log_number));
  TRY(take_number(s, txn, "rebuilding", &was.is_rebuilding));
  TRY(take_number(s, txn, "items", &was.n_items));
  TRY(rename_text(s, txn, "cluster_id"));
  TRY(rename_text(s, txn, "topic"));
  struct meta meta = { .live = 0, .rebuilt = META_NO_SIDE, .log_number = was.log_number };
  meta.sides[0] = (struct meta_side){ was.log_number, was.n_items };
  if (was.is_rebuilding) {
    TRY(store_forget_side(s, txn, 0));
    meta.sides[0].log_number = ++meta.log_number;
    meta.rebuilt = 1;
    meta.sides[1].log_number = ++meta.log_number;
    meta.n_rebuilds = 1;
  }
  TRY(meta_put_schema(s->env, txn, s->meta_table));
  return meta_put(s->env, txn, s->meta_table, &meta);
}
