/* SPDX-License-Identifier: Apache-2.0 */
/* From the hits of a round to those that are kept, and from these to what the next round admits. */
#include "engine/max_per.h"

#include <math.h>
#include <stdlib.h>

#include "base/attributes.h"
#include "base/crowding.h"
#include "base/size.h"
#include "engine/attributes/attribute_selection.h"
#include "engine/min_score.h"

/* A round finds more hits than are wanted. The first one finds half as many more, which is enough if few are crowded
 * out: RecJPQ's time grows with the hits. Later ones find many more, to be the last, and at least twice as many as the
 * round before. LATER_MAX bounds the memory that they take. */
enum { FIRST_SHARE = 2, LATER_TIMES = 4, LATER_MORE = 10, LATER_MAX = 1 << 16 };

/* An approximate method may find few hits however many it is asked for. */
enum { ROUNDS_MAX = 64, SHORT_ROUNDS_MAX = 8 };

static uint32_t first_k(const struct query *query)
{
  return query->max_per.n < query->k ? query->k + query->k / FIRST_SHARE + 1 : query->k; /* nothing is crowded out */
}

static uint32_t later_k(const struct max_per_search *s, size_t n_missing)
{
  size_t k = size_max(LATER_TIMES * n_missing + LATER_MORE, 2 * (size_t)s->wider.k);

  return (uint32_t)size_min(k, size_max(LATER_MAX, first_k(s->query)));
}

enum { CHUNK_WORDS = 512 };

/* ---- Checking ---- */

err_t max_per_check(const struct max_per *max_per, const struct attributes *attributes)
{
  size_t found;

  if (attributes_get(attributes, max_per->attribute, &found) != ERR_OK)
    FAIL(ERR_QUERY, "max_per.attribute: %s", err_message());
  enum attribute_type type = attributes->v[found].type;
  if (type != ATTRIBUTE_KEYWORD && type != ATTRIBUTE_INTEGER && type != ATTRIBUTE_BOOL)
    FAIL(ERR_QUERY, "max_per.attribute: '%.*s' is of type %s; it must be of type keyword, integer or bool",
         (int)max_per->attribute.n, (const char *)max_per->attribute.p, attribute_type_name(type));
  return ERR_OK;
}

/* ---- The hits of a round ---- */

void max_per_begin(const struct arena *arena, const struct attributes *attributes, const struct query *query,
                   const struct admit *admit, struct answer *answer, struct max_per_search *out)
{
  *out = (struct max_per_search){
    .arena = arena,
    .query = query,
    .attribute = attributes_find(attributes, query->max_per.attribute, 0),
    .wider = *query,
    .admit = *admit,
    .found = *answer,
    .answer = answer,
    .missed_below = -INFINITY,
  };
  out->wider.k = first_k(query);
}

/* List the hits so far and those that the round has found. After an approximate method, later ones may be better. */
static err_t list_hits(const struct max_per_search *s, struct region *region, struct hit **out)
{
  size_t n_all = s->n_hits + s->found.n_hits;
  struct hit *all;

  TRY(region_array(region, n_all, sizeof *all, &all));
  if (s->n_hits > 0)
    memcpy(all, s->hits, s->n_hits * sizeof *all);
  for (size_t i = 0; i < s->found.n_hits; i++) {
    struct hit *hit = &all[s->n_hits + i];
    *hit = s->found.hits[i];
    hit->key = keys_get(&s->arena->keys, hit->slot);
    hit->value = attribute_columns_value(s->arena->attributes, s->attribute, hit->slot);
  }
  if (s->n_rounds > 0 && n_all > 0)
    qsort(all, n_all, sizeof *all, query_compare_hits);
  *out = all;
  return ERR_OK;
}

/* Keep the k best that are not crowded out. Returns whether others are left. */
static bool keep_hits(struct max_per_search *s, const struct hit *all, size_t n_all, const struct crowding *crowding)
{
  s->n_hits = 0;
  for (size_t i = 0; i < n_all; i++) {
    if (crowding->is_out[i])
      continue;
    if (s->n_hits == s->query->k)
      return true;
    s->hits[s->n_hits++] = all[i];
  }
  return false;
}

/* ---- The next round ---- */

/* Is this the last round, although there are fewer hits than are wanted? */
static bool is_last(const struct max_per_search *s)
{
  size_t n_rounds = s->n_rounds + 1;
  bool is_short = s->found.n_hits < s->wider.k;

  if (s->found.n_hits == 0 || s->query->max_per.n >= s->query->k)
    return true;
  if (is_short && s->found.receipt.is_exact)
    return true; /* no other item can be a hit */
  return n_rounds == ROUNDS_MAX || (is_short && n_rounds >= SHORT_ROUNDS_MAX);
}

/* A filter that admits the values, which are of one kind. */
static err_t make_filter(const struct crowding *crowding, size_t attribute, struct region *region,
                         struct filter_node *out)
{
  const struct value *first = crowding->full[0];
  size_t n = crowding->n_full;
  struct span *texts;
  int64_t *integers;

  *out = (struct filter_node){ .attribute = attribute };
  switch (first->kind) {
  case VALUE_TEXT:
    out->kind = FILTER_TEXTS;
    TRY(region_array(region, n, sizeof *texts, &texts));
    for (size_t i = 0; i < n; i++)
      texts[i] = crowding->full[i]->text;
    out->texts.v = texts;
    out->texts.n = n;
    return ERR_OK;
  case VALUE_INTEGER:
    out->kind = n > 1 ? FILTER_ONE_OF : FILTER_INTEGERS;
    out->integers.low = out->integers.high = first->integer;
    if (n == 1)
      return ERR_OK;
    TRY(region_array(region, n, sizeof *integers, &integers));
    for (size_t i = 0; i < n; i++)
      integers[i] = crowding->full[i]->integer;
    out->integer_values.v = integers;
    out->integer_values.n = n;
    return ERR_OK;
  default:
    out->kind = n > 1 ? FILTER_HAS : FILTER_IS; /* both values, or one */
    out->is_true = first->is_true;
    return ERR_OK;
  }
}

/* Admit no more items whose value has its hits. */
static err_t clear_full(struct max_per_search *s, const struct crowding *crowding, struct region *region)
{
  size_t n_words = bits_words(s->arena->n_slots);
  const struct attribute_selection *selection;
  struct filter_node filter;
  uint64_t chunk[CHUNK_WORDS];

  if (crowding->n_full == 0)
    return ERR_OK;
  TRY(make_filter(crowding, s->attribute, region, &filter));
  TRY(attribute_selection_bind(s->arena->attributes, &filter, region, &selection));
  for (size_t first = 0; first < n_words; first += CHUNK_WORDS) {
    size_t n = size_min(CHUNK_WORDS, n_words - first);
    attribute_selection_words(selection, first, n, chunk);
    for (size_t i = 0; i < n; i++)
      s->words[first + i] &= ~chunk[i];
  }
  return ERR_OK;
}

/* Copy what the query admits to words of its own. */
static void copy_words(struct max_per_search *s)
{
  memcpy(s->words, s->admit.words, bits_words(s->arena->n_slots) * sizeof *s->words);
  for (size_t i = 0; i < s->admit.n_excluded; i++)
    bits_clear(s->words, s->admit.excluded[i]);
}

/* Is it enough to find more hits of the same items? That takes less time than to look at the values of all items, and
 * mostly there is no third round. */
static bool can_widen(const struct max_per_search *s)
{
  return s->n_rounds == 0 && s->found.receipt.is_exact && later_k(s, s->query->k) > s->wider.k;
}

/* Begin again with more hits. */
static void widen(struct max_per_search *s)
{
  s->n_hits = 0;
  s->wider.k = later_k(s, s->query->k);
}

/* Admit what the rounds so far have left. */
static err_t narrow(struct max_per_search *s, const struct crowding *crowding, struct region *region)
{
  size_t n_words = bits_words(s->arena->n_slots), n_missing = s->query->k - s->n_hits;

  if (s->admit.words != s->words)
    copy_words(s);
  for (size_t i = 0; i < s->n_hits; i++)
    bits_clear(s->words, s->hits[i].slot);
  TRY(clear_full(s, crowding, region));
  s->admit = (struct admit){ .words = s->words, .n_admitted = bits_count(s->words, n_words) };
  s->wider.k = later_k(s, n_missing);
  return ERR_OK;
}

/* ---- The answer ---- */

/* The score that an item needs to be among the hits. */
static float threshold_of(const struct max_per_search *s)
{
  float last = s->n_hits == s->query->k ? s->hits[s->n_hits - 1].score : -INFINITY;

  return s->query->has_min_score ? fmaxf(last, s->query->min_score) : last; /* lower ones are cut */
}

/* What the hits guarantee. What a round has missed stays bounded by that round: it need not be crowded out in the end,
 * if later rounds find better hits of other values.
 *
 * has_more   the round has found more hits than are wanted
 * gives_up   there are fewer, and more items that may be hits, but no further round
 */
static void join_receipt(struct max_per_search *s, bool has_more, bool gives_up, struct receipt *out)
{
  const struct receipt *found = &s->found.receipt;
  float threshold = threshold_of(s);

  if (found->has_bound && (!found->is_exact || gives_up))
    s->missed_below = fmaxf(s->missed_below, found->bound);
  out->is_exact = s->missed_below == -INFINITY || s->missed_below < threshold;
  out->has_bound = has_more || (found->has_bound && s->admit.n_admitted > 0) || s->missed_below > -INFINITY;
  out->bound = out->has_bound ? fmaxf(threshold, s->missed_below) : 0.0f;
}

static void join(struct max_per_search *s, bool has_more, bool gives_up)
{
  if (s->n_rounds == 0)
    *s->answer = s->found;
  else
    query_add_counts(&s->found.counts, &s->answer->counts);
  join_receipt(s, has_more, gives_up, &s->answer->receipt);
}

err_t max_per_take(struct max_per_search *s, struct region *kept, struct region *scratch)
{
  struct crowding crowding;
  struct hit *all;

  if (s->n_rounds == 0)
    TRY(region_array(kept, size_min(s->query->k, s->arena->n_slots), sizeof *s->hits, &s->hits));
  if (s->found.receipt.is_exact)
    min_score_cut(&s->wider, &s->found); /* what is too low crowds nothing out */
  size_t n_all = s->n_hits + s->found.n_hits;
  TRY(list_hits(s, scratch, &all));
  TRY(crowding_find(all, n_all, s->query->max_per.n, scratch, &crowding));
  bool has_more = keep_hits(s, all, n_all, &crowding);
  bool is_enough = s->n_hits == s->query->k, is_end = is_enough || is_last(s);
  bool gives_up = is_end && !is_enough && s->found.n_hits == s->wider.k;
  if (!is_end && s->n_rounds == 0)
    TRY(region_array(kept, bits_words(s->arena->n_slots), sizeof *s->words, &s->words));
  if (!is_end && can_widen(s))
    widen(s);
  else if (!is_end)
    TRY(narrow(s, &crowding, scratch));
  join(s, has_more, gives_up);
  s->n_rounds++;
  s->is_done = is_end || s->admit.n_admitted == 0;
  return ERR_OK;
}

err_t max_per_write(struct max_per_search *s, struct region *region)
{
  struct answer *answer = s->answer;

  answer->n_hits = s->n_hits;
  TRY(region_array(region, s->n_hits, sizeof *answer->hits, &answer->hits));
  for (size_t i = 0; i < s->n_hits; i++) {
    struct hit *hit = &answer->hits[i];
    *hit = s->hits[i];
    TRY(region_copy(region, s->hits[i].key, &hit->key));
    if (hit->value.kind == VALUE_TEXT)
      TRY(region_copy(region, s->hits[i].value.text, &hit->value.text));
  }
  return ERR_OK;
}
