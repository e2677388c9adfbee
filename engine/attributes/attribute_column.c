/* SPDX-License-Identifier: Apache-2.0 */
/* One attribute's column: how values of each type are written, removed and moved. */
#include "engine/attributes/attribute_column.h"

#include <assert.h>
#include <stdlib.h>

#include "base/compare.h"

static err_t reserve(struct attribute_column *c, size_t n_words)
{
  TRY(mem_reserve(n_words, sizeof *c->present, &c->present));
  switch (c->type) {
  case ATTRIBUTE_BOOL:
    return mem_reserve(n_words, sizeof *c->truths, &c->truths);
  case ATTRIBUTE_KEYWORD:
    return mem_reserve(n_words * 64, sizeof *c->codes, &c->codes);
  case ATTRIBUTE_KEYWORDS:
    return mem_reserve(n_words * 64, sizeof *c->sets, &c->sets);
  default:
    TRY(value_buckets_init(n_words, &c->buckets));
    return mem_reserve(n_words * 64, sizeof *c->numbers, &c->numbers);
  }
}

err_t attribute_column_init(enum attribute_type type, size_t n_words, struct attribute_column *out)
{
  *out = (struct attribute_column){ .type = type, .n_words = n_words, .lock = PTHREAD_MUTEX_INITIALIZER };
  TRY(change_log_init(&out->values));
  TRY(dictionary_init(&out->texts));
  return reserve(out, n_words);
}

void attribute_column_fini(struct attribute_column *c)
{
  size_t n_words = c->n_words;

  for (size_t w = 0; c->sets && w < n_words; w++) {
    for (uint64_t rest = c->present[w]; rest; rest &= rest - 1)
      code_set_fini(&c->sets[w * 64 + (size_t)__builtin_ctzll(rest)]);
  }
  mem_release(&c->present, n_words, sizeof *c->present);
  mem_release(&c->truths, n_words, sizeof *c->truths);
  value_buckets_fini(&c->buckets, n_words);
  mem_release(&c->numbers, n_words * 64, sizeof *c->numbers);
  mem_release(&c->codes, n_words * 64, sizeof *c->codes);
  mem_release(&c->sets, n_words * 64, sizeof *c->sets);
  dictionary_fini(&c->texts);
  change_log_fini(&c->values);
  slot_marks_fini(&c->marks);
}

/* Writing -------------------- */

static void write_bit(uint64_t *words, uint32_t slot, bool is_set)
{
  if (is_set)
    bits_set(words, slot);
  else
    bits_clear(words, slot);
}

static void put_truth(struct attribute_column *c, uint32_t slot, bool is_true)
{
  if (bits_get(c->truths, slot) != is_true)
    change_log_touch(&c->values, slot);
  c->n_true -= bits_get(c->truths, slot);
  c->n_true += is_true;
  write_bit(c->truths, slot, is_true);
}

int64_t attribute_column_key_of(const struct attribute_column *c, const struct value *value)
{
  if (c->type != ATTRIBUTE_NUMBER)
    return value->integer;
  return attribute_column_key(value->kind == VALUE_NUMBER ? value->number : (double)value->integer);
}

/* Add a slot to those that have a text. */
static err_t add_slot(struct dictionary *d, uint32_t code, uint32_t slot)
{
  err_code_t err = text_slots_add(&d->entries[code].slots, slot);

  if (err != ERR_OK)
    dictionary_drop(d, code);
  return err;
}

static void remove_slot(struct dictionary *d, uint32_t code, uint32_t slot)
{
  text_slots_remove(&d->entries[code].slots, slot);
  dictionary_drop(d, code);
}

static err_t put_text(struct attribute_column *c, uint32_t slot, const struct value *value)
{
  uint32_t code;

  TRY(dictionary_code(&c->texts, value->text, &code));
  if (bits_get(c->present, slot)) {
    if (c->codes[slot] == code)
      return ERR_OK;
    TRY(add_slot(&c->texts, code, slot));
    remove_slot(&c->texts, c->codes[slot], slot);
  } else {
    TRY(add_slot(&c->texts, code, slot));
  }
  change_log_touch(&c->values, slot);
  c->codes[slot] = code;
  return ERR_OK;
}

err_t attribute_column_find_codes(struct attribute_column *c, const struct value *value,
                                  uint32_t codes[ATTRIBUTE_SET_MAX], uint32_t *n)
{
  uint32_t n_unique = 0;

  if (value->list.n > ATTRIBUTE_SET_MAX)
    FAIL(ERR_ITEM, "an attribute has %zu texts, at most %d", value->list.n, ATTRIBUTE_SET_MAX);
  for (size_t i = 0; i < value->list.n; i++)
    TRY(dictionary_code(&c->texts, value->list.v[i].text, &codes[i]));
  if (value->list.n > 1)
    qsort(codes, value->list.n, sizeof *codes, compare_uint32);
  for (size_t i = 0; i < value->list.n; i++) {
    if (i == 0 || codes[i] != codes[i - 1])
      codes[n_unique++] = codes[i];
  }
  *n = n_unique;
  return ERR_OK;
}

/* Remove the slot from the texts of `old` that are not among `codes`. */
static void remove_others(struct attribute_column *c, uint32_t slot, const struct code_set *old, const uint32_t *codes,
                          uint32_t n)
{
  const uint32_t *olds = code_set_codes(old);

  for (uint32_t i = 0, j = 0; i < old->n; i++) {
    while (j < n && codes[j] < olds[i])
      j++;
    if (j == n || codes[j] != olds[i])
      remove_slot(&c->texts, olds[i], slot);
  }
}

static bool has_codes(const struct code_set *set, const uint32_t *codes, uint32_t n)
{
  return set->n == n && (n == 0 || memcmp(code_set_codes(set), codes, n * sizeof *codes) == 0);
}

static err_t put_set(struct attribute_column *c, uint32_t slot, const struct value *value)
{
  uint32_t codes[ATTRIBUTE_SET_MAX], n;
  struct code_set set;

  TRY(attribute_column_find_codes(c, value, codes, &n));
  if (has_codes(&c->sets[slot], codes, n))
    return ERR_OK;
  change_log_touch(&c->values, slot);
  for (uint32_t i = 0; i < n; i++)
    TRY(add_slot(&c->texts, codes[i], slot));
  TRY(code_set_init(codes, n, &set));
  remove_others(c, slot, &c->sets[slot], codes, n);
  code_set_fini(&c->sets[slot]);
  c->sets[slot] = set;
  return ERR_OK;
}

static void put_number(struct attribute_column *c, uint32_t slot, int64_t key)
{
  if (c->numbers[slot] != key)
    change_log_touch(&c->values, slot);
  c->numbers[slot] = key;
}

static err_t put_value(struct attribute_column *c, uint32_t slot, const struct value *value)
{
  switch (c->type) {
  case ATTRIBUTE_BOOL:
    put_truth(c, slot, value->is_true);
    return ERR_OK;
  case ATTRIBUTE_KEYWORD:
    return put_text(c, slot, value);
  case ATTRIBUTE_KEYWORDS:
    return put_set(c, slot, value);
  default:
    put_number(c, slot, attribute_column_key_of(c, value));
    return ERR_OK;
  }
}

/* Keep the bucket of a number that has been written. */
static void put_bucket(struct attribute_column *c, uint32_t slot, bool is_new)
{
  if (value_buckets_put(&c->buckets, slot, !is_new, c->numbers[slot]))
    value_buckets_divide(&c->buckets, c->present, c->numbers, c->n_words, c->n_present);
}

err_t attribute_column_put(struct attribute_column *c, uint32_t slot, const struct value *value)
{
  if (value->kind == VALUE_NULL) {
    attribute_column_drop(c, slot);
    return ERR_OK;
  }
  bool is_new = !bits_get(c->present, slot);
  if (is_new)
    change_log_touch(&c->values, slot);
  TRY(put_value(c, slot, value));
  c->n_present += is_new;
  bits_set(c->present, slot);
  if (c->numbers)
    put_bucket(c, slot, is_new);
  return ERR_OK;
}

void attribute_column_drop(struct attribute_column *c, uint32_t slot)
{
  if (!bits_get(c->present, slot))
    return;
  change_log_touch(&c->values, slot);
  if (c->type == ATTRIBUTE_BOOL) {
    put_truth(c, slot, false);
  } else if (c->type == ATTRIBUTE_KEYWORD) {
    remove_slot(&c->texts, c->codes[slot], slot);
    c->codes[slot] = 0;
  } else if (c->type == ATTRIBUTE_KEYWORDS) {
    remove_others(c, slot, &c->sets[slot], NULL, 0);
    code_set_fini(&c->sets[slot]);
  } else {
    value_buckets_drop(&c->buckets, slot);
  }
  bits_clear(c->present, slot);
  c->n_present--;
}

/* Moving -------------------- */

static err_t rename_slot(struct attribute_column *c, const uint32_t *codes, uint32_t n, uint32_t from, uint32_t to)
{
  for (uint32_t i = 0; i < n; i++) {
    struct text_slots *slots = &c->texts.entries[codes[i]].slots;
    text_slots_remove(slots, from);
    TRY(text_slots_add(slots, to));
  }
  return ERR_OK;
}

static err_t move_value(struct attribute_column *c, uint32_t from, uint32_t to)
{
  switch (c->type) {
  case ATTRIBUTE_BOOL:
    write_bit(c->truths, to, bits_get(c->truths, from));
    bits_clear(c->truths, from);
    return ERR_OK;
  case ATTRIBUTE_KEYWORD:
    TRY(rename_slot(c, &c->codes[from], 1, from, to));
    c->codes[to] = c->codes[from];
    c->codes[from] = 0;
    return ERR_OK;
  case ATTRIBUTE_KEYWORDS:
    TRY(rename_slot(c, code_set_codes(&c->sets[from]), c->sets[from].n, from, to));
    c->sets[to] = c->sets[from];
    c->sets[from] = (struct code_set){ 0 };
    return ERR_OK;
  default:
    c->numbers[to] = c->numbers[from];
    value_buckets_move(&c->buckets, from, to);
    return ERR_OK;
  }
}

err_t attribute_column_move(struct attribute_column *c, uint32_t from, uint32_t to)
{
  if (!bits_get(c->present, from))
    return ERR_OK;
  assert(!bits_get(c->present, to));
  TRY(move_value(c, from, to));
  bits_clear(c->present, from);
  bits_set(c->present, to);
  return ERR_OK;
}

void attribute_column_trim(struct attribute_column *c, size_t from, size_t to)
{
  size_t from_word = bits_words(from), to_word = bits_words(to);

  mem_give_back(c->present, from_word, to_word, sizeof *c->present);
  mem_give_back(c->truths, from_word, to_word, sizeof *c->truths);
  mem_give_back(c->numbers, from, to, sizeof *c->numbers);
  mem_give_back(c->buckets.of_slot, from, to, sizeof *c->buckets.of_slot);
  mem_give_back(c->codes, from, to, sizeof *c->codes);
  mem_give_back(c->sets, from, to, sizeof *c->sets);
}
