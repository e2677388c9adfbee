/* SPDX-License-Identifier: Apache-2.0 */
/* The scan of `exact` where queries admit few of the items that their batch admits. Items that a query does not admit
 * cost it nothing.
 *
 * Queries that share a filter with enough others look at its items together, in shared tiles. The others compare
 * sketches first. These are turned into rows once for all of them, and each query packs into tiles those that it
 * admits. A query that admits at least half of a chunk is compared with whole blocks instead. Items that may enter the
 * top K are added to the query's scorer.
 */
#include <math.h>

#include "base/size.h"
#include "engine/mol/mol_exact.h"
#include "engine/mol/mol_exact_query.h"
#include "engine/mol/mol_rows.h"

enum {
  CHUNK = MOL_ROWS_SLOTS,
  CHUNK_BLOCKS = CHUNK / SKETCH_BLOCK_ITEMS,
  CLAIM_CHUNKS = 16,  /* chunks, times queries, that take some 100 us or more */
  ROWS_PAY_AT = 4,    /* queries that make up for turning sketches into rows */
  BLOCKS_PAY_AT = 8,  /* comparing a whole block takes an eighth of the time of searching its items */
  KEPT_MAX_16TH = 15, /* sketches pay if they keep at most so many sixteenths of the items */
};

/* Queries that share the words of their filter. */
struct filter_group {
  const uint64_t *words;
  size_t first, n; /* in scan.order */
  /* If there are MOL_SHARING_MIN or more: */
  uint32_t slots[MOL_LANES]; /* gathered for the next tile */
  size_t n_slots;
  uint32_t waiting[MOL_LANES]; /* a full tile, prefetched, to be searched next */
  size_t n_waiting;
};

struct scan {
  const struct mol_columns *columns;
  struct search_batch *batch;
  struct mol_tile gathered; /* of the scorers */
  struct mol_rows rows;
  bool has_rows;               /* of the current chunk */
  bool has_sketches;           /* do queries read sketches? */
  struct mol_shared_tile tile; /* of a group */
  struct mol_exact_query *queries;
  size_t *order; /* [batch->n] queries, group by group */
  struct filter_group *groups;
  size_t n_groups;
};

/* The admitted slots of a chunk, relative to its first one. */
struct chunk {
  size_t first, n; /* slots */
  size_t n_admitted;
  uint16_t admitted[CHUNK];
};

/* Choosing -------------------- */

/* How many queries of the batch have the filter of query q? */
static size_t count_same(const struct search_batch *batch, size_t q)
{
  size_t n = 0;

  for (size_t other = 0; other < batch->n; other++)
    n += batch->results[other].admit.words == batch->results[q].admit.words;
  return n;
}

/* Does reading all sketches pay? Only queries that search apart read them. */
static bool do_sketches_pay(const struct search_batch *batch)
{
  uint64_t n_admitted = 0;

  for (size_t q = 0; q < batch->n; q++)
    n_admitted += count_same(batch, q) < MOL_SHARING_MIN ? batch->results[q].admit.n_admitted : 0;
  return n_admitted * (batch->n < ROWS_PAY_AT ? BLOCKS_PAY_AT : 1) >= batch->n_slots;
}

bool mol_exact_scan_admitted_pays(const struct search_batch *batch)
{
  size_t n_sharing = 0;

  for (size_t q = 0; q < batch->n; q++)
    n_sharing += count_same(batch, q) >= MOL_SHARING_MIN;
  return 2 * n_sharing >= batch->n || do_sketches_pay(batch);
}

/* Preparing -------------------- */

static void find_groups(struct scan *s)
{
  size_t n = 0;

  for (size_t q = 0; q < s->batch->n; q++) {
    const uint64_t *words = s->batch->results[q].admit.words;
    size_t g = 0;
    while (g < s->n_groups && s->groups[g].words != words)
      g++;
    if (g < s->n_groups)
      continue;
    s->groups[s->n_groups++] = (struct filter_group){ .words = words, .first = n };
    for (size_t other = q; other < s->batch->n; other++) {
      if (s->batch->results[other].admit.words == words)
        s->order[n++] = other;
    }
    s->groups[g].n = n - s->groups[g].first;
  }
}

static err_t init(struct scan *s, const float *floors)
{
  struct region *region = s->batch->scratch;
  size_t n = s->batch->n;

  TRY(mol_tile_init(s->columns, region, &s->gathered));
  TRY(mol_shared_tile_init(s->columns, s->batch, &s->tile));
  TRY(mol_rows_init(s->columns, s->batch->kernels, region, &s->rows));
  TRY(region_array(region, n, sizeof *s->order, &s->order));
  TRY(region_array(region, n, sizeof *s->groups, &s->groups));
  TRY(region_array(region, n, sizeof *s->queries, &s->queries));
  for (size_t q = 0; q < n; q++)
    TRY(mol_exact_query_init(s->columns, s->batch, q, &s->gathered, floors[q], &s->queries[q]));
  find_groups(s);
  return ERR_OK;
}

/* Scanning -------------------- */

static void list_admitted(const uint64_t *words, size_t first, size_t n, struct chunk *out)
{
  out->first = first;
  out->n = n;
  out->n_admitted = 0;
  for (size_t w = 0; w < bits_words(n); w++) {
    for (uint64_t bits = words[first / 64 + w]; bits; bits &= bits - 1)
      out->admitted[out->n_admitted++] = (uint16_t)(w * 64 + (size_t)__builtin_ctzll(bits));
  }
}

static void add(struct mol_exact_query *e, const struct chunk *chunk, size_t i)
{
  uint32_t slot = (uint32_t)(chunk->first + chunk->admitted[i]);

  e->n_kept++;
  if (admit_slot(&e->scorer.result->admit, slot))
    mol_scorer_add(&e->scorer, slot);
}

/* Choose whether the query drops items by their sketches, and prepare for that. */
static void begin_query(const struct scan *s, struct mol_exact_query *e)
{
  e->n_kept = 0;
  e->is_testing = s->has_sketches && mol_scorer_threshold(&e->scorer) != -INFINITY && e->n_until_retry == 0;
  e->scorer.prefetches_each = e->is_testing; /* comparing takes time between two items */
  if (e->n_until_retry > 0)
    e->n_until_retry--;
  if (e->is_testing)
    mol_exact_query_start(e);
}

static void end_query(struct mol_exact_query *e, const struct chunk *chunk)
{
  if (e->is_testing && e->n_kept > chunk->n_admitted * KEPT_MAX_16TH / 16)
    e->n_until_retry = MOL_EXACT_CHUNKS_UNTIL_RETRY;
}

static void add_all(struct mol_exact_query *e, const struct chunk *chunk)
{
  for (size_t i = 0; i < chunk->n_admitted; i++)
    add(e, chunk, i);
}

static void search_blocks(const struct scan *s, struct mol_exact_query *e, const struct chunk *chunk)
{
  const struct mol_columns *c = s->columns;
  uint16_t masks[CHUNK_BLOCKS];

  s->batch->kernels->mol_any(&e->sketch.rows, c->model->shape.n_item_components, mol_sketch_block_at(c, chunk->first),
                             (chunk->n + SKETCH_BLOCK_ITEMS - 1) / SKETCH_BLOCK_ITEMS, e->starts, masks);
  for (size_t i = 0; i < chunk->n_admitted; i++) {
    size_t at = chunk->admitted[i];
    if (masks[at / SKETCH_BLOCK_ITEMS] >> at % SKETCH_BLOCK_ITEMS & 1)
      add(e, chunk, i);
  }
}

/* Compare the members of a group that test with n <= MOL_LANES admitted items, from the i-th. */
static void search_tile(struct scan *s, const struct filter_group *group, const struct chunk *chunk, size_t i, size_t n)
{
  const uint8_t *tile = mol_rows_tile(&s->rows, chunk->admitted + i, n);

  for (size_t g = group->first; g < group->first + group->n; g++) {
    struct mol_exact_query *e = &s->queries[s->order[g]];
    if (!e->is_testing)
      continue;
    uint32_t lanes =
        s->batch->kernels->mol_any_tile(&e->sketch.rows, s->columns->model->shape.n_item_components, tile, e->starts);
    for (lanes &= (uint32_t)((1ull << n) - 1); lanes; lanes &= lanes - 1)
      add(e, chunk, i + (size_t)__builtin_ctz(lanes));
  }
}

static void search_tiles(struct scan *s, const struct filter_group *group, const struct chunk *chunk)
{
  if (!s->has_rows)
    mol_rows_load(&s->rows, s->columns, chunk->first, chunk->n);
  s->has_rows = true;
  for (size_t i = 0; i < chunk->n_admitted; i += MOL_LANES)
    search_tile(s, group, chunk, i, size_min(chunk->n_admitted - i, MOL_LANES));
}

/* Each query of a group drops items by their sketches, and adds the others one by one. */
static void search_apart(struct scan *s, const struct filter_group *group, const struct chunk *chunk)
{
  bool has_blocks = s->batch->n < ROWS_PAY_AT || chunk->n_admitted * 2 >= chunk->n, is_testing = false;

  for (size_t g = group->first; g < group->first + group->n; g++) {
    struct mol_exact_query *e = &s->queries[s->order[g]];
    begin_query(s, e);
    if (!e->is_testing)
      add_all(e, chunk);
    else if (has_blocks)
      search_blocks(s, e, chunk);
    is_testing |= e->is_testing;
  }
  if (is_testing && !has_blocks)
    search_tiles(s, group, chunk);
  for (size_t g = group->first; g < group->first + group->n; g++)
    end_query(&s->queries[s->order[g]], chunk);
}

/* Load the waiting tile for all queries of a group. The tile that was gathered becomes the waiting one. */
static void advance(struct scan *s, struct filter_group *group)
{
  struct mol_shared_tile *t = &s->tile;

  memcpy(t->slots, group->slots, group->n_slots * sizeof t->slots[0]);
  t->n = group->n_slots;
  mol_shared_tile_prefetch(s->columns, t);
  memcpy(t->slots, group->waiting, group->n_waiting * sizeof t->slots[0]);
  t->n = group->n_waiting;
  memcpy(group->waiting, group->slots, group->n_slots * sizeof group->slots[0]);
  group->n_waiting = group->n_slots;
  group->n_slots = 0;
  if (t->n == 0)
    return;
  mol_shared_tile_load(s->columns, s->batch->kernels, t);
  for (size_t g = group->first; g < group->first + group->n; g++) {
    struct mol_exact_query *e = &s->queries[s->order[g]];
    mol_shared_tile_search(t, &e->scorer, mol_exact_query_use(e, t->n, true));
  }
}

/* The queries of a group look at each item together. */
static void search_together(struct scan *s, struct filter_group *group, const struct chunk *chunk)
{
  for (size_t i = 0; i < chunk->n_admitted; i++) {
    group->slots[group->n_slots++] = (uint32_t)(chunk->first + chunk->admitted[i]);
    if (group->n_slots == MOL_LANES)
      advance(s, group);
  }
}

static void search_group(struct scan *s, struct filter_group *group, const struct chunk *chunk)
{
  if (group->n >= MOL_SHARING_MIN)
    search_together(s, group, chunk);
  else
    search_apart(s, group, chunk);
}

/* Search the tiles that wait. */
static void flush(struct scan *s)
{
  for (size_t g = 0; g < s->n_groups; g++) {
    advance(s, &s->groups[g]);
    advance(s, &s->groups[g]);
  }
}

static void search_chunk(struct scan *s, size_t first)
{
  struct chunk chunk;

  s->has_rows = false;
  for (size_t g = 0; g < s->n_groups; g++) {
    list_admitted(s->groups[g].words, first, size_min(s->batch->n_slots - first, CHUNK), &chunk);
    if (chunk.n_admitted > 0)
      search_group(s, &s->groups[g], &chunk);
  }
}

err_t mol_exact_scan_admitted(const struct mol_columns *c, struct search_batch *batch, size_t job, const float *floors)
{
  struct scan s = { .columns = c, .batch = batch, .has_sketches = do_sketches_pay(batch) };
  size_t n_chunks = (batch->n_slots + CHUNK - 1) / CHUNK;
  size_t n_each = batch->n < CLAIM_CHUNKS ? CLAIM_CHUNKS / batch->n : 1;
  struct share_steps steps;

  TRY(init(&s, floors));
  while (mol_exact_query_claim(s.queries, batch, job, n_chunks, n_each, &steps)) {
    mol_screening_begin(batch->kernels);
    for (size_t i = steps.first; i < steps.end; i++)
      search_chunk(&s, i * CHUNK);
    mol_screening_end(batch->kernels);
  }
  mol_screening_begin(batch->kernels);
  flush(&s);
  mol_exact_query_finish(s.queries, batch);
  mol_screening_end(batch->kernels);
  return ERR_OK;
}
