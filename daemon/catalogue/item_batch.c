/* SPDX-License-Identifier: Apache-2.0 */
/* Decode the records of the catalogue topic, check their parts and attributes, and collect them as item changes. */
#include "daemon/catalogue/item_batch.h"

#include "base/mem.h"
#include "daemon/models/part_names.h"

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
  b->n = b->capacity = 0; /* the batch may be used again */
  region_fini(&b->region);
}

void item_batch_reset(struct item_batch *b)
{
  b->n = 0;
  b->value_bytes = 0;
  region_trim(&b->region, KEPT_BYTES);
}

void item_batch_swap(struct item_batch *a, struct item_batch *b)
{
  struct item_batch was = *a;

  *a = *b;
  *b = was;
  b->unknown_spaces = a->unknown_spaces;
  b->unknown_attributes = a->unknown_attributes;
  a->unknown_spaces = was.unknown_spaces;
  a->unknown_attributes = was.unknown_attributes;
}

err_t item_batch_reserve(struct item_batch *b, size_t n)
{
  return mem_grow(n, sizeof *b->changes, &b->capacity, &b->changes);
}

/* Verify the parts of known spaces, and refuse, keep or drop those of unknown spaces, by policy. One bad part rejects
 * the whole record. The parts that are kept stay in order. */
static err_t filter_parts(struct item_batch *b, const struct item_batch_rules *rules, struct item_change *change,
                          bool *has_retired)
{
  size_t n = 0;

  *has_retired = false;
  for (size_t i = 0; i < change->n_parts; i++) {
    struct part *part = &change->parts[i];
    bool is_known = engine_has_space(rules->engine, part->space); /* a retired one too, if it has to go on answering */
    bool is_retired = !is_known && part_names_is_retired(rules->models, part->space);
    enum config_unknown policy = is_retired ? CONFIG_UNKNOWN_SKIP : rules->unknown_spaces; /* nobody misses those */
    if (is_known || policy == CONFIG_UNKNOWN_REFUSE) {
      b->refused_part = part->space;
      TRY(engine_check_part(rules->engine, part));
      b->refused_part = (struct span){ 0 };
    }
    if (is_known || policy == CONFIG_UNKNOWN_KEEP)
      change->parts[n++] = *part;
    *has_retired |= is_retired;
    if (!is_known && !is_retired)
      unknown_names_count_part(&b->unknown_spaces, part->space, policy);
  }
  change->n_parts = n;
  return ERR_OK;
}

/* Verify the attributes that are configured, and bring them to their kept form. Drop the others. One bad value rejects
 * the whole record. */
static err_t filter_attributes(struct item_batch *b, const struct engine *engine, struct item_change *change)
{
  size_t n = 0;

  for (size_t i = 0; i < change->n_attributes; i++) {
    struct attribute_value *attribute = &change->attributes[i];
    bool is_known;
    TRY(engine_normalize_attribute(engine, &b->region, attribute, &is_known));
    if (is_known)
      change->attributes[n++] = *attribute;
    else
      unknown_names_count_value(&b->unknown_attributes, attribute->name);
  }
  change->n_attributes = n;
  return ERR_OK;
}

static err_t decode(struct item_batch *b, const struct item_format *format, const struct item_batch_rules *rules,
                    const struct topic_record *record, struct item_change *out, bool *is_change)
{
  bool has_retired;

  TRY(item_format_decode(format, record, &b->region, out));
  *is_change = true;
  if (out->is_delete)
    return ERR_OK;
  TRY(part_names_resolve(rules->models, &b->region, out));
  TRY(filter_parts(b, rules, out, &has_retired));
  TRY(filter_attributes(b, rules->engine, out));
  /* Had its generation been retired later, the item would be there without the part: a read that comes later must end
   * with the same item. */
  *is_change = has_retired || out->n_parts > 0 || out->n_attributes > 0;
  return ERR_OK;
}

err_t item_batch_add(struct item_batch *b, const struct item_format *format, const struct item_batch_rules *rules,
                     const struct topic_record *record)
{
  struct item_change *change = &b->changes[b->n];
  struct region_mark mark = region_mark(&b->region);
  bool is_change;

  b->refused_part = (struct span){ 0 };
  b->value_bytes += record->value.n; /* of a bad record too: its message is kept as long as the batch */
  err_code_t err = decode(b, format, rules, record, change, &is_change);
  if (err != ERR_OK || !is_change)
    region_rewind(&b->region, mark); /* large records that change nothing must not pile up */
  TRY(err);
  b->n += is_change;
  return ERR_OK;
}
