/* SPDX-License-Identifier: Apache-2.0 */
/* Method `exact`: the fastest exact search. It is brute force over tiles that the queries of a batch share, except that
 * items which cannot enter the top K are skipped.
 *
 * An item whose largest logit is below the K-th best score is not among the K best. Its sketch shows that at a
 * hundredth of the cost of its score. If a query can drop at least a quarter of a chunk (a sixteenth if it is alone in
 * its batch), the survivors are gathered into tiles of that query's own. Otherwise the whole chunk is scored, and the
 * query does not try its sketches again for the next few chunks.
 *
 * On machines that can screen items (mol_scorer.h), a batch screens whole chunks instead: that drops the same items and
 * most others. A query alone drops items by their sketches first, because it would load the tiles for itself.
 *
 * Queries with filters of their own may admit few items each, but together many. Then each looks only at those that it
 * admits: in one pass (mol_exact_admitted.c), or, if they are very few, in a pass of its own.
 *
 * On machines where bounding a score is cheaper than computing it (mol_tile_bound()), only items whose bound reaches
 * the threshold are scored. The first threshold is the K-th best score among the best items by averaged vectors. Those
 * items are scored a second time when the scan reaches them.
 */
#include <math.h>

#include "engine/mol/mol_candidates.h"
#include "engine/mol/mol_exact.h"
#include "engine/mol/mol_exact_choose.h"
#include "engine/mol/mol_exact_query.h"
#include "engine/mol/mol_methods.h"
#include "engine/mol/mol_walk.h"
#include "engine/search/share.h"

enum {
  SEEDS_MIN = 512,   /* items that are scored to get the first threshold: at least this many, */
  SEEDS_PER_HIT = 2, /* and this many times K */
  SEEDS_PAY_AT = 16, /* only searches of at least this many times more items use seeds */
  CHUNK_BLOCKS = SHORTLIST_CHUNK / SKETCH_BLOCK_ITEMS,
  CHUNK_TILES = SHORTLIST_CHUNK / MOL_LANES,
  CLAIM_CHUNKS = 4, /* chunks, times queries, that take some 100 us or more: a claim has about as many */
};

/* What members claim steps of: queries to seed, chunks to scan. */
enum { JOB_SEED, JOB_SCAN };

err_t mol_exact_floors(const struct mol_columns *c, struct search_batch *batch, uint64_t *const *seeds, float *floors)
{
  struct mol_tile tile;

  TRY(mol_tile_init(c, batch->scratch, &tile));
  for (size_t q = 0; q < batch->n; q++) {
    struct mol_scorer scorer;
    TRY(mol_scorer_init(c, batch, q, &tile, &scorer));
    mol_scorer_add_set(&scorer, seeds[q], bits_words(batch->n_slots));
    mol_scorer_forget(&scorer);
    floors[q] = fmaxf(floors[q], scorer.floor);
    batch->results[q].counts.scored += scorer.n_scored;
  }
  return ERR_OK;
}

err_t mol_exact_seed(const struct mol_columns *c, struct search_batch *batch, float *floors)
{
  uint64_t **seeds;
  size_t n_seeds = SEEDS_MIN, n_items = 0;

  for (size_t q = 0; q < batch->n; q++) {
    size_t n = SEEDS_PER_HIT * batch->results[q].topk.k;
    n_seeds = n > n_seeds ? n : n_seeds;
    n_items = batch->results[q].admit.n_admitted > n_items ? batch->results[q].admit.n_admitted : n_items;
    floors[q] = batch->results[q].floor;
  }
  if (n_items < n_seeds * SEEDS_PAY_AT)
    return ERR_OK;
  TRY(mol_candidates_init(batch, &seeds));
  TRY(mol_candidates_of_average(c, batch, n_seeds, seeds));
  return mol_exact_floors(c, batch, seeds, floors);
}

/* Find the items of a chunk that can enter the top K, as bit masks. Returns how many. */
static size_t find_survivors(struct mol_exact_query *e, size_t first, size_t n_blocks, uint16_t *masks)
{
  const struct mol_columns *c = e->scorer.columns;
  size_t n = 0;

  mol_exact_query_start(e);
  e->scorer.kernels->mol_any(&e->sketch.rows, c->model->shape.n_item_components, mol_sketch_block_at(c, first),
                             n_blocks, e->starts, masks);
  for (size_t b = 0; b < n_blocks; b++)
    n += (size_t)__builtin_popcount(masks[b]);
  return n;
}

static void add_survivors(struct mol_exact_query *e, size_t first, size_t n, const uint16_t *masks)
{
  for (size_t b = 0; b * SKETCH_BLOCK_ITEMS < n; b++) {
    for (unsigned mask = masks[b]; mask; mask &= mask - 1) {
      size_t i = b * SKETCH_BLOCK_ITEMS + (size_t)__builtin_ctz(mask);
      if (i < n && admit_slot(&e->scorer.result->admit, (uint32_t)(first + i)))
        mol_scorer_add(&e->scorer, (uint32_t)(first + i));
    }
  }
}

/* How many of n items must be dropped to make tiles of one query cheaper than tiles that the whole batch shares? */
static size_t min_dropped(size_t n, size_t n_queries)
{
  return n_queries > 1 ? n / 4 : n / 16;
}

/* Drop the items that cannot enter and score the rest. Returns false, and scores nothing, if scoring the whole chunk is
 * as fast. */
static bool prune_chunk(struct mol_exact_query *e, size_t first, size_t n, size_t n_queries)
{
  uint16_t masks[CHUNK_BLOCKS];

  if (mol_scorer_threshold(&e->scorer) == -INFINITY)
    return false;
  if (e->n_until_retry > 0) {
    e->n_until_retry--;
    return false;
  }
  size_t n_survivors = find_survivors(e, first, (n + SKETCH_BLOCK_ITEMS - 1) / SKETCH_BLOCK_ITEMS, masks);
  if (n_survivors > n - min_dropped(n, n_queries)) {
    e->n_until_retry = MOL_EXACT_CHUNKS_UNTIL_RETRY;
    return false;
  }
  add_survivors(e, first, n, masks);
  return true;
}

static err_t init_tiles(const struct mol_columns *c, const struct search_batch *batch, struct mol_shared_tile *tiles)
{
  for (size_t t = 0; t < CHUNK_TILES; t++)
    TRY(mol_shared_tile_init(c, batch, &tiles[t]));
  return ERR_OK;
}

/* Load the tiles of n items of the walk. Returns how many tiles there are. */
static size_t load_tiles(const struct mol_columns *c, const struct kernels *kernels, const struct mol_walk *walk,
                         size_t first, size_t n, struct mol_shared_tile *tiles)
{
  size_t n_tiles = (n + MOL_LANES - 1) / MOL_LANES;

  for (size_t i = 0; i < n_tiles; i++)
    tiles[i].n = mol_walk_slots(walk, first + i * MOL_LANES, MOL_LANES, tiles[i].slots);
  for (size_t i = 0; i < n_tiles; i++) {
    if (walk->slots && i + 1 < n_tiles) /* the hardware prefetches consecutive ones */
      mol_shared_tile_prefetch(c, &tiles[i + 1]);
    mol_shared_tile_load(c, kernels, &tiles[i]);
  }
  return n_tiles;
}

/* Does the query admit an item of the tile? Excluded keys are looked at later. */
static bool admits_some(const struct mol_exact_query *e, const struct mol_shared_tile *t)
{
  const struct admit *admit = &e->scorer.result->admit;

  for (size_t i = 0; i < t->n && !admit->admits_parts; i++) {
    if (bits_get(admit->words, t->slots[i]))
      return true;
  }
  return admit->admits_parts;
}

/* Does the query admit no item of the chunk? */
static bool admits_none(const struct mol_exact_query *e, const struct mol_walk *walk, size_t first, size_t n)
{
  const struct admit *admit = &e->scorer.result->admit;

  if (walk->slots || admit->admits_parts)
    return false; /* some query admits each item of a list */
  for (size_t w = first / 64; w < bits_words(first + n); w++) {
    if (admit->words[w])
      return false;
  }
  return true;
}

/* Sketches are searched by consecutive slots only. */
static bool prune_walk(struct mol_exact_query *e, const struct mol_walk *walk, size_t first, size_t n, size_t n_queries)
{
  return !walk->slots && prune_chunk(e, first, n, n_queries);
}

static void search_chunk(const struct mol_columns *c, struct search_batch *batch, struct mol_exact_query *queries,
                         const struct mol_walk *walk, size_t first, struct mol_shared_tile *tiles)
{
  size_t rest = walk->n - first, n = rest < SHORTLIST_CHUNK ? rest : SHORTLIST_CHUNK, n_tiles = 0;

  for (size_t q = 0; q < batch->n; q++) {
    struct mol_exact_query *e = &queries[q];
    if (admits_none(e, walk, first, n))
      continue;
    /* Where several queries share the tiles, dropping items first saves less than it costs to gather the others. */
    bool is_shared = batch->n >= MOL_SHARING_MIN, is_screened = is_shared && mol_scorer_choose_screen(&e->scorer, n);
    if (!is_screened && prune_walk(e, walk, first, n, batch->n))
      continue;
    enum mol_tile_use use = is_screened ? MOL_TILE_SCREEN : mol_exact_query_use(e, n, !is_shared);
    if (n_tiles == 0)
      n_tiles = load_tiles(c, batch->kernels, walk, first, n, tiles);
    for (size_t t = 0; t < n_tiles; t++) {
      if (admits_some(e, &tiles[t]))
        mol_shared_tile_search(&tiles[t], &e->scorer, use);
    }
  }
}

err_t mol_exact_scan(const struct mol_columns *c, struct search_batch *batch, const float *floors)
{
  struct mol_exact_query *queries;
  struct mol_shared_tile tiles[CHUNK_TILES];
  struct mol_tile gathered;
  struct share_steps steps;
  struct mol_walk walk;

  TRY(mol_walk_init(c, batch, &walk));
  TRY(init_tiles(c, batch, tiles));
  TRY(mol_tile_init(c, batch->scratch, &gathered)); /* filled while the other one is in use */
  TRY(region_array(batch->scratch, batch->n, sizeof *queries, &queries));
  for (size_t q = 0; q < batch->n; q++)
    TRY(mol_exact_query_init(c, batch, q, &gathered, floors[q], &queries[q]));
  size_t n_chunks = (walk.n + SHORTLIST_CHUNK - 1) / SHORTLIST_CHUNK;
  size_t n_each = batch->n < CLAIM_CHUNKS ? CLAIM_CHUNKS / batch->n : 1;
  while (mol_exact_query_claim(queries, batch, JOB_SCAN, n_chunks, n_each, &steps)) {
    mol_screening_begin(batch->kernels);
    for (size_t i = steps.first; i < steps.end; i++)
      search_chunk(c, batch, queries, &walk, i * SHORTLIST_CHUNK, tiles);
    mol_screening_end(batch->kernels);
  }
  mol_screening_begin(batch->kernels);
  mol_exact_query_finish(queries, batch);
  mol_screening_end(batch->kernels);
  return ERR_OK;
}

/* Claim queries and find their floors. A query's floor reaches the other members with their next claim. */
static err_t seed_claimed(const struct mol_columns *c, struct search_batch *batch, float *floors)
{
  size_t n_each = (batch->n + share_members_max(batch) - 1) / share_members_max(batch);
  struct share_steps steps;

  for (size_t q = 0; q < batch->n; q++)
    floors[q] = batch->results[q].floor;
  while (share_claim(batch, JOB_SEED, batch->n, n_each, &steps)) {
    struct search_batch slice = search_batch_slice(batch, steps.first, steps.end - steps.first);
    TRY(mol_exact_seed(c, &slice, floors + steps.first));
    for (size_t q = steps.first; q < steps.end; q++)
      batch->results[q].floor = floors[q];
  }
  return ERR_OK;
}

static err_t scan_alone(const struct mol_columns *c, struct search_batch *batch, size_t q, const float *floors)
{
  struct search_batch slice = search_batch_slice(batch, q, 1);
  struct region_mark mark = region_mark(batch->scratch);

  float floor = fmaxf(floors[q], batch->results[q].floor); /* a floor that another member found is in the result */
  TRY(mol_exact_scan(c, &slice, &floor));
  region_rewind(batch->scratch, mark);
  return ERR_OK;
}

/* Members claim queries. */
static err_t scan_each(const struct mol_columns *c, struct search_batch *batch, const float *floors)
{
  struct share_steps steps;

  while (share_claim(batch, JOB_SCAN, batch->n, 1, &steps)) {
    for (size_t q = steps.first; q < steps.end; q++)
      TRY(scan_alone(c, batch, q, floors));
  }
  return ERR_OK;
}

err_t mol_search_exact(const struct columns *columns, struct search_batch *batch)
{
  const struct mol_columns *c = mol_columns_of(columns);
  enum mol_exact_kind kind;
  float *floors;

  TRY(region_array(batch->scratch, batch->n, sizeof *floors, &floors));
  TRY(seed_claimed(c, batch, floors));
  TRY(mol_exact_choose(c, batch, &kind));
  if (kind == MOL_EXACT_ADMITTED)
    return mol_exact_scan_admitted(c, batch, JOB_SCAN, floors);
  return kind == MOL_EXACT_ALONE ? scan_each(c, batch, floors) : mol_exact_scan(c, batch, floors);
}
