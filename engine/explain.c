/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts from the bits of the epoch, then ranks from the hits. Scores come from a search among the explained items,
 * so that they are those of hits to the bit. */
#include "engine/explain.h"

#include "base/crowding.h"
#include "engine/min_score.h"

static bool is_among(const struct span *keys, size_t n, struct span key)
{
  for (size_t i = 0; i < n; i++) {
    if (span_equal(keys[i], key))
      return true;
  }
  return false;
}

static bool has_seen(const struct query *query, struct span key)
{
  return query->seen && is_among(query->seen->keys, query->seen->n, key);
}

/* Say why a slot is not admitted. Return 0 if it is. */
static enum verdict find_verdict(const struct explain *e, uint32_t slot, struct span key)
{
  const struct lifetimes *lives = &e->arena->lifetimes;
  const struct query *query = e->query;

  if (slot == KEYS_NONE)
    return VERDICT_NO_ITEM;
  if (!bits_get(e->arena->spaces[e->space].has_part, slot))
    return VERDICT_NO_PART;
  if (admit_slot(e->admit, slot))
    return 0;
  if (!lifetimes_plan_is_empty(&lives->plan) && bits_get(lives->expired, slot))
    return VERDICT_EXPIRED;
  if (!lifetimes_plan_is_empty(&lives->plan) && bits_get(lives->embargoed, slot))
    return VERDICT_EMBARGOED;
  if (is_among(query->exclude, query->n_exclude, key))
    return VERDICT_EXCLUDED;
  return has_seen(query, key) ? VERDICT_SEEN : VERDICT_FILTERED;
}

static bool has_part(const struct explanation *explanation)
{
  return explanation->verdict != VERDICT_NO_ITEM && explanation->verdict != VERDICT_NO_PART;
}

err_t explain_begin(const struct explain *e, struct region *region, struct explanation **out, struct admit *scored)
{
  size_t n_words = bits_words(e->arena->n_slots);
  struct explanation *made;
  uint64_t *words;

  TRY(region_array(region, e->query->n_explain, sizeof *made, &made));
  TRY(region_array(region, n_words, sizeof *words, &words));
  for (size_t i = 0; i < e->query->n_explain; i++) {
    struct span key = e->query->explain[i];
    uint32_t slot = keys_find(&e->arena->keys, key);
    made[i] = (struct explanation){ .key = key, .verdict = find_verdict(e, slot, key) };
    if (has_part(&made[i]))
      bits_set(words, slot);
  }
  *out = made;
  *scored = (struct admit){ .words = words, .n_admitted = bits_count(words, n_words) };
  scored->admits_all = scored->n_admitted == e->arena->n_slots;
  scored->admits_parts = scored->n_admitted == e->arena->spaces[e->space].n_items;
  return ERR_OK;
}

/* Return the index of a key among hits; n if it is not there. */
static size_t find_hit(const struct hit *hits, size_t n, struct span key)
{
  size_t i = 0;

  while (i < n && !span_equal(hits[i].key, key))
    i++;
  return i;
}

/* Would the item come before a hit? */
static bool is_before(const struct explanation *item, const struct hit *hit)
{
  if (item->score != hit->score)
    return item->score > hit->score;
  return span_compare(item->key, hit->key) < 0;
}

/* Do as many better hits have the item's value as max_per admits? */
static bool is_crowded_out(const struct explain *e, const struct answer *answer, const struct explanation *item)
{
  uint32_t slot = keys_find(&e->arena->keys, item->key), n = 0;

  if (!e->query->max_per.n)
    return false;
  const struct value own = attribute_columns_value(e->arena->attributes, e->attribute, slot);
  if (own.kind == VALUE_NULL)
    return false;
  for (size_t i = 0; i < answer->n_hits && !is_before(item, &answer->hits[i]); i++)
    n += crowding_compare(&own, &answer->hits[i].value) == 0;
  return n >= e->query->max_per.n;
}

/* Compare an admitted item with the hits. */
static void rank(const struct explain *e, const struct answer *answer, struct explanation *item)
{
  size_t at = find_hit(answer->hits, answer->n_hits, item->key);
  const struct hit *last = answer->n_hits ? &answer->hits[answer->n_hits - 1] : NULL;

  if (min_score_is_missed(e->query, item->score)) {
    item->verdict = VERDICT_TOO_LOW;
  } else if (at < answer->n_hits) {
    item->verdict = VERDICT_HIT;
    item->rank = (uint32_t)at + 1;
  } else if (answer->n_hits < e->query->k || is_before(item, last)) {
    item->verdict = is_crowded_out(e, answer, item) ? VERDICT_CROWDED_OUT : VERDICT_MISSED;
  } else {
    item->verdict = VERDICT_OUTRANKED;
    item->below_last_hit = last->score - item->score;
  }
}

void explain_finish(const struct explain *e, const struct answer *answer, const struct hit *scores, size_t n_scores,
                    struct explanation *out)
{
  for (size_t i = 0; i < e->query->n_explain; i++) {
    size_t at = find_hit(scores, n_scores, out[i].key);
    if (at < n_scores) {
      out[i].has_score = true;
      out[i].score = scores[at].score;
    }
    if (!out[i].verdict)
      rank(e, answer, &out[i]);
  }
}
