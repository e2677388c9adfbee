/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluating filters for stretches of slots. A node returns words that it wrote, or words of a column that it only
 * borrows: bitmaps are read where they lie. */
#include "engine/attributes/attribute_selection.h"

#include <assert.h>
#include <stdlib.h>

#include "base/compare.h"
#include "base/size.h"
#include "engine/attributes/attribute_column.h"
#include "engine/attributes/value_table.h"

enum {
  STRETCH = 64,  /* words that are evaluated at a time: 4,096 slots */
  RANGES_MAX = 4 /* with more values, each slot's value is looked up */
};

static_assert(TEXT_SLOTS_CHUNK_WORDS % STRETCH == 0, "a stretch lies in one chunk");

/* Kinds of nodes, cheapest first. */
enum selection_kind {
  SELECT_NONE,
  SELECT_ALL,
  SELECT_PRESENT,
  SELECT_TRUE,
  SELECT_FALSE,
  SELECT_TEXTS, /* the slots of texts */
  SELECT_RANGE,
  SELECT_RANGES, /* single numbers */
  SELECT_TABLE,  /* many numbers */
  SELECT_AND,
  SELECT_OR,
  SELECT_NOT,
};

struct attribute_selection {
  enum selection_kind kind;
  uint64_t most; /* of leaves: at most so many slots */
  const struct attribute_column *column;
  const struct kernels *kernels;
  size_t n; /* of the array below */
  union {
    struct attribute_selection *operands; /* SELECT_AND, SELECT_OR: [n]; SELECT_NOT: one */
    struct {                              /* SELECT_TEXTS */
      const struct text_slots **slots_of; /* [n]: of texts that have many slots */
      uint32_t *few;                      /* [n_few]: slots of all other texts, rising */
      size_t n_few;
    };
    struct { /* SELECT_RANGE */
      int64_t low, high;
    };
    int64_t values[RANGES_MAX]; /* SELECT_RANGES: [n] */
    struct {                    /* SELECT_TABLE */
      const struct value_table *table;
      struct value_bucket_set buckets;
    };
  };
};

/* Binding -------------------- */

static err_t bind(const struct attribute_columns *c, const struct filter_node *node, struct region *region,
                  struct attribute_selection *out);

/* Cheap operands first; of the same kind, those that admit fewer slots. */
static int compare_operands(const void *a, const void *b)
{
  const struct attribute_selection *x = a, *y = b;

  if (x->kind != y->kind)
    return x->kind < y->kind ? -1 : 1;
  return (x->most > y->most) - (x->most < y->most);
}

static err_t bind_operands(const struct attribute_columns *c, const struct filter_node *node, struct region *region,
                           struct attribute_selection *out)
{
  out->n = node->operands.n;
  TRY(region_array(region, out->n, sizeof *out->operands, &out->operands));
  for (size_t i = 0; i < out->n; i++)
    TRY(bind(c, node->operands.v[i], region, &out->operands[i]));
  qsort(out->operands, out->n, sizeof *out->operands, compare_operands);
  return ERR_OK;
}

/* Add the slots of a text. */
static void bind_text(const struct text_slots *slots, struct attribute_selection *out)
{
  out->most += slots->n;
  if (slots->n_chunks > 0) {
    out->slots_of[out->n++] = slots;
    return;
  }
  memcpy(out->few + out->n_few, slots->few, slots->n * sizeof *out->few);
  out->n_few += slots->n;
}

static err_t bind_texts(const struct filter_node *node, struct region *region, struct attribute_selection *out)
{
  const struct dictionary *texts = &out->column->texts;

  TRY(region_array(region, node->texts.n, sizeof(const struct text_slots *), &out->slots_of));
  TRY(region_array(region, TEXT_SLOTS_FEW * node->texts.n, sizeof *out->few, &out->few));
  for (size_t i = 0; i < node->texts.n; i++) {
    uint32_t code = dictionary_find(texts, node->texts.v[i]);
    if (code != DICTIONARY_NONE)
      bind_text(&texts->entries[code].slots, out);
  }
  qsort(out->few, out->n_few, sizeof *out->few, compare_uint32);
  out->kind = out->most ? SELECT_TEXTS : SELECT_NONE;
  return ERR_OK;
}

static err_t bind_table(const int64_t *values, size_t n, struct region *region, struct attribute_selection *out)
{
  struct value_table *table;

  out->kind = SELECT_TABLE;
  TRY(region_array(region, 1, sizeof *table, &table));
  TRY(value_table_init(values, n, region, table));
  out->table = table;
  value_buckets_set(&out->column->buckets, values, n, &out->buckets);
  return ERR_OK;
}

/* Bind FILTER_ONE_OF. values [n], rising */
static err_t bind_values(const int64_t *values, size_t n, struct region *region, struct attribute_selection *out)
{
  if (n > RANGES_MAX)
    return bind_table(values, n, region, out);
  out->kind = SELECT_RANGES;
  out->n = n;
  memcpy(out->values, values, n * sizeof *values);
  return ERR_OK;
}

static err_t bind_one_of(const struct filter_node *node, struct region *region, struct attribute_selection *out)
{
  int64_t *keys;

  out->most = out->column->n_present;
  if (out->column->type != ATTRIBUTE_NUMBER)
    return bind_values(node->integer_values.v, node->integer_values.n, region, out);
  TRY(region_array(region, node->number_values.n, sizeof *keys, &keys));
  for (size_t i = 0; i < node->number_values.n; i++)
    keys[i] = attribute_column_key(node->number_values.v[i]);
  return bind_values(keys, node->number_values.n, region, out);
}

static void bind_range(int64_t low, int64_t high, struct attribute_selection *out)
{
  struct value_range r = value_buckets_range(&out->column->buckets, low, high);

  out->kind = SELECT_RANGE;
  out->most = value_buckets_count(&out->column->buckets, r.first, r.last);
  out->low = low;
  out->high = high;
}

static err_t bind_leaf(const struct filter_node *node, struct region *region, struct attribute_selection *out)
{
  const struct attribute_column *column = out->column;

  switch (node->kind) {
  case FILTER_HAS:
    out->kind = SELECT_PRESENT;
    out->most = column->n_present;
    return ERR_OK;
  case FILTER_IS:
    out->kind = node->is_true ? SELECT_TRUE : SELECT_FALSE;
    out->most = node->is_true ? column->n_true : column->n_present - column->n_true;
    return ERR_OK;
  case FILTER_INTEGERS:
    bind_range(node->integers.low, node->integers.high, out);
    return ERR_OK;
  case FILTER_NUMBERS:
    bind_range(attribute_column_bound(node->numbers.low), attribute_column_bound(node->numbers.high), out);
    return ERR_OK;
  case FILTER_ONE_OF:
    return bind_one_of(node, region, out);
  default:
    return bind_texts(node, region, out);
  }
}

static err_t bind(const struct attribute_columns *c, const struct filter_node *node, struct region *region,
                  struct attribute_selection *out)
{
  out->kernels = c->kernels;
  switch (node->kind) {
  case FILTER_ALL:
    out->kind = SELECT_ALL;
    return ERR_OK;
  case FILTER_NONE:
    out->kind = SELECT_NONE;
    return ERR_OK;
  case FILTER_AND:
    out->kind = SELECT_AND;
    return bind_operands(c, node, region, out);
  case FILTER_OR:
    out->kind = SELECT_OR;
    return bind_operands(c, node, region, out);
  case FILTER_NOT:
    out->kind = SELECT_NOT;
    return bind_operands(c, node, region, out);
  default:
    out->column = &c->v[node->attribute];
    return bind_leaf(node, region, out);
  }
}

err_t attribute_selection_bind(const struct attribute_columns *c, const struct filter_node *filter,
                               struct region *region, const struct attribute_selection **out)
{
  struct attribute_selection *selection;

  TRY(region_array(region, 1, sizeof *selection, &selection));
  TRY(bind(c, filter, region, selection));
  *out = selection;
  return ERR_OK;
}

/* Evaluating -------------------- */

static const uint64_t zeros[STRETCH];
static const uint64_t ones[STRETCH] = { [0 ... STRETCH - 1] = UINT64_MAX };

static bool is_zero(const uint64_t *words, size_t n)
{
  uint64_t any = 0;

  for (size_t w = 0; w < n; w++)
    any |= words[w];
  return any == 0;
}

static bool is_ones(const uint64_t *words, size_t n)
{
  uint64_t all = UINT64_MAX;

  for (size_t w = 0; w < n; w++)
    all &= words[w];
  return all == UINT64_MAX;
}

static const uint64_t *evaluate(const struct attribute_selection *s, size_t first, size_t n, const uint64_t *mask,
                                uint64_t out[STRETCH]);

static const uint64_t *evaluate_and(const struct attribute_selection *s, size_t first, size_t n, const uint64_t *mask,
                                    uint64_t *out)
{
  uint64_t buffer[STRETCH];
  const uint64_t *all = evaluate(&s->operands[0], first, n, mask, out);

  for (size_t i = 1; i < s->n && !is_zero(all, n); i++) {
    const uint64_t *one = evaluate(&s->operands[i], first, n, all, buffer);
    for (size_t w = 0; w < n; w++)
      out[w] = all[w] & one[w];
    all = out;
  }
  return all;
}

static const uint64_t *evaluate_or(const struct attribute_selection *s, size_t first, size_t n, const uint64_t *mask,
                                   uint64_t *out)
{
  uint64_t buffer[STRETCH];
  const uint64_t *any = evaluate(&s->operands[0], first, n, mask, out);

  for (size_t i = 1; i < s->n && !is_ones(any, n); i++) {
    const uint64_t *one = evaluate(&s->operands[i], first, n, mask, buffer);
    for (size_t w = 0; w < n; w++)
      out[w] = any[w] | one[w];
    any = out;
  }
  return any;
}

static const uint64_t *evaluate_not(const struct attribute_selection *s, size_t first, size_t n, const uint64_t *mask,
                                    uint64_t *out)
{
  const uint64_t *one = evaluate(&s->operands[0], first, n, mask, out);

  for (size_t w = 0; w < n; w++)
    out[w] = ~one[w];
  return out;
}

static const uint64_t *evaluate_false(const struct attribute_selection *s, size_t first, size_t n, uint64_t *out)
{
  for (size_t w = 0; w < n; w++)
    out[w] = s->column->present[first + w] & ~s->column->truths[first + w];
  return out;
}

/* Set the bits of the few slots that lie in the stretch. */
static void add_few(const struct attribute_selection *s, size_t first, size_t n, uint64_t *out)
{
  size_t low = 0, high = s->n_few;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (s->few[middle] < 64 * first)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < s->n_few && s->few[low] < 64 * (first + n); low++)
    bits_set(out, s->few[low] - 64 * first);
}

static const uint64_t *evaluate_sets(const struct attribute_selection *s, size_t first, size_t n, uint64_t *out)
{
  if (s->n == 1 && s->n_few == 0) {
    const uint64_t *words = text_slots_words(s->slots_of[0], first, n);
    if (words)
      return words;
  }
  memset(out, 0, n * sizeof *out);
  for (size_t i = 0; i < s->n; i++)
    text_slots_or(s->slots_of[i], first, n, out);
  add_few(s, first, n, out);
  return out;
}

/* Are few of a word's values to be compared? Then each is read by itself. */
static bool is_few(uint64_t bits)
{
  return __builtin_popcountll(bits) <= 8;
}

/* Prefetch the values of bits that are compared one by one. */
static void prefetch_values(const int64_t *values, const uint64_t *bits, size_t n)
{
  for (size_t w = 0; w < n; w++) {
    for (uint64_t rest = is_few(bits[w]) ? bits[w] : 0; rest; rest &= rest - 1)
      __builtin_prefetch(values + w * 64 + __builtin_ctzll(rest));
  }
}

/* Return the bits whose values are in the range. */
static uint64_t compare_values(const struct attribute_selection *s, const int64_t *values, uint64_t bits, int64_t low,
                               int64_t high)
{
  uint64_t found = 0;

  if (!is_few(bits)) {
    s->kernels->select_range_i64(values, 1, low, high, &found);
    return found & bits;
  }
  for (uint64_t rest = bits; rest; rest &= rest - 1) {
    int64_t value = values[__builtin_ctzll(rest)];
    found |= low <= value && value <= high ? rest & -rest : 0;
  }
  return found;
}

/* Find the slots of the mask with low <= value <= high: first by their buckets. Values are compared only in buckets
 * that lie partly in the range. */
static void find_range(const struct attribute_selection *s, size_t first, size_t n, const uint64_t *mask, int64_t low,
                       int64_t high, uint64_t *out)
{
  const struct value_buckets *b = &s->column->buckets;
  const uint64_t *present = s->column->present + first;
  const int64_t *values = s->column->numbers + first * 64;
  struct value_range r = value_buckets_range(b, low, high);
  uint64_t unsure[STRETCH];

  s->kernels->select_range_u8(b->of_slot + first * 64, n, (uint8_t)r.first, (uint8_t)r.last, out);
  for (size_t w = 0; w < n; w++)
    out[w] &= present[w] & mask[w];
  if (r.inner_first == r.first && r.inner_last == r.last)
    return;
  memset(unsure, 0, n * sizeof *unsure);
  if (r.inner_first <= r.inner_last)
    s->kernels->select_range_u8(b->of_slot + first * 64, n, (uint8_t)r.inner_first, (uint8_t)r.inner_last, unsure);
  for (size_t w = 0; w < n; w++)
    unsure[w] = out[w] & ~unsure[w];
  prefetch_values(values, unsure, n);
  for (size_t w = 0; w < n; w++) {
    if (unsure[w])
      out[w] ^= unsure[w] ^ compare_values(s, values + w * 64, unsure[w], low, high);
  }
}

static const uint64_t *evaluate_range(const struct attribute_selection *s, size_t first, size_t n, const uint64_t *mask,
                                      uint64_t *out)
{
  if (is_zero(s->column->present + first, n))
    return zeros;
  find_range(s, first, n, mask, s->low, s->high, out);
  return out;
}

static const uint64_t *evaluate_ranges(const struct attribute_selection *s, size_t first, size_t n,
                                       const uint64_t *mask, uint64_t *out)
{
  uint64_t buffer[STRETCH];

  find_range(s, first, n, mask, s->values[0], s->values[0], out);
  for (size_t i = 1; i < s->n; i++) {
    find_range(s, first, n, mask, s->values[i], s->values[i], buffer);
    for (size_t w = 0; w < n; w++)
      out[w] |= buffer[w];
  }
  return out;
}

/* Clear the bits of a word whose values are not in the table. */
static void look_up_values(const struct value_table *table, const int64_t *values, uint64_t unsure, uint64_t *word)
{
  for (; unsure; unsure &= unsure - 1) {
    if (!value_table_has(table, values[__builtin_ctzll(unsure)]))
      *word &= ~(unsure & -unsure);
  }
}

/* Values are looked up only in buckets that lie partly in the set. */
static const uint64_t *evaluate_table(const struct attribute_selection *s, size_t first, size_t n, const uint64_t *mask,
                                      uint64_t *out)
{
  const uint8_t *buckets = s->column->buckets.of_slot + first * 64;
  uint64_t inner[STRETCH];

  s->kernels->select_set_u8(buckets, n, s->buckets.touched, out);
  s->kernels->select_set_u8(buckets, n, s->buckets.inner, inner);
  for (size_t w = 0; w < n; w++) {
    out[w] &= s->column->present[first + w] & mask[w];
    look_up_values(s->table, s->column->numbers + (first + w) * 64, out[w] & ~inner[w], &out[w]);
  }
  return out;
}

/* Evaluate a stretch for the slots of the mask; the other bits are unspecified. Returns `out`, or words that are valid
 * while the columns are. */
static const uint64_t *evaluate(const struct attribute_selection *s, size_t first, size_t n, const uint64_t *mask,
                                uint64_t out[STRETCH])
{
  switch (s->kind) {
  case SELECT_NONE:
    return zeros;
  case SELECT_ALL:
    return ones;
  case SELECT_PRESENT:
    return s->column->present + first;
  case SELECT_TRUE:
    return s->column->truths + first;
  case SELECT_FALSE:
    return evaluate_false(s, first, n, out);
  case SELECT_TEXTS:
    return evaluate_sets(s, first, n, out);
  case SELECT_RANGE:
    return evaluate_range(s, first, n, mask, out);
  case SELECT_RANGES:
    return evaluate_ranges(s, first, n, mask, out);
  case SELECT_TABLE:
    return evaluate_table(s, first, n, mask, out);
  case SELECT_AND:
    return evaluate_and(s, first, n, mask, out);
  case SELECT_OR:
    return evaluate_or(s, first, n, mask, out);
  case SELECT_NOT:
    break;
  }
  return evaluate_not(s, first, n, mask, out);
}

void attribute_selection_words(const struct attribute_selection *s, size_t first, size_t n, uint64_t *words)
{
  for (size_t at = first, end = first + n; at < end;) {
    size_t length = size_min(end, (at / STRETCH + 1) * STRETCH) - at;
    const uint64_t *found = evaluate(s, at, length, ones, words + (at - first));
    if (found != words + (at - first))
      memcpy(words + (at - first), found, length * sizeof *found);
    at += length;
  }
}
