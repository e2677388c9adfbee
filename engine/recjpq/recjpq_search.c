/* SPDX-License-Identifier: Apache-2.0 */
/* Offering items to the heap of a search, and following its threshold. */
#include "engine/recjpq/recjpq_search.h"

/* Ties that the threshold has left behind cost a comparison of scores here, and no key is read. */
static void offer_ties(struct recjpq_search *s)
{
  for (size_t i = 0; i < s->n_ties; i++)
    topk_push(&s->result->topk, s->ties[i].score, s->ties[i].slot);
  s->n_ties = 0;
}

void recjpq_offer_waiting(struct recjpq_search *s)
{
  if (s->hits.entries)
    recjpq_hits_give(&s->hits, &s->result->topk);
  offer_ties(s);
}

void recjpq_offer(struct recjpq_search *s, float score, uint32_t slot)
{
  if (s->hits.entries) {
    recjpq_hits_add(&s->hits, score, slot, &s->result->topk);
    return;
  }
  if (score != topk_threshold(&s->result->topk)) {
    topk_push(&s->result->topk, score, slot);
    return;
  }
  if (s->n_ties == RECJPQ_TIES_MAX)
    offer_ties(s);
  s->ties[s->n_ties++] = (struct topk_entry){ score, slot };
}

bool recjpq_is_candidate(const struct recjpq_search *s, uint32_t slot)
{
  const struct admit *admit = &s->result->admit;

  if ((admit->n_excluded > 0 || admit->late) && !admit_slot(admit, slot))
    return false;
  return !s->seen.nexts || !recjpq_was_seen(&s->seen, s->columns->codes + slot * s->deficits.n_splits);
}

void recjpq_lower_limit(struct recjpq_search *s)
{
  struct recjpq_deficits *d = &s->deficits;

  recjpq_deficits_tighten(d, recjpq_threshold(s));
  if (d->scale == 0.0f || d->limit < RECJPQ_LEVELS - RECJPQ_LEVELS / 4)
    recjpq_deficits_quantise(d, recjpq_threshold(s)); /* use the whole range of a byte for the rest of the gap */
}
