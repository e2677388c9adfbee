/* SPDX-License-Identifier: Apache-2.0 */
/* Method `exact` over vectors: bounds from the sketches select the items to score (vector_candidates.h).
 *
 * Queries that admit the same items are a group. Groups that admit many items of a chunk scan all of it together. For
 * the other groups the admitted items are listed, and scanned when there are enough of them: of the others, nothing is
 * read.
 */
#include "base/size.h"
#include "engine/search/receipt.h"
#include "engine/search/share.h"
#include "engine/vector/vector_candidates.h"
#include "engine/vector/vector_methods.h"

enum {
  CLAIM_CHUNKS = 8,     /* chunks, times queries that admit all items, that take some 50 us: a claim has as many */
  CLAIM_CHUNKS_MIN = 4, /* so that most chunks are prefetched while the one before them is scanned */
  CLAIM_CHUNKS_MAX = 256,
  ROWS_AHEAD = 8,   /* of the next chunk, prefetched for a single query: the kernel prefetches the others */
  LISTED_MIN = 128, /* items that are worth a scan of their own */
  LISTED_MAX = 2 * VECTOR_CHUNK_ITEMS,
  SHORT_BYTES = 256,      /* shorter sketches are prefetched when they are listed: a scan is too fast for it */
  JUMP_BYTES = 600,       /* of a scan take as long as listing an item, and jumping to it, */
  SHORT_JUMP_BYTES = 300, /* or to a short sketch */
  ARRANGED_QUERIES = 4,   /* queries for which arranging sketches pays */
  ARRANGED_SPEED = 2,     /* each of them takes half the time of a query alone */
};

/* Queries that admit the same items, except for those that each excludes. */
struct exact_group {
  struct vector_candidates *queries; /* [n] */
  size_t n;
  const struct admit *admit; /* of the first query */
  uint32_t *listed;          /* [LISTED_MAX + LIST_PAD]: admitted slots that are to be scanned */
  size_t n_listed;
  bool shares_chunk; /* the current chunk is scanned as a whole */
};

struct exact_search {
  const struct vector_columns *columns;
  struct search_batch *batch;
  struct vector_candidates *queries; /* [batch->n], by group */
  struct exact_group *groups;
  size_t n_groups;
  struct vector_chunks chunks;
  struct vector_sketch_room room;
  struct vector_candidates **sharing; /* [batch->n]: the queries that scan the same set */
  size_t n_sharing;
};

/* Groups -------------------- */

/* Make a group of the queries that admit what query `first` admits. */
static err_t init_group(struct exact_search *s, size_t first, bool *has_group, struct exact_group *out)
{
  struct search_result *results = s->batch->results;

  out->admit = &results[first].admit;
  for (size_t q = first; q < s->batch->n; q++) {
    if (has_group[q] || results[q].admit.words != out->admit->words)
      continue;
    has_group[q] = true;
    TRY(vector_candidates_init(s->columns, s->batch, q, &out->queries[out->n++]));
  }
  if (!out->admit->admits_all)
    TRY(region_array(s->batch->scratch, LISTED_MAX + LIST_PAD, sizeof *out->listed, &out->listed));
  return ERR_OK;
}

static err_t init_groups(struct exact_search *s)
{
  struct region *scratch = s->batch->scratch;
  size_t n = s->batch->n, n_done = 0;
  bool *has_group;

  TRY(region_array(scratch, n, sizeof *has_group, &has_group));
  TRY(region_array(scratch, n, sizeof *s->queries, &s->queries));
  TRY(region_array(scratch, n, sizeof *s->groups, &s->groups));
  TRY(region_array(scratch, n, sizeof *s->sharing, &s->sharing));
  for (size_t q = 0; q < n; q++) {
    if (has_group[q])
      continue;
    struct exact_group *group = &s->groups[s->n_groups++];
    group->queries = s->queries + n_done;
    TRY(init_group(s, q, has_group, group));
    n_done += group->n;
  }
  return ERR_OK;
}

/* Scanning -------------------- */

/* Prefetch what queries `from` to `to` of those that share a set have to prefetch of the next chunk. */
static void prefetch_part(const struct exact_search *s, const struct vector_chunk *next, size_t from, size_t to)
{
  size_t first = next->n * from / s->n_sharing, end = next->n * to / s->n_sharing;

  vector_sketch_prefetch(&s->columns->sketch, next->first + first, end - first);
}

/* Scan a set for one query after the other. The kernel prefetches all but the first sketches. */
static void scan_rows(struct exact_search *s, const struct vector_sketch_set *set, const struct vector_chunk *next)
{
  const struct vector_chunk first = { next->first, size_min(ROWS_AHEAD, next->n) };
  float bounds[VECTOR_CHUNK_ITEMS];

  for (size_t q = 0; q < s->n_sharing; q++) {
    prefetch_part(s, &first, q, q + 1);
    vector_sketch_bounds(set, &s->sharing[q]->query->sketch, s->batch->kernels, bounds);
    vector_candidates_take(s->sharing[q], set, bounds);
  }
}

/* Scan an arranged set for n of the queries that share it. */
static void scan_arranged(struct exact_search *s, const struct vector_sketch_set *set, size_t first, size_t n,
                          const struct vector_chunk *next)
{
  const struct vector_sketch_query *queries[VECTOR_SKETCH_QUERIES];
  float bounds[VECTOR_CHUNK_ITEMS];

  for (size_t q = 0; q < n; q++)
    queries[q] = &s->sharing[first + q]->query->sketch;
  vector_sketch_multiply(set, queries, n, s->batch->kernels, &s->room);
  for (size_t q = 0; q < n; q++) {
    prefetch_part(s, next, first + q, first + q + 1);
    vector_sketch_bounds_at(set, queries, q, s->batch->kernels, &s->room, bounds);
    vector_candidates_take(s->sharing[first + q], set, bounds);
  }
}

/* Scan a set for the queries that share it, and prefetch the next chunk. */
static void scan_set(struct exact_search *s, struct vector_sketch_set *set, const struct vector_chunk *next)
{
  if (s->n_sharing < ARRANGED_QUERIES)
    scan_rows(s, set, next);
  else {
    vector_sketch_set_arrange(set, s->batch->kernels, &s->room);
    for (size_t q = 0; q < s->n_sharing; q += VECTOR_SKETCH_QUERIES)
      scan_arranged(s, set, q, size_min(s->n_sharing - q, VECTOR_SKETCH_QUERIES), next);
  }
  s->n_sharing = 0;
}

static void share_set(struct exact_search *s, const struct exact_group *group)
{
  for (size_t q = 0; q < group->n; q++)
    s->sharing[s->n_sharing++] = &group->queries[q];
}

static void scan_listed(struct exact_search *s, struct exact_group *group)
{
  for (size_t at = 0; at < group->n_listed; at += s->chunks.n_items) {
    size_t n = size_min(group->n_listed - at, s->chunks.n_items);
    struct vector_sketch_set set = vector_sketch_set_listed(&s->columns->sketch, group->listed + at, n, &s->room);
    share_set(s, group);
    scan_set(s, &set, &(struct vector_chunk){ 0 });
  }
  group->n_listed = 0;
}

static size_t sketch_bytes(const struct exact_search *s)
{
  return s->columns->sketch.n_groups * SKETCH_GROUP;
}

static bool are_short(const struct exact_search *s)
{
  return sketch_bytes(s) < SHORT_BYTES;
}

/* List the admitted items of a chunk. Short sketches are prefetched here, and many are scanned at a time. */
static void list_chunk(struct exact_search *s, struct exact_group *group, const struct vector_chunk *chunk)
{
  uint32_t *listed = group->listed + group->n_listed;
  size_t n = s->batch->kernels->list_bits(group->admit->words + chunk->first / 64, bits_words(chunk->n),
                                          (uint32_t)chunk->first, listed);

  group->n_listed += n;
  if (are_short(s))
    vector_sketch_prefetch_listed(&s->columns->sketch, listed, n);
  if (group->n_listed >= (are_short(s) ? s->chunks.n_items : LISTED_MIN))
    scan_listed(s, group);
}

/* What an item costs a group that scans whole chunks, which all queries of the batch share, or lists its items: in
 * bytes that are read in that time. */
static size_t cost_shared(const struct exact_search *s, const struct exact_group *group)
{
  return group->n * sketch_bytes(s) / (s->batch->n < ARRANGED_QUERIES ? 1 : ARRANGED_SPEED);
}

static size_t cost_listed(const struct exact_search *s, const struct exact_group *group)
{
  size_t jump = are_short(s) ? SHORT_JUMP_BYTES : JUMP_BYTES, bytes = sketch_bytes(s);

  return jump + (group->n < ARRANGED_QUERIES ? group->n * bytes : bytes + group->n * bytes / ARRANGED_SPEED);
}

/* Does a group admit so many items of a chunk that all of them are scanned in less time? */
static bool admits_most(const struct exact_search *s, const struct exact_group *group, const struct vector_chunk *chunk)
{
  if (group->admit->admits_all)
    return true;
  size_t n_admitted = bits_count(group->admit->words + chunk->first / 64, bits_words(chunk->n));
  return n_admitted * cost_listed(s, group) > chunk->n * cost_shared(s, group);
}

/* Scan a chunk for the groups that admit most of it, then list its items for the others. */
static void scan_chunk(struct exact_search *s, const struct vector_chunk *chunk, const struct vector_chunk *next)
{
  struct vector_sketch_set set = vector_sketch_set_of(&s->columns->sketch, chunk->first, chunk->n);

  for (size_t g = 0; g < s->n_groups; g++) {
    s->groups[g].shares_chunk = admits_most(s, &s->groups[g], chunk);
    if (s->groups[g].shares_chunk)
      share_set(s, &s->groups[g]);
  }
  scan_set(s, &set, next);
  for (size_t g = 0; g < s->n_groups; g++) {
    if (!s->groups[g].shares_chunk)
      list_chunk(s, &s->groups[g], chunk);
  }
}

/* Claims -------------------- */

/* How many chunks are claimed at a time? */
static size_t chunks_of_claim(const struct search_batch *batch)
{
  uint64_t n_admitted = 1;

  for (size_t q = 0; q < batch->n; q++)
    n_admitted += batch->results[q].admit.n_admitted;
  size_t n = CLAIM_CHUNKS * batch->n_slots / n_admitted;
  return size_max(CLAIM_CHUNKS_MIN, size_min(n, CLAIM_CHUNKS_MAX));
}

/* Claim chunks after telling other members what this one knows. */
static bool claim_chunks(struct exact_search *s, size_t n_each, struct share_steps *steps)
{
  for (size_t q = 0; q < s->batch->n; q++)
    s->queries[q].result->floor = vector_candidates_threshold(&s->queries[q]);
  return share_claim(s->batch, 0, s->chunks.order.n, n_each, steps);
}

static void search_steps(struct exact_search *s, const struct share_steps *steps)
{
  for (size_t i = steps->first; i < steps->end; i++) {
    struct vector_chunk chunk = vector_chunk_at(&s->chunks, i), next = { 0 };
    if (i + 1 < steps->end)
      next = vector_chunk_at(&s->chunks, i + 1);
    scan_chunk(s, &chunk, &next);
  }
  for (size_t g = 0; g < s->n_groups; g++)
    scan_listed(s, &s->groups[g]);
}

err_t vector_search_exact(const struct columns *columns, struct search_batch *batch)
{
  struct exact_search s = { .columns = vector_columns_of(columns), .batch = batch };
  size_t n_each = chunks_of_claim(batch);
  struct share_steps steps;

  s.chunks = vector_chunks_of(s.columns, batch->n_slots);
  TRY(init_groups(&s));
  TRY(vector_sketch_room_init(&s.columns->sketch, s.chunks.n_items, batch->n >= ARRANGED_QUERIES, batch->scratch,
                              &s.room));
  while (claim_chunks(&s, n_each, &steps))
    search_steps(&s, &steps);
  for (size_t q = 0; q < batch->n; q++) {
    struct search_result *result = s.queries[q].result;
    vector_candidates_score(&s.queries[q]);
    result->counts.candidates = result->counts.scored;
    receipt_exact(result, batch->n_items);
  }
  return ERR_OK;
}
