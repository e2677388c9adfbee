/* SPDX-License-Identifier: Apache-2.0 */
/* Unions of what queries admit. */
#include "engine/mol/mol_walk.h"

#include <string.h>

#include "engine/mol/mol_tile.h"

enum {
  SHARED_SPARE = 8, /* for them, a list must leave out at least one slot in so many */
};

/* Gathering scattered items costs more than loading those of consecutive slots. A list pays if it has half of the slots
 * or fewer. Where several queries screen what is gathered, searching it takes most of the time, so that longer lists
 * pay. Without screening, only the sketches of consecutive slots drop items. */
static size_t list_max(const struct mol_columns *c, const struct search_batch *batch)
{
  bool is_shared = batch->n >= MOL_SHARING_MIN && mol_tile_can_screen(c, batch->kernels);
  size_t n = batch->n_slots;

  return is_shared ? n - n / SHARED_SPARE : n / 2;
}

/* Unite what the queries admit. Returns false if the filter of some query admits everything, or if it has none. */
static bool unite(const struct search_batch *batch, size_t n_words, uint64_t *words)
{
  for (size_t q = 0; q < batch->n; q++) {
    const struct admit *admit = &batch->results[q].admit;
    if (admit->n_admitted + admit->n_excluded == batch->n_items)
      return false;
    if (q > 0 && admit->words == batch->results[q - 1].admit.words)
      continue;
    for (size_t w = 0; w < n_words; w++)
      words[w] |= admit->words[w];
  }
  return true;
}

static void list(const uint64_t *words, size_t n_words, uint32_t *slots)
{
  size_t n = 0;

  for (size_t w = 0; w < n_words; w++) {
    for (uint64_t bits = words[w]; bits; bits &= bits - 1)
      slots[n++] = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
  }
}

err_t mol_walk_init(const struct mol_columns *c, const struct search_batch *batch, struct mol_walk *out)
{
  size_t n_words = bits_words(batch->n_slots);
  uint64_t *words;
  uint32_t *slots;

  *out = (struct mol_walk){ .n = batch->n_slots };
  if (batch->results[0].admit.admits_parts)
    return ERR_OK;
  TRY(region_array(batch->scratch, n_words, sizeof *words, &words));
  if (!unite(batch, n_words, words))
    return ERR_OK;
  size_t n = bits_count(words, n_words);
  if (n > list_max(c, batch))
    return ERR_OK;
  TRY(region_array(batch->scratch, n, sizeof *slots, &slots));
  list(words, n_words, slots);
  *out = (struct mol_walk){ slots, n };
  return ERR_OK;
}

size_t mol_walk_slots(const struct mol_walk *walk, size_t first, size_t most, uint32_t *slots)
{
  size_t n = walk->n - first < most ? walk->n - first : most;

  if (walk->slots)
    memcpy(slots, walk->slots + first, n * sizeof *slots);
  for (size_t i = 0; !walk->slots && i < n; i++)
    slots[i] = (uint32_t)(first + i);
  return n;
}
