#include "daemon/item_batch.h"

#include "base/mem.h"
#include "ingest/wire.h"

/* What decoded parts may keep between batches: a usual batch fits, what one of huge items took is given back. */
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
  region_trim(&b->region, KEPT_BYTES);
}

static err_t decode(const struct catalogue_record *record, const struct engine *engine, struct region *region,
                    struct item_change *out)
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
    FAIL(ERR_ITEM, "the value is empty but not absent: send no value to delete the item");
  TRY(wire_decode_item(record->value, wire_format_of(record->value, record->content_type), region, out));
  if (out->n_parts == 0)
    FAIL(ERR_ITEM, "the item has no parts: send no value to delete it");
  return engine_check_item(engine, out);
}

err_t item_batch_add(struct item_batch *b, const struct engine *engine, struct delivery *delivery, const char *topic,
                     const char *dead_letter_topic, const struct catalogue_record *record)
{
  err_code_t err = decode(record, engine, &b->region, &b->changes[b->n]);

  if (err == ERR_OK) {
    b->n++;
    return ERR_OK;
  }
  if (err_class(err) != ERR_CLASS_REJECT)
    return err;
  struct delivery_dead_letter letter = {
    .topic = dead_letter_topic,
    .has_key = record->has_key,
    .key = record->key,
    .has_value = record->has_value,
    .value = record->value,
    .content_type = record->content_type,
    .source_topic = topic,
    .partition = record->partition,
    .offset = record->offset,
    .reason = err_message(),
  };
  while (!delivery_dead_letter(delivery, &letter)) {
    if (!delivery_may_wait(delivery))
      FAIL(ERR_STOPPING, "the daemon is stopping, and a dead letter has no room");
  }
  return ERR_OK;
}
