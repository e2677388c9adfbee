/* SPDX-License-Identifier: Apache-2.0 */
/* Records have the key that they have in the topic. A mark has the name of the generation behind a character that no
 * name of a space begins with. */
#include "daemon/models/model_rows.h"

#include <stdio.h>

#include "base/log.h"
#include "ingest/wire/model_record.h"

static const char mark = '!';

/* Does the row begin like a mark? */
static bool is_marked(const struct store_model_record *row)
{
  return row->key.n > 1 && row->key.p[0] == (uint8_t)mark;
}

static err_t apply(const struct store_model_record *row, struct region *region, struct model_state *state)
{
  struct model_change change;
  err_code_t err = model_record_decode(row->key, true, row->value, region, &change);

  if (err_class(err) == ERR_CLASS_REJECT) {
    log_warn("model_record_ignored", "key=%s reason=%s", log_quote(row->key), log_failure());
    return ERR_OK;
  }
  TRY(err);
  return model_state_apply(state, &change);
}

err_t model_rows_read(struct store *store, struct region *region, struct model_state *state, struct model_rows *out)
{
  TRY(store_models_get(store, region, &out->at, &out->n, &out->has_position, &out->position));
  for (size_t i = 0; i < out->n; i++) {
    if (!is_marked(&out->at[i]))
      TRY(apply(&out->at[i], region, state));
  }
  return ERR_OK;
}

bool model_rows_is_mark(const struct store_model_record *row, struct space_name *out)
{
  if (!is_marked(row) || !space_name_parse(span_of(row->key.p + 1, row->key.n - 1), out))
    return false;
  out->generation = out->generation ? out->generation : 1;
  return true;
}

enum { MARK_BYTES = SPACE_NAME_MAX + 2 }; /* with a zero byte */

/* Write the key of the mark of a generation, by its canonical name. Returns false if it does not fit into a store. */
static bool write_mark(const char *name, char key[MARK_BYTES], struct span *out)
{
  *out = span_of(key, (size_t)snprintf(key, MARK_BYTES, "%c%s", mark, name));
  return out->n <= SPACE_NAME_MAX;
}

err_t model_rows_put_mark(struct store *store, const char *name, const struct store_position *position)
{
  char key[MARK_BYTES];
  struct store_model_record row = { .has_value = true };

  if (!write_mark(name, key, &row.key))
    return ERR_OK;
  err_code_t err = store_models_put(store, &row, 1, position);
  return err == ERR_STORE_FULL ? ERR_OK : err;
}

/* Append the row that deletes the mark of a generation, if it may have one. */
static err_t unmark(struct span space, uint32_t generation, struct region *region, struct store_model_record *rows,
                    size_t *n)
{
  const struct space_name name = { space, generation };
  char canonical[SPACE_NAME_MAX + 1], key[MARK_BYTES];
  struct store_model_record row = { .has_value = false };

  if (!space_name_print(&name, canonical) || !write_mark(canonical, key, &row.key))
    return ERR_OK;
  TRY(region_copy(region, row.key, &row.key));
  rows[(*n)++] = row;
  return ERR_OK;
}

err_t model_rows_append(const struct store_model_record *record, const struct model_change *change,
                        const struct model_state *state, struct region *region, struct store_model_record *rows,
                        size_t *n)
{
  rows[(*n)++] = *record;
  if (change->kind != MODEL_ADD)
    return ERR_OK;
  TRY(unmark(change->space, change->generation, region, rows, n));
  if (change->derives_from == 0)
    return ERR_OK;
  return unmark(change->space, model_state_root(state, change->space, change->derives_from), region, rows, n);
}
