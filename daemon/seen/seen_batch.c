/* SPDX-License-Identifier: Apache-2.0 */
/* Decode the records of the seen topic, and collect them as changes. */
#include "daemon/seen/seen_batch.h"

#include "base/mem.h"
#include "ingest/wire/wire.h"

/* Memory that is kept between batches. */
enum { KEPT_BYTES = 4 << 20 };

void seen_batch_fini(struct seen_batch *b)
{
  mem_free(&b->changes);
  region_fini(&b->region);
}

void seen_batch_reset(struct seen_batch *b)
{
  b->n = 0;
  b->value_bytes = 0;
  region_trim(&b->region, KEPT_BYTES);
}

size_t seen_batch_bytes(const struct seen_batch *b)
{
  return b->value_bytes + b->region.taken_bytes;
}

static err_t decode(struct seen_batch *b, const struct topic_record *record, struct seen_change *out)
{
  *out = (struct seen_change){
    .user = record->key,
    .is_forgotten = !record->has_value,
    .time_unix_ms = record->timestamp_ms,
  };
  if (!record->has_key || record->key.n < 1 || record->key.n > SEEN_USER_MAX)
    FAIL(ERR_ITEM, "the record's key has %zu bytes: it is the user, and has 1 to %d", record->key.n, SEEN_USER_MAX);
  if (out->is_forgotten)
    return ERR_OK;
  if (record->value.n == 0)
    FAIL(ERR_ITEM, "the value is empty but not null: send a null value to forget the user");
  return wire_decode_seen(record->value, wire_format_of(record->value, record->content_type), &b->region, out);
}

err_t seen_batch_add(struct seen_batch *b, const struct topic_record *record)
{
  struct region_mark mark = region_mark(&b->region);

  TRY(mem_grow(b->n + 1, sizeof *b->changes, &b->capacity, &b->changes));
  b->value_bytes += record->value.n;
  err_code_t err = decode(b, record, &b->changes[b->n]);
  if (err == ERR_OK)
    b->n++;
  else
    region_rewind(&b->region, mark);
  return err;
}
