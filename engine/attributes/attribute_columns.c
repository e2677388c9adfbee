/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of all attributes of an arena. */
#include "engine/attributes/attribute_columns.h"

#include "engine/attributes/attribute_column.h"
#include "engine/attributes/attribute_selection.h"

err_t attribute_columns_open(const struct attributes *attributes, const struct kernels *kernels, size_t capacity,
                             struct attribute_columns **out)
{
  AUTO(attribute_columns_close) struct attribute_columns *c = NULL;

  TRY(mem_array(1, sizeof *c, &c));
  c->kernels = kernels;
  c->n_words = bits_words(capacity);
  TRY(mem_array(attributes->n, sizeof *c->v, &c->v));
  for (; c->n < attributes->n; c->n++) {
    err_code_t err = attribute_column_init(attributes->v[c->n].type, c->n_words, &c->v[c->n]);
    if (err != ERR_OK) {
      c->n++; /* what it has is freed too */
      return err;
    }
  }
  *out = c;
  c = NULL;
  return ERR_OK;
}

void attribute_columns_close(struct attribute_columns **c)
{
  if (!*c)
    return;
  for (size_t i = 0; i < (*c)->n; i++)
    attribute_column_fini(&(*c)->v[i]);
  mem_free(&(*c)->v);
  mem_free(c);
}

/* An estimate. A text of a slot takes a code, and a share of its dictionary entry, of the table, of the text's own
 * allocation and of the chunks that list its slots. Two bytes or one bit for each slot would do if many slots share a
 * text; the shares are those of texts that few slots have. A set has few texts, which more slots share. A number has a
 * bucket. */
size_t attribute_columns_bytes_per_item(const struct attributes *attributes)
{
  enum { KEYWORD_SHARE_BYTES = 48, SET_SHARE_BYTES = 24, USUAL_TEXTS = 4 };
  static const size_t bytes[N_ATTRIBUTE_TYPES] = {
    [ATTRIBUTE_BOOL] = 0,
    [ATTRIBUTE_KEYWORD] = sizeof(uint32_t) + KEYWORD_SHARE_BYTES,
    [ATTRIBUTE_KEYWORDS] = sizeof(struct code_set) + USUAL_TEXTS * (sizeof(uint32_t) + SET_SHARE_BYTES),
    [ATTRIBUTE_INTEGER] = sizeof(int64_t) + 1,
    [ATTRIBUTE_NUMBER] = sizeof(int64_t) + 1,
    [ATTRIBUTE_TIME] = sizeof(int64_t) + 1,
  };
  size_t total = (2 * attributes->n + 7) / 8; /* bits */

  for (size_t i = 0; i < attributes->n; i++)
    total += bytes[attributes->v[i].type];
  return total;
}

/* Marks -------------------- */

err_t attribute_columns_mark(struct attribute_columns *c)
{
  for (size_t i = 0; i < c->n; i++)
    TRY(slot_marks_init(c->n_words, &c->v[i].marks));
  return ERR_OK;
}

static void mark(struct attribute_column *c, uint32_t slot)
{
  if (c->marks.words)
    slot_marks_set(&c->marks, slot);
}

bool attribute_columns_take_marks(struct attribute_columns *c, size_t attribute, size_t from, size_t *word,
                                  uint64_t *slots)
{
  return slot_marks_take(&c->v[attribute].marks, from, word, slots);
}

struct attribute_cell attribute_columns_cell(const struct attribute_columns *c, size_t attribute, uint32_t slot)
{
  return attribute_column_cell(&c->v[attribute], slot);
}

struct value attribute_columns_value(const struct attribute_columns *c, size_t attribute, uint32_t slot)
{
  return attribute_column_value(&c->v[attribute], slot);
}

err_t attribute_columns_copy_value(const struct attribute_columns *c, size_t attribute, uint32_t slot,
                                   struct region *region, struct value *out)
{
  return attribute_column_copy_value(&c->v[attribute], slot, region, out);
}

bool attribute_columns_number(const struct attribute_columns *c, size_t attribute, uint32_t slot, double *out)
{
  return attribute_column_number(&c->v[attribute], slot, out);
}

const uint64_t *attribute_columns_present(const struct attribute_columns *c, size_t attribute)
{
  return c->v[attribute].present;
}

const uint8_t *attribute_columns_buckets(const struct attribute_columns *c, size_t attribute)
{
  return c->v[attribute].buckets.of_slot;
}

bool attribute_columns_range(const struct attribute_columns *c, size_t attribute, double *low, double *high)
{
  return attribute_column_range(&c->v[attribute], low, high);
}

bool attribute_columns_bucket_range(const struct attribute_columns *c, size_t attribute, unsigned bucket, double *low,
                                    double *high)
{
  return attribute_column_bucket_range(&c->v[attribute], bucket, low, high);
}

/* Writing -------------------- */

err_t attribute_columns_put(struct attribute_columns *c, uint32_t slot, size_t attribute, const struct value *value)
{
  mark(&c->v[attribute], slot);
  return attribute_column_put(&c->v[attribute], slot, value);
}

void attribute_columns_drop(struct attribute_columns *c, uint32_t slot)
{
  for (size_t i = 0; i < c->n; i++) {
    if (bits_get(c->v[i].present, slot))
      mark(&c->v[i], slot);
    attribute_column_drop(&c->v[i], slot);
  }
}

err_t attribute_columns_move(struct attribute_columns *c, uint32_t from, uint32_t to)
{
  for (size_t i = 0; i < c->n; i++) {
    if (bits_get(c->v[i].present, from)) {
      mark(&c->v[i], from);
      mark(&c->v[i], to);
    }
    TRY(attribute_column_move(&c->v[i], from, to));
  }
  return ERR_OK;
}

void attribute_columns_trim(struct attribute_columns *c, size_t from, size_t to)
{
  for (size_t i = 0; i < c->n; i++)
    attribute_column_trim(&c->v[i], from, to);
}

err_t attribute_columns_load(struct attribute_columns *c, uint32_t slot, size_t attribute, const struct value *value)
{
  return attribute_column_load(&c->v[attribute], slot, value);
}

err_t attribute_columns_copy(struct attribute_columns *c, const struct attribute_columns *from, size_t first, size_t n)
{
  for (size_t i = 0; i < c->n; i++)
    TRY(attribute_column_copy(&c->v[i], &from->v[i], first, n));
  return ERR_OK;
}

err_t attribute_columns_finish(struct attribute_columns *c, size_t n_slots)
{
  for (size_t i = 0; i < c->n; i++) {
    if (c->v[i].marks.words)
      slot_marks_set_all(&c->v[i].marks, n_slots);
    TRY(attribute_column_finish(&c->v[i], n_slots));
  }
  return ERR_OK;
}

void attribute_columns_date(struct attribute_columns *c, uint64_t epoch)
{
  for (size_t i = 0; i < c->n; i++)
    change_log_date(&c->v[i].values, epoch);
}

const struct change_log *attribute_columns_changes(const struct attribute_columns *c, size_t attribute)
{
  return &c->v[attribute].values;
}

uint64_t attribute_columns_count(const struct attribute_columns *c, size_t attribute)
{
  return c->v[attribute].n_present;
}

struct attribute_times attribute_columns_times(const struct attribute_columns *c, size_t attribute)
{
  return (struct attribute_times){ c->v[attribute].present, c->v[attribute].numbers };
}

err_t attribute_columns_select(const struct attribute_columns *c, const struct filter_node *filter, size_t first,
                               size_t n, uint64_t *words, struct region *scratch)
{
  const struct attribute_selection *selection;
  struct region_mark mark = region_mark(scratch);

  TRY(attribute_selection_bind(c, filter, scratch, &selection));
  attribute_selection_words(selection, first, n, words);
  region_rewind(scratch, mark);
  return ERR_OK;
}
