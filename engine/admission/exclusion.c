/* SPDX-License-Identifier: Apache-2.0 */
/* Long and short lists of excluded keys. */
#include "engine/admission/exclusion.h"

#include <string.h>

/* Copying so many words takes as long as finding one key. */
enum { WORDS_PER_KEY = 64 };

/* So few keys are a list in a small arena too, where it hardly matters. */
enum { LISTED_ALWAYS = 8 };

/* Radix sort by so many bits at a time. */
enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Keep the slots that are admitted. Returns their number. */
static size_t keep_admitted(const uint64_t *words, uint32_t *slots, size_t n)
{
  size_t n_kept = 0;

  for (size_t i = 0; i < n; i++) {
    if (slots[i] != KEYS_NONE && bits_get(words, slots[i]))
      slots[n_kept++] = slots[i];
  }
  return n_kept;
}

static void sort_by_digit(const uint32_t *from, size_t n, unsigned shift, uint32_t *to)
{
  uint32_t ends[DIGITS] = { 0 }, at = 0;

  for (size_t i = 0; i < n; i++)
    ends[from[i] >> shift & (DIGITS - 1)]++;
  for (size_t digit = 0; digit < DIGITS; digit++) {
    uint32_t count = ends[digit];
    ends[digit] = at;
    at += count;
  }
  for (size_t i = 0; i < n; i++)
    to[ends[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

/* Sort slots. Returns `slots` or `spare`, whichever has the result. */
static uint32_t *sort(uint32_t *slots, size_t n, uint32_t *spare)
{
  uint32_t all = 0;

  for (size_t i = 0; i < n; i++)
    all |= slots[i];
  for (unsigned shift = 0; shift < 32 && all >> shift; shift += DIGIT_BITS) {
    uint32_t *sorted = spare;
    sort_by_digit(slots, n, shift, sorted);
    spare = slots;
    slots = sorted;
  }
  return slots;
}

static err_t list_slots(uint32_t *slots, size_t n, struct region *region, struct admit *admit)
{
  uint32_t *spare;
  size_t n_once = 0;

  TRY(region_array(region, n, sizeof *spare, &spare));
  slots = sort(slots, n, spare);
  for (size_t i = 0; i < n; i++) {
    if (i == 0 || slots[i] != slots[i - 1])
      slots[n_once++] = slots[i];
  }
  admit->excluded = slots;
  admit->n_excluded = n_once;
  admit->n_admitted -= n_once;
  return ERR_OK;
}

static err_t clear_slots(const uint32_t *slots, size_t n, size_t n_words, struct region *region, struct admit *admit)
{
  uint64_t *words;

  TRY(region_array(region, n_words, sizeof *words, &words));
  memcpy(words, admit->words, n_words * sizeof *words);
  for (size_t i = 0; i < n; i++) {
    admit->n_admitted -= bits_get(words, slots[i]);
    bits_clear(words, slots[i]);
  }
  admit->words = words;
  admit->words_id = 0;
  return ERR_OK;
}

bool exclusion_is_short(const struct exclusion *e, size_t n)
{
  return n <= LISTED_ALWAYS || n <= e->n_words / WORDS_PER_KEY;
}

err_t exclusion_apply(const struct exclusion *e, const struct span *keys, size_t n, struct region *region,
                      struct admit *admit)
{
  uint32_t *slots;

  TRY(region_array(region, n, sizeof *slots, &slots));
  keys_find_all(e->keys, keys, n, slots);
  n = keep_admitted(admit->words, slots, n);
  if (n == 0)
    return ERR_OK;
  if (exclusion_is_short(e, n))
    return list_slots(slots, n, region, admit);
  return clear_slots(slots, n, e->n_words, region, admit);
}

/* Keep the slots that the filter admits. Returns their number. */
static size_t keep_passing(const struct attribute_selection *filter, uint32_t *slots, size_t n)
{
  size_t n_kept = 0;

  for (size_t i = 0; i < n; i++) {
    uint64_t word;
    attribute_selection_words(filter, slots[i] / 64, 1, &word);
    if (word >> slots[i] % 64 & 1)
      slots[n_kept++] = slots[i];
  }
  return n_kept;
}

err_t exclusion_list(const struct exclusion *e, const struct span *keys, size_t n, const uint64_t *among,
                     const struct attribute_selection *filter, struct region *region, struct admit *admit)
{
  uint32_t *slots;

  TRY(region_array(region, n, sizeof *slots, &slots));
  keys_find_all(e->keys, keys, n, slots);
  n = keep_admitted(among, slots, n);
  n = keep_passing(filter, slots, n);
  return n > 0 ? list_slots(slots, n, region, admit) : ERR_OK;
}
