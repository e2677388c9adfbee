/* SPDX-License-Identifier: Apache-2.0 */
/* The two steps of a screen: logits of every item, then mol_screen() of those that the logits have left. */
#include "engine/mol/mol_screening.h"

/* A tile with so many items left is screened as it is: gathering them would take longer. */
enum { LANES_AT_ONCE = 26 };

err_t mol_screening_init(const struct mol_columns *c, struct search_batch *batch, size_t q, const struct mol_tile *tile,
                         struct mol_screening **out)
{
  const struct mol_query *query = mol_queries_of(batch->prepared) + q;
  const struct mol_shape *shape = &c->model->shape;
  struct region *region = batch->scratch;
  struct mol_screening *s;
  int16_t *numbers;

  *out = NULL;
  if (!mol_tile_can_screen(c, batch->kernels))
    return ERR_OK;
  TRY(region_array(region, 1, sizeof *s, &s));
  s->model = c->model;
  s->kernels = batch->kernels;
  s->admit = &batch->results[q].admit;
  s->scratch = tile->scratch;
  TRY(region_aligned(region, mol_screen_query_numbers(shape), sizeof *numbers, &numbers));
  TRY(region_aligned(region, mol_screen_logit_rows(shape) * SCREEN_LANES, sizeof *s->logits, &s->logits));
  TRY(region_aligned(region, c->model->n_logits * SCREEN_LANES, sizeof *s->gates, &s->gates));
  TRY(region_aligned(region, mol_screen_words(shape) * MOL_LANES, sizeof *s->words, &s->words));
  TRY(region_aligned(region, mol_screen_logit_rows(shape) * MOL_LANES, sizeof *s->new_logits, &s->new_logits));
  mol_screen_prepare(shape, c->model->reduced_gate, query->components, query->gate, numbers, &s->query);
  *out = s;
  return ERR_OK;
}

void mol_screening_begin(const struct kernels *kernels)
{
  if (kernels->mol_screen_begin)
    kernels->mol_screen_begin();
}

void mol_screening_end(const struct kernels *kernels)
{
  if (kernels->mol_screen_end)
    kernels->mol_screen_end();
}

/* Screen those of MOL_LANES items that are set in `lanes`. Returns how many passed. */
static size_t screen(struct mol_screening *s, const struct mol_screen_rows *items, const uint32_t *slots,
                     uint32_t lanes, float threshold, uint32_t *passed)
{
  const struct mol_model *m = s->model;
  size_t n_passed = 0;

  lanes &= s->kernels->mol_screen(&m->shape, m->reduced_gate, &s->query, items, threshold, s->scratch);
  for (; lanes; lanes &= lanes - 1) {
    uint32_t slot = slots[__builtin_ctz(lanes)];
    s->trial.n_kept++;
    if (admit_late(s->admit, slot))
      passed[n_passed++] = slot;
  }
  return n_passed;
}

size_t mol_screening_next(struct mol_screening *s, float threshold, uint32_t *passed)
{
  size_t n = s->n < MOL_LANES ? s->n : MOL_LANES, at = s->at;
  const struct mol_screen_rows waiting = { s->logits + at, s->gates + at, SCREEN_LANES };

  s->at = (at + MOL_LANES) % SCREEN_LANES;
  s->n -= n;
  return screen(s, &waiting, s->slots + at, (uint32_t)((1ull << n) - 1), threshold, passed);
}

/* Return the lanes, among those of n items, whose items the query admits. Late keys are looked up after the screen: few
 * items pass it. */
static uint32_t admitted(const struct mol_screening *s, const uint32_t *slots, uint32_t lanes)
{
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(rest);
    if (!admit_but_late(s->admit, slots[lane]))
      lanes &= ~(1u << lane);
  }
  return lanes;
}

size_t mol_screening_add(struct mol_screening *s, const uint32_t *slots, size_t n, const uint32_t *words,
                         const float *gates, float threshold, uint32_t *passed)
{
  const struct mol_model *m = s->model;
  uint32_t lanes =
      s->kernels->mol_screen_logits(&m->shape, m->reduced_gate, &s->query, words, threshold, s->new_logits);
  size_t end = s->at + s->n;

  lanes = admitted(s, slots, lanes & (uint32_t)((1ull << n) - 1));
  if (__builtin_popcount(lanes) >= LANES_AT_ONCE) {
    const struct mol_screen_rows items = { s->new_logits, gates, MOL_LANES };
    return screen(s, &items, slots, lanes, threshold, passed);
  }
  s->kernels->mol_screen_append(s->new_logits, mol_screen_logit_rows(&m->shape), lanes, s->logits, end);
  s->kernels->mol_screen_append((const uint32_t *)(const void *)gates, m->n_logits, lanes, (uint32_t *)(void *)s->gates,
                                end);
  for (; lanes; lanes &= lanes - 1, s->n++)
    s->slots[(s->at + s->n) % SCREEN_LANES] = slots[__builtin_ctz(lanes)];
  return s->n >= MOL_LANES ? mol_screening_next(s, threshold, passed) : 0;
}
