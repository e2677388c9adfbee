/* SPDX-License-Identifier: Apache-2.0 */
/* Freeing the rows of dropped catalogues, a few with each batch. Freeing them all in one transaction would make LMDB's
 * list of free pages so long that every later commit writes megabytes. */
#include "store/store_private.h"

#include <assert.h>

err_t store_free_leftovers(struct store *s, MDB_txn *txn, size_t max, bool *is_done)
{
  for (size_t i = 0; i < TABLES_SIDES && max > 0; i++)
    if (meta_is_dropped(&s->meta, i))
      TRY(tables_trim_side(s->env, txn, &s->sides[i].tables, &max));
  *is_done = max > 0;
  return ERR_OK;
}

struct tidying {
  struct store *store;
  size_t max;
  bool is_done;
};

static err_code_t tidy(void *context, MDB_txn *txn)
{
  struct tidying *t = context;

  return store_free_leftovers(t->store, txn, t->max, &t->is_done);
}

err_t store_tidy(struct store *s, size_t max, bool *is_done)
{
  struct tidying t = { .store = s, .max = max };

  assert(max > 0);
  if (s->has_leftovers)
    TRY(store_write(s, tidy, &t, &s->meta));
  if (t.is_done)
    s->has_leftovers = false;
  *is_done = !s->has_leftovers;
  return ERR_OK;
}
