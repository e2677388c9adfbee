/* SPDX-License-Identifier: Apache-2.0 */
/* Decode the records of the catalogue topic, check their parts, and collect them as item changes. */
#include "daemon/catalogue/item_batch.h"

#include "base/mem.h"
#include "ingest/wire.h"

/* Memory for decoded parts that is kept between batches: enough for a usual batch. Memory beyond that, taken by huge
 * items, is freed. */
enum { KEPT_BYTES = 16 << 20 };

err_t item_batch_init(size_t capacity, struct item_batch *out)
{
  *out = (struct item_batch){ .capacity = capacity };
  return mem_array(capacity, sizeof *out->changes, &out->changes);
}

void item_batch_fini(struct item_batch *b)
{
  mem_free(&b->changes);
  region_fini(&b->region);
}

void item_batch_reset(struct item_batch *b)
{
  b->n = 0;
  b->value_bytes = 0;
  region_trim(&b->region, KEPT_BYTES);
}

err_t item_batch_reserve(struct item_batch *b, size_t n)
{
  return mem_grow(n, sizeof *b->changes, &b->capacity, &b->changes);
}

/* Verify the parts of known spaces, and refuse, keep or drop those of unknown spaces, by policy. One bad part rejects
 * the whole record. The parts that are kept stay in order. */
static err_t filter_parts(struct item_batch *b, const struct engine *engine, enum unknown_policy policy,
                        struct item_change *change)
{
  size_t n = 0;

  for (size_t i = 0; i < change->n_parts; i++) {
    bool is_known = engine_has_space(engine, change->parts[i].space);
    if (is_known || policy == UNKNOWN_REFUSE)
      TRY(engine_check_part(engine, &change->parts[i]));
    if (is_known || policy == UNKNOWN_KEEP)
      change->parts[n++] = change->parts[i];
    if (!is_known)
      unknown_spaces_count(&b->unknown, change->parts[i].space, policy);
  }
  change->n_parts = n;
  return ERR_OK;
}

static err_t decode(struct item_batch *b, const struct engine *engine, enum unknown_policy policy,
                    const struct catalogue_record *record, struct item_change *out)
{
  *out = (struct item_change){
    .key = record->key,
    .is_delete = !record->has_value,
    .partition = record->partition,
    .offset = record->offset,
    .timestamp_ms = record->timestamp_ms,
  };
  if (!record->has_key || record->key.n < 1 || record->key.n > ITEM_KEY_MAX)
    FAIL(ERR_ITEM, "the record's key has %zu bytes: an item key has 1 to %d", record->key.n, ITEM_KEY_MAX);
  if (out->is_delete) /* a tombstone */
    return ERR_OK;
  if (record->value.n == 0)
    FAIL(ERR_ITEM, "the value is empty but not null: send a null value to delete the item");
  TRY(wire_decode_item(record->value, wire_format_of(record->value, record->content_type), &b->region, out));
  if (out->n_parts == 0)
    FAIL(ERR_ITEM, "the item has no parts: send a null value to delete it");
  return filter_parts(b, engine, policy, out);
}

err_t item_batch_add(struct item_batch *b, const struct engine *engine, enum unknown_policy policy,
                     const struct catalogue_record *record)
{
  struct item_change *change = &b->changes[b->n];
  struct region_mark mark = region_mark(&b->region);

  b->value_bytes += record->value.n; /* of a bad record too: its message is kept as long as the batch */
  err_code_t err = decode(b, engine, policy, record, change);
  if (err != ERR_OK) {
    region_rewind(&b->region, mark); /* large bad records must not pile up */
    return err;
  }
  b->n += change->is_delete || change->n_parts > 0;
  return ERR_OK;
}
