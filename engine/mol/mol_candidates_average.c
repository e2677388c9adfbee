/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates by averaged vectors: TopKAvg (MoL paper, section 3.2). Sketches of the averaged vectors fill one list for
 * each query. */
#include "base/size.h"
#include "engine/mol/mol_candidates.h"
#include "engine/mol/mol_dots.h"
#include "engine/mol/mol_sketch.h"
#include "engine/search/spread.h"

/* Slots that are scanned between two runs of prefetches. Chunks are scattered: the processor does not foresee them. */
enum { PREFETCH_SLOTS = 4 * SKETCH_BLOCK_ITEMS, LINE_BYTES = 64 };

struct average_scan {
  const struct mol_columns *columns;
  struct search_batch *batch;
  size_t first_query; /* of the queries that share the current pass */
  size_t n_best;
  float *tile;
  struct shortlists lists; /* one for each query */
};

static void exact_scores(const void *context, size_t list, const struct scan_entry *entries, size_t n, float *scores)
{
  const struct average_scan *s = context;
  const struct mol_query *queries = mol_queries_of(s->batch->prepared);
  size_t dim = s->columns->model->shape.component_dim;
  struct mol_dots dots = {
    s->batch->kernels, queries[s->first_query + list].average, dim, s->columns->averages, dim, s->tile
  };

  mol_dots(&dots, entries, n, scores);
}

/* The rows of a pass. */
struct average_rows {
  const int16_t *numbers; /* in the layout of average_lists() */
  size_t n, n_groups;
};

static const int16_t *averages_at(const struct average_scan *s, const struct average_rows *rows, size_t slot)
{
  return s->columns->short_averages + slot * rows->n_groups * 2;
}

/* Scan one chunk of n slots, and prefetch the next one. Returns the number of entries appended. */
static size_t scan_chunk(struct average_scan *s, const struct average_rows *rows, size_t first, size_t n, size_t next)
{
  size_t slot_bytes = rows->n_groups * 2 * sizeof *rows->numbers, n_appended = 0;

  for (size_t at = 0; at < n; at += PREFETCH_SLOTS) {
    const char *ahead = (const char *)averages_at(s, rows, next + at);
    for (size_t i = 0; i < PREFETCH_SLOTS * slot_bytes; i += LINE_BYTES)
      __builtin_prefetch(ahead + i, 0, 2);
    n_appended += s->batch->kernels->average_lists(
        rows->numbers, rows->n, rows->n_groups, averages_at(s, rows, first + at),
        (size_min(n - at, PREFETCH_SLOTS) + SKETCH_BLOCK_ITEMS - 1) / SKETCH_BLOCK_ITEMS, (uint32_t)(first + at),
        s->lists.lists);
  }
  return n_appended;
}

/* Fill the lists of n queries in one pass over the averaged vectors. */
static err_t scan(struct average_scan *s, size_t n, bool is_guessing)
{
  const struct mol_query *queries = mol_queries_of(s->batch->prepared);
  const struct mol_shape *shape = &s->columns->model->shape;
  struct average_rows rows = { .n = n, .n_groups = (shape->component_dim + 1) / 2 };
  size_t n_slots = s->batch->n_slots;
  struct spread_runs chunks = spread_runs_over((n_slots + SHORTLIST_CHUNK - 1) / SHORTLIST_CHUNK);
  struct shortlist_scale *scales;
  int16_t *numbers;

  TRY(mol_sketch_averages(shape, queries + s->first_query, n, s->batch->scratch, &numbers, &scales));
  rows.numbers = numbers;
  for (size_t q = 0; q < n; q++)
    scales[q].admit = &s->batch->results[s->first_query + q].admit;
  shortlist_reset(&s->lists, scales, n, s->n_best, is_guessing);
  size_t next = spread_runs_next(&chunks) * SHORTLIST_CHUNK;
  for (size_t i = 0; i < chunks.n; i++) {
    size_t first = next, n_now = size_min(n_slots - first, SHORTLIST_CHUNK);
    next = i + 1 < chunks.n ? spread_runs_next(&chunks) * SHORTLIST_CHUNK : 0;
    shortlist_make_room(&s->lists, n_now, scan_chunk(s, &rows, first, n_now, next));
    if (i + 1 == chunks.runs.n)
      shortlist_stop_guessing(&s->lists);
  }
  return ERR_OK;
}

static void add_candidates(struct average_scan *s, size_t q, uint64_t *candidates)
{
  const struct scan_list *list = &s->lists.lists[q];

  shortlist_finish(&s->lists, q);
  for (uint32_t i = 0; i < list->n; i++)
    bits_set(candidates, list->entries[i].slot);
}

/* Find the candidates of n queries in one pass. A query with a wrongly guessed threshold gets a pass of its own. */
static err_t search(struct average_scan *s, size_t n, uint64_t *const *candidates)
{
  size_t first_query = s->first_query, n_wrong = 0;
  size_t *wrong;

  TRY(region_array(s->batch->scratch, n, sizeof *wrong, &wrong));
  TRY(scan(s, n, true));
  for (size_t q = 0; q < n; q++) {
    if (shortlist_is_complete(&s->lists, q))
      add_candidates(s, q, candidates[q]);
    else
      wrong[n_wrong++] = q;
  }
  for (size_t i = 0; i < n_wrong; i++) {
    s->first_query = first_query + wrong[i];
    TRY(scan(s, 1, false));
    add_candidates(s, 0, candidates[wrong[i]]);
  }
  s->first_query = first_query;
  return ERR_OK;
}

err_t mol_candidates_of_average(const struct mol_columns *c, struct search_batch *batch, size_t n_best,
                                uint64_t *const *candidates)
{
  const struct topk *topk = &batch->results[0].topk;
  size_t n_together = MOL_LISTS_BYTES_MAX / shortlist_bytes(1, n_best, batch->n_slots);
  struct average_scan s = { .columns = c, .batch = batch, .n_best = n_best };

  for (size_t q = 0; n_best >= batch->n_items && q < batch->n; q++)
    mol_candidates_all(batch, q, candidates[q]);
  if (n_best >= batch->n_items)
    return ERR_OK;
  n_together = n_together < 1 ? 1 : n_together > batch->n ? batch->n : n_together;
  s.lists = (struct shortlists){ .kernels = batch->kernels,
                                 .n_slots = batch->n_slots,
                                 .order = topk->order,
                                 .order_context = topk->context,
                                 .exact = exact_scores,
                                 .exact_context = &s };
  TRY(shortlist_init(&s.lists, n_together, n_best, batch->scratch));
  TRY(region_aligned(batch->scratch, c->model->shape.component_dim * MOL_LANES, sizeof *s.tile, &s.tile));
  for (; s.first_query < batch->n; s.first_query += n_together) {
    size_t rest = batch->n - s.first_query;
    TRY(search(&s, rest < n_together ? rest : n_together, candidates + s.first_query));
  }
  return ERR_OK;
}
