/* SPDX-License-Identifier: Apache-2.0 */
/* Loading one attribute's column from several threads: values of new items, or a copy of another column. What is
 * derived from all values is built at the end. */
#include <assert.h>

#include "base/progress.h"
#include "engine/attributes/attribute_column.h"

static bool has_texts(const struct attribute_column *c)
{
  return c->type == ATTRIBUTE_KEYWORD || c->type == ATTRIBUTE_KEYWORDS;
}

/* Write a slot's texts. Their slots are added at the end. */
static err_t load_texts(struct attribute_column *c, uint32_t slot, const struct value *value)
{
  uint32_t codes[ATTRIBUTE_SET_MAX], n;

  pthread_mutex_lock(&c->lock);
  err_code_t err = c->type == ATTRIBUTE_KEYWORD ? dictionary_code(&c->texts, value->text, &c->codes[slot])
                                                : attribute_column_find_codes(c, value, codes, &n);
  pthread_mutex_unlock(&c->lock);
  if (err != ERR_OK || c->type == ATTRIBUTE_KEYWORD)
    return err;
  code_set_fini(&c->sets[slot]);
  return code_set_init(codes, n, &c->sets[slot]);
}

/* Remove what was loaded before, if a change names the attribute twice. */
static void unload(struct attribute_column *c, uint32_t slot)
{
  bits_clear(c->present, slot);
  if (c->truths)
    bits_clear(c->truths, slot);
  if (c->sets)
    code_set_fini(&c->sets[slot]);
}

err_t attribute_column_load(struct attribute_column *c, uint32_t slot, const struct value *value)
{
  if (value->kind == VALUE_NULL) {
    unload(c, slot);
    return ERR_OK;
  }
  bits_set(c->present, slot);
  if (has_texts(c))
    return load_texts(c, slot, value);
  if (c->type != ATTRIBUTE_BOOL)
    c->numbers[slot] = attribute_column_key_of(c, value);
  else if (value->is_true)
    bits_set(c->truths, slot);
  else
    bits_clear(c->truths, slot);
  return ERR_OK;
}

/* The first thread to come copies all texts. So a text has the same code in both columns. */
static err_t copy_texts(struct attribute_column *c, const struct attribute_column *from)
{
  err_code_t err = ERR_OK;

  pthread_mutex_lock(&c->lock);
  if (c->texts.n_texts == 0 && from->texts.n_texts > 0)
    err = dictionary_copy(&c->texts, &from->texts);
  pthread_mutex_unlock(&c->lock);
  return err;
}

static err_t copy_sets(struct attribute_column *c, const struct attribute_column *from, size_t first, size_t n)
{
  for (size_t slot = first; slot < first + n; slot++)
    TRY(code_set_init(code_set_codes(&from->sets[slot]), from->sets[slot].n, &c->sets[slot]));
  return ERR_OK;
}

err_t attribute_column_copy(struct attribute_column *c, const struct attribute_column *from, size_t first, size_t n)
{
  size_t word = first / 64, n_words = bits_words(n);

  assert(first % 64 == 0);
  if (has_texts(c))
    TRY(copy_texts(c, from));
  memcpy(c->present + word, from->present + word, n_words * sizeof *c->present);
  if (c->truths)
    memcpy(c->truths + word, from->truths + word, n_words * sizeof *c->truths);
  if (c->numbers)
    memcpy(c->numbers + first, from->numbers + first, n * sizeof *c->numbers);
  if (c->codes)
    memcpy(c->codes + first, from->codes + first, n * sizeof *c->codes);
  return c->sets ? copy_sets(c, from, first, n) : ERR_OK;
}

static err_t add_loaded(struct attribute_column *c, uint32_t slot)
{
  const uint32_t *codes = c->codes ? &c->codes[slot] : code_set_codes(&c->sets[slot]);
  uint32_t n = c->codes ? 1 : c->sets[slot].n;

  for (uint32_t i = 0; i < n; i++)
    TRY(text_slots_add(&c->texts.entries[codes[i]].slots, slot));
  return ERR_OK;
}

enum { FINISH_NOTES = 1024 }; /* words between two notes of progress */

err_t attribute_column_finish(struct attribute_column *c, size_t n_slots)
{
  for (size_t w = 0; w < bits_words(n_slots); w++) {
    if (w % FINISH_NOTES == 0)
      progress_note();
    c->n_present += (uint64_t)__builtin_popcountll(c->present[w]);
    c->n_true += c->truths ? (uint64_t)__builtin_popcountll(c->truths[w]) : 0;
    for (uint64_t rest = has_texts(c) ? c->present[w] : 0; rest; rest &= rest - 1)
      TRY(add_loaded(c, (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest))));
  }
  if (c->numbers)
    value_buckets_divide(&c->buckets, c->present, c->numbers, bits_words(n_slots), c->n_present);
  for (uint32_t code = 0; code < c->texts.n_codes; code++) {
    if (c->texts.entries[code].text)
      dictionary_drop(&c->texts, code); /* if it was overwritten */
  }
  return ERR_OK;
}
