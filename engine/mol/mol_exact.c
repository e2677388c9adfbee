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
 * On machines where bounding a score is cheaper than computing it (mol_tile_bound()), only items whose bound reaches
 * the threshold are scored. The first threshold is the K-th best score among the best items by averaged vectors. Those
 * items are scored a second time when the scan reaches them.
 */
#include <math.h>

#include "engine/mol/mol_bound.h"
#include "engine/mol/mol_candidates.h"
#include "engine/mol/mol_exact.h"
#include "engine/mol/mol_methods.h"
#include "engine/mol/mol_sketch.h"
#include "engine/receipt.h"
#include "engine/share.h"

enum {
  SEEDS_MIN = 512,   /* items that are scored to get the first threshold: at least this many, */
  SEEDS_PER_HIT = 2, /* and this many times K */
  SEEDS_PAY_AT = 16, /* only catalogues at least this many times larger use seeds */
  CHUNK_BLOCKS = SHORTLIST_CHUNK / SKETCH_BLOCK_ITEMS,
  CHUNK_TILES = SHORTLIST_CHUNK / MOL_LANES,
  CHUNKS_UNTIL_RETRY = 15,
  SHARING_MIN = 4,  /* queries that make up for loading a tile */
  CLAIM_CHUNKS = 4, /* chunks, times queries, that take some 100 us or more: a claim has about as many */
};

/* What members claim steps of: queries to seed, chunks to scan. */
enum { JOB_SEED, JOB_SCAN };

struct exact_query {
  struct mol_scorer scorer;
  struct search_result *result;
  struct mol_query_sketch sketch;
  int32_t *starts; /* [P_q] */
  size_t n_until_retry;
  bool is_screened; /* the items of the current chunk are screened first */
  bool is_bounded;  /* if not: their scores are bounded first */
};

static err_t init_query(const struct mol_columns *c, struct search_batch *batch, size_t q, struct mol_tile *tile,
                        struct exact_query *out)
{
  const struct mol_query *query = mol_queries_of(batch->prepared) + q;

  out->result = &batch->results[q];
  TRY(mol_scorer_init(c, batch, q, tile, &out->scorer));
  TRY(mol_scorer_init_screening(&out->scorer, batch->scratch));
  TRY(region_array(batch->scratch, c->model->shape.n_query_components, sizeof *out->starts, &out->starts));
  return mol_sketch_query(&c->model->shape, query->components, c->residual, batch->scratch, &out->sketch);
}

err_t mol_exact_floors(const struct mol_columns *c, struct search_batch *batch, const struct slot_set *seeds,
                       float *floors)
{
  struct mol_tile tile;

  TRY(mol_tile_init(c, batch->scratch, &tile));
  for (size_t q = 0; q < batch->n; q++) {
    struct mol_scorer scorer;
    TRY(mol_scorer_init(c, batch, q, &tile, &scorer));
    mol_scorer_add_set(&scorer, &seeds[q]);
    mol_scorer_forget(&scorer);
    floors[q] = fmaxf(floors[q], scorer.floor);
    batch->results[q].counts.scored += scorer.n_scored;
  }
  return ERR_OK;
}

err_t mol_exact_seed(const struct mol_columns *c, struct search_batch *batch, float *floors)
{
  struct slot_set *seeds;
  size_t n_seeds = SEEDS_MIN;

  for (size_t q = 0; q < batch->n; q++) {
    size_t n = SEEDS_PER_HIT * batch->results[q].topk.k;
    n_seeds = n > n_seeds ? n : n_seeds;
    floors[q] = -INFINITY;
  }
  if (batch->n_items < n_seeds * SEEDS_PAY_AT)
    return ERR_OK;
  TRY(mol_candidates_init(batch, &seeds));
  TRY(mol_candidates_of_average(c, batch, n_seeds, seeds));
  return mol_exact_floors(c, batch, seeds, floors);
}

/* Find the items of a chunk that can enter the top K, as bit masks. Returns how many. */
static size_t find_survivors(struct exact_query *e, size_t first, size_t n_blocks, uint16_t *masks)
{
  const struct mol_columns *c = e->scorer.columns;
  const struct mol_shape *shape = &c->model->shape;
  size_t n = 0;

  mol_sketch_starts(&e->sketch, mol_bound_dot_from_score(shape, e->scorer.query, mol_scorer_threshold(&e->scorer)),
                    e->starts);
  e->scorer.kernels->mol_any(&e->sketch.rows, shape->n_item_components,
                             c->sketches + first / SKETCH_BLOCK_ITEMS * mol_sketch_block_bytes(c), n_blocks, e->starts,
                             masks);
  for (size_t b = 0; b < n_blocks; b++)
    n += (size_t)__builtin_popcount(masks[b]);
  return n;
}

static void add_survivors(struct exact_query *e, size_t first, size_t n, const uint16_t *masks)
{
  for (size_t b = 0; b * SKETCH_BLOCK_ITEMS < n; b++) {
    for (unsigned mask = masks[b]; mask; mask &= mask - 1) {
      size_t i = b * SKETCH_BLOCK_ITEMS + (size_t)__builtin_ctz(mask);
      if (i < n && admit_slot(&e->result->admit, (uint32_t)(first + i)))
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
static bool prune_chunk(struct exact_query *e, size_t first, size_t n, size_t n_queries)
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
    e->n_until_retry = CHUNKS_UNTIL_RETRY;
    return false;
  }
  add_survivors(e, first, n, masks);
  return true;
}

static void bound_whole(struct exact_query *e, uint32_t first, size_t n, struct mol_tile *tile)
{
  struct mol_scorer *s = &e->scorer;

  mol_tile_bound(s->columns, s->kernels, s->query, tile, NULL);
  mol_scorer_add_bounded(s, first, n, tile);
}

static void score_whole(struct exact_query *e, uint32_t first, size_t n, struct mol_tile *tile)
{
  struct mol_scorer *s = &e->scorer;

  mol_tile_score(s->columns, s->kernels, s->query, tile, NULL);
  mol_tile_offer(tile, s->kernels, first, n, mol_scorer_threshold(s), e->result);
  s->n_scored += n;
}

/* A tile of consecutive slots that the queries of a batch share. */
struct shared_tile {
  struct mol_tile tile;
  uint32_t slots[MOL_LANES];
  size_t n;
  uint32_t *words; /* for mol_screen_logits(); NULL: this machine or model has no screens */
};

static err_t init_tiles(const struct mol_columns *c, const struct search_batch *batch, struct shared_tile *tiles)
{
  float *words;

  for (size_t t = 0; t < CHUNK_TILES; t++) {
    TRY(mol_tile_init(c, batch->scratch, &tiles[t].tile));
    tiles[t].words = NULL;
    if (!mol_tile_can_screen(c, batch->kernels))
      continue;
    TRY(mol_tile_array(batch->scratch, mol_tile_words(c->model) * MOL_LANES, &words));
    tiles[t].words = (uint32_t *)(void *)words;
  }
  return ERR_OK;
}

/* Load the tiles of n slots. Returns how many tiles there are. */
static size_t load_tiles(const struct mol_columns *c, const struct kernels *kernels, size_t first, size_t n,
                         struct shared_tile *tiles)
{
  size_t n_tiles = 0;

  for (size_t i = 0; i < n; i += MOL_LANES) {
    struct shared_tile *t = &tiles[n_tiles++];
    t->n = n - i < MOL_LANES ? n - i : MOL_LANES;
    for (size_t lane = 0; lane < t->n; lane++)
      t->slots[lane] = (uint32_t)(first + i + lane);
    mol_tile_load(c, kernels, t->slots, t->n, &t->tile);
    if (t->words)
      kernels->mol_screen_items(&c->model->shape, t->tile.components, t->words);
  }
  return n_tiles;
}

static void score_tile(struct exact_query *e, struct shared_tile *t)
{
  if (e->is_screened)
    mol_scorer_screen(&e->scorer, t->slots, t->n, t->words, t->tile.gates);
  else if (e->is_bounded)
    bound_whole(e, t->slots[0], t->n, &t->tile);
  else
    score_whole(e, t->slots[0], t->n, &t->tile);
}

static void search_chunk(const struct mol_columns *c, struct search_batch *batch, struct exact_query *queries,
                         size_t first, struct shared_tile *tiles)
{
  size_t rest = batch->n_slots - first, n = rest < SHORTLIST_CHUNK ? rest : SHORTLIST_CHUNK, n_tiles = 0;

  for (size_t q = 0; q < batch->n; q++) {
    struct exact_query *e = &queries[q];
    /* Where several queries share the tiles, dropping items first saves less than it costs to gather the others. */
    bool is_shared = batch->n >= SHARING_MIN;
    e->is_screened = is_shared && mol_scorer_choose_screen(&e->scorer, n);
    if (!e->is_screened && prune_chunk(e, first, n, batch->n))
      continue;
    e->is_screened = e->is_screened || (!is_shared && mol_scorer_choose_screen(&e->scorer, n));
    e->is_bounded = !e->is_screened && mol_scorer_choose_bounds(&e->scorer, n);
    if (n_tiles == 0)
      n_tiles = load_tiles(c, batch->kernels, first, n, tiles);
    for (size_t t = 0; t < n_tiles; t++)
      score_tile(e, &tiles[t]);
  }
}

/* Claim chunks after telling other members what this one knows. */
static bool claim_chunks(struct search_batch *batch, struct exact_query *queries, struct share_steps *steps)
{
  size_t n_chunks = (batch->n_slots + SHORTLIST_CHUNK - 1) / SHORTLIST_CHUNK;
  size_t n_each = batch->n < CLAIM_CHUNKS ? CLAIM_CHUNKS / batch->n : 1;

  for (size_t q = 0; q < batch->n; q++)
    batch->results[q].floor = mol_scorer_threshold(&queries[q].scorer);
  bool has_steps = share_claim(batch, JOB_SCAN, n_chunks, n_each, steps);
  for (size_t q = 0; q < batch->n; q++)
    queries[q].scorer.floor = batch->results[q].floor;
  return has_steps;
}

err_t mol_exact_scan(const struct mol_columns *c, struct search_batch *batch, const float *floors)
{
  struct exact_query *queries;
  struct shared_tile tiles[CHUNK_TILES];
  struct mol_tile gathered;
  struct share_steps steps;

  TRY(init_tiles(c, batch, tiles));
  TRY(mol_tile_init(c, batch->scratch, &gathered)); /* filled while the other one is in use */
  TRY(region_array(batch->scratch, batch->n, sizeof *queries, &queries));
  for (size_t q = 0; q < batch->n; q++) {
    TRY(init_query(c, batch, q, &gathered, &queries[q]));
    queries[q].scorer.floor = floors[q];
  }
  while (claim_chunks(batch, queries, &steps)) {
    for (size_t i = steps.first; i < steps.end; i++)
      search_chunk(c, batch, queries, i * SHORTLIST_CHUNK, tiles);
  }
  for (size_t q = 0; q < batch->n; q++) {
    mol_scorer_flush(&queries[q].scorer);
    batch->results[q].counts.scored += queries[q].scorer.n_scored;
    receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}

/* Claim queries and find their floors. A query's floor reaches the other members with their next claim. */
static err_t seed_claimed(const struct mol_columns *c, struct search_batch *batch, float *floors)
{
  size_t n_each = (batch->n + share_members_max(batch) - 1) / share_members_max(batch);
  struct share_steps steps;

  for (size_t q = 0; q < batch->n; q++)
    floors[q] = -INFINITY;
  while (share_claim(batch, JOB_SEED, batch->n, n_each, &steps)) {
    struct search_batch part = *batch;
    part.prepared = (const struct prepared_queries *)(mol_queries_of(batch->prepared) + steps.first);
    part.results = batch->results + steps.first;
    part.n = steps.end - steps.first;
    part.share = NULL;
    TRY(mol_exact_seed(c, &part, floors + steps.first));
    for (size_t q = steps.first; q < steps.end; q++)
      batch->results[q].floor = floors[q];
  }
  return ERR_OK;
}

err_t mol_search_exact(const struct columns *columns, struct search_batch *batch)
{
  const struct mol_columns *c = mol_columns_of(columns);
  float *floors;

  TRY(region_array(batch->scratch, batch->n, sizeof *floors, &floors));
  TRY(seed_claimed(c, batch, floors));
  return mol_exact_scan(c, batch, floors);
}
