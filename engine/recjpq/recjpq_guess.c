/* SPDX-License-Identifier: Apache-2.0 */
/* The sample, and the rank in it that stands for the K-th best of all items. */
#include "engine/recjpq/recjpq_guess.h"

#include "engine/search/kth_best.h"

enum {
  PIECE_ITEMS = 1024,
  SHARE = 17, /* one of this many pieces is in the sample: an odd number, so that they lie at all places of blocks */
  SLOW_SLOTS_PER_CELL = 64,
  SLOW_K_FACTOR = 3,
  EXPECTED_DEVIATIONS = 1, /* rather too low: cells that turn out to be too many cost more than a scan begun early */
};

/* The sample takes a part of the time of a scan. Where scans are slow, cells save most of it, and K must be larger for
 * the sample to pay. */
static size_t k_min(const struct kernels *kernels, const struct recjpq_rule *rule)
{
  bool scans_slowly = rule->slots_per_cell == RECJPQ_BY_KERNELS && kernels->pq_slots_per_cell < SLOW_SLOTS_PER_CELL;

  return rule->guess_k_min * (scans_slowly ? SLOW_K_FACTOR : 1);
}

bool recjpq_guess_pays(const struct kernels *kernels, const struct search_result *result, uint64_t n_items,
                       const struct recjpq_rule *rule)
{
  uint64_t n = result->admit.admits_parts ? n_items : result->admit.n_admitted;

  return rule->guess_items_per_hit > 0 && result->topk.k >= k_min(kernels, rule) &&
         n / rule->guess_items_per_hit >= result->topk.k;
}

/* The sample has about K / SHARE of the K best items. With 4 deviations, it has more than this with a probability of
 * 0.0001, if the order of slots has nothing to do with scores. */
static size_t choose_rank(size_t k, size_t n_deviations)
{
  double expected = (double)k / SHARE;

  return (size_t)(expected + (double)n_deviations * sqrt(expected)) + 1;
}

/* Add the items of a piece that may raise the guess. next: the first slot of the next piece, or SIZE_MAX. */
static void add_piece(struct recjpq_search *s, size_t first, size_t n, size_t next, struct kth_best *best)
{
  const struct recjpq_deficits *d = &s->deficits;
  const struct admit *admit = &s->result->admit;
  const uint8_t *codes = recjpq_plane_of(s->columns, first);
  const uint64_t *admitted = admit->admits_all ? NULL : admit->words + first / 64;
  const uint8_t *rows[RECJPQ_SPLITS_MAX], *next_rows[RECJPQ_SPLITS_MAX];
  uint32_t passed[PIECE_ITEMS];

  recjpq_find_rows(codes, d->order, d->n_splits, rows);
  if (next < SIZE_MAX)
    recjpq_find_rows(recjpq_plane_of(s->columns, next), d->order, d->n_splits, next_rows);
  n = s->kernels->pq_scan(d->sorted, rows, d->n_splits, n, d->limit, admitted, next < SIZE_MAX ? next_rows : NULL,
                          passed);
  s->result->counts.scored += n;
  for (size_t i = 0; i < n; i++) {
    float score = recjpq_score_by_step(s->subitem_scores, codes + passed[i], RECJPQ_BLOCK_ITEMS, d->n_splits);
    if (score > best->threshold && recjpq_is_candidate(s, (uint32_t)first + passed[i]))
      kth_best_add(best, score);
  }
  s->floor = fmaxf(best->threshold, s->result->min_score);
  recjpq_lower_limit(s);
}

static void take_sample(struct recjpq_search *s, size_t n_slots, struct kth_best *best)
{
  for (size_t first = 0, next; first < n_slots; first = next) {
    size_t n = n_slots - first < PIECE_ITEMS ? n_slots - first : PIECE_ITEMS;
    next = first + (size_t)SHARE * PIECE_ITEMS;
    add_piece(s, first, n, next < n_slots ? next : SIZE_MAX, best);
  }
}

err_t recjpq_guess(struct recjpq_search *s, const struct search_batch *batch, const struct recjpq_rule *rule)
{
  size_t k = s->result->topk.k;
  struct kth_best best;

  TRY(kth_best_init(choose_rank(k, rule->guess_deviations), batch->scratch, &best));
  recjpq_deficits_quantise(&s->deficits, s->floor);
  take_sample(s, batch->n_slots, &best);
  kth_best_cut(&best);
  s->floor = best.threshold;
  s->is_guess = true;
  best.k = choose_rank(k, EXPECTED_DEVIATIONS);
  kth_best_cut(&best);
  s->expected = best.threshold;
  return ERR_OK;
}

bool recjpq_guess_failed(struct recjpq_search *s)
{
  if (!s->is_guess || topk_threshold(&s->result->topk) >= s->floor)
    return false;
  s->is_guess = false;
  s->ceiling = s->floor;
  s->floor = s->result->min_score;
  s->seen.nexts = NULL;
  recjpq_deficits_quantise(&s->deficits, recjpq_threshold(s));
  return true;
}
