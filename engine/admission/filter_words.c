/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates a filter for all slots, or for the words that changes have touched. */
#include "engine/admission/filter_words.h"

#include <string.h>

#include "engine/attributes/attribute_selection.h"

/* Evaluating one word somewhere takes about as long as this many words in a row. */
enum { WORDS_PER_PATCH = 8 };

static const uint64_t *admissible(const struct filter_scope *scope)
{
  return arena_space_words(&scope->arena->spaces[scope->space]);
}

err_t filter_words_evaluate(const struct filter_scope *scope, struct region *region, struct filter_words *w)
{
  const uint64_t *among = admissible(scope);

  w->n_words = bits_words(scope->arena->n_slots);
  TRY(attribute_columns_select(scope->arena->attributes, scope->filter, 0, w->n_words, w->words, region));
  for (size_t i = 0; i < w->n_words; i++)
    w->words[i] &= among[i];
  w->n = bits_count(w->words, w->n_words);
  return ERR_OK;
}

bool filter_words_can_patch(const struct filter_scope *scope, const struct filter_sight *sight, uint64_t since)
{
  return since >= sight->known_since &&
         filter_sight_count(sight, since) <= bits_words(scope->arena->n_slots) / WORDS_PER_PATCH;
}

/* A catalogue that has grown adds words without items. Their slots are among the changes. One that has shrunk keeps its
 * former words until they are patched: to zeros, because their slots are gone. */
static void widen(struct filter_words *w, size_t n_words)
{
  if (n_words <= w->n_words)
    return;
  memset(w->words + w->n_words, 0, (n_words - w->n_words) * sizeof *w->words);
  w->n_words = n_words;
}

static void patch_word(const struct attribute_selection *selection, const uint64_t *among, size_t word,
                       struct filter_words *w)
{
  uint64_t found;

  attribute_selection_words(selection, word, 1, &found);
  found &= among[word];
  w->n += (uint64_t)__builtin_popcountll(found);
  w->n -= (uint64_t)__builtin_popcountll(w->words[word]);
  w->words[word] = found;
}

/* A word at or after n_words had slots only between the two versions. */
static void patch_log(const struct attribute_selection *selection, const uint64_t *among, const struct change_log *log,
                      uint64_t since, struct filter_words *w)
{
  for (size_t i = change_log_count(log, since); i-- > 0;) {
    size_t word = change_log_word(log, i);
    if (word < w->n_words)
      patch_word(selection, among, word, w);
  }
}

err_t filter_words_patch(const struct filter_scope *scope, const struct filter_sight *sight, uint64_t since,
                         struct region *region, struct filter_words *w)
{
  const struct attribute_selection *selection;
  struct region_mark mark = region_mark(region);

  TRY(attribute_selection_bind(scope->arena->attributes, scope->filter, region, &selection));
  widen(w, bits_words(scope->arena->n_slots));
  for (size_t i = 0; i < sight->n; i++)
    patch_log(selection, admissible(scope), sight->logs[i], since, w);
  w->n_words = bits_words(scope->arena->n_slots);
  region_rewind(region, mark);
  return ERR_OK;
}
