/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a search on the device (funnel.h): sizes, floors, hits, and the second search of a query whose lists
 * overflowed. */
#include "engine/cuda/funnel.h"

#include <assert.h>
#include <math.h>

#include "base/progress.h"
#include "base/size.h"
#include "engine/cuda/funnel_filters.h"
#include "engine/search/receipt.h"

enum {
  LIST_USUAL = 16384,  /* least capacity of a list */
  LIST_RANKS = 8,      /* ... and at least this many times the rank */
  HITS_MORE = 256,     /* room for ties among the returned hits */
  TILES_PER_RANK = 16, /* tiles sampled for a floor, at least, per requested item */
  SORTED_LEAST = 512,  /* hits of a group that are sorted on the device: for fewer, its start takes longer */
  FEW_SHARE = 8,       /* a query admits few items if they are at most this part of all, and fit into a usual list */
};

/* Scratch bytes of a list entry: slot and score; with refine, the same for the entries that are left, and one float
 * for the similarity's use. */
enum { ENTRY_BYTES = 8, ENTRY_BYTES_REFINED = 20 };

static size_t rank_of(const struct search_batch *batch, size_t q)
{
  return batch->results[q].topk.k + batch->results[q].admit.n_excluded;
}

size_t funnel_max_rank(const struct search_batch *batch)
{
  size_t most = 1;

  for (size_t q = 0; q < batch->n; q++)
    most = rank_of(batch, q) > most ? rank_of(batch, q) : most;
  return most;
}

bool funnel_admits_few(const struct admit *admit, uint64_t n_items)
{
  uint64_t n = admit->n_admitted + admit->n_excluded; /* excluded items are listed too */

  return admit_leaves_out(admit, n_items) && n <= LIST_USUAL && n * FEW_SHARE <= n_items;
}

err_t funnel_no_floor(const struct funnel *f, struct funnel_group *group)
{
  (void)f;
  (void)group;
  return ERR_OK;
}

err_t funnel_append_admitted(const struct funnel *f, const struct funnel_group *group, struct slot_range range,
                             const float *floors)
{
  (void)floors;
  return admitted_append(f->batch->worker->stream, &group->admitted, range.first, range.n, &group->lists);
}

/* Sizes of a search. */
struct plan {
  size_t list_capacity, hits_capacity; /* per query */
  size_t n_together;                   /* queries that fit into the worker's memory at once */
};

static struct plan plan_search(const struct funnel *f)
{
  const struct device_worker *w = f->batch->worker;
  size_t rank = funnel_max_rank(f->batch), tail = 64 * 1024; /* for small arrays and alignment */
  struct plan plan = { .hits_capacity = size_min(rank + HITS_MORE, f->batch->n_slots) };

  plan.list_capacity = rank * LIST_RANKS > LIST_USUAL ? rank * LIST_RANKS : LIST_USUAL;
  plan.list_capacity = f->n_candidates > plan.list_capacity ? f->n_candidates : plan.list_capacity;
  plan.list_capacity = size_min(plan.list_capacity, f->batch->n_slots);
  size_t entry = f->ops->refine ? ENTRY_BYTES_REFINED : ENTRY_BYTES;
  size_t scratch = plan.list_capacity * entry + funnel_n_tiles(f->batch) * sizeof(float) +
                   (f->ops->scratch_bytes ? f->ops->scratch_bytes(f) : 0) + 1024;
  size_t inputs = f->ops->query_bytes(f) + funnel_filter_bytes(f->batch) + sizeof(uint64_t *) + 1024;
  size_t outputs = plan.hits_capacity * 8 + 1024;
  plan.n_together = size_min((w->scratch_bytes - tail) / scratch, (DEVICE_MIRROR_BYTES - tail) / inputs);
  plan.n_together = size_min(plan.n_together, (DEVICE_MIRROR_BYTES - tail) / outputs);
  plan.n_together =
      size_min(plan.n_together, funnel_n_filters(f->batch) > DEVICE_WORDS_MAX ? DEVICE_WORDS_MAX : f->batch->n);
  return plan;
}

err_t funnel_lists(struct device_worker *w, size_t n_lists, size_t capacity, struct device_lists *out)
{
  *out = (struct device_lists){ .n_lists = n_lists, .capacity = capacity };
  TRY(device_worker_array(w, n_lists, sizeof *out->n, &out->n));
  TRY(device_worker_array(w, n_lists * capacity, sizeof *out->slots, &out->slots));
  return device_worker_array(w, n_lists * capacity, sizeof *out->scores, &out->scores);
}

/* The stride of the tiles sampled for a floor. If the floor is the r-th largest maximum of t tiles out of T, about
 * r T / t items reach it. A list should have room for four times as many. */
static size_t stride_of(const struct funnel *f, size_t list_capacity)
{
  size_t n_all = funnel_n_tiles(f->batch), rank = funnel_max_rank(f->batch);
  size_t n_tiles = size_max(size_max(TILES_PER_RANK * rank, f->n_sampled), 4 * rank * n_all / list_capacity);

  return n_all > n_tiles ? n_all / n_tiles : 1;
}

/* Find floors from the maxima of sampled tiles, unless append does. */
static err_t find_floors(const struct funnel *f, struct funnel_group *group)
{
  struct device_worker *w = f->batch->worker;
  size_t n_all = funnel_n_tiles(f->batch), stride = stride_of(f, group->lists.capacity);
  size_t n_tiles = (n_all + stride - 1) / stride;
  float *maxima;

  TRY(device_worker_array(w, group->n * n_tiles, sizeof *maxima, &maxima));
  TRY(f->ops->maxima(f, group, stride, n_tiles, maxima));
  group->maxima = maxima;
  group->n_maxima = n_tiles;
  if (f->ops->finds_floors)
    return ERR_OK;
  return lists_threshold_of(w->stream, maxima, group->n, n_tiles, (struct lists_ranks){ group->ranks, 0 },
                            group->floors);
}

err_t funnel_upload_excluded(const struct funnel *f, const struct funnel_group *group, struct candidates_excluded *out)
{
  struct device_worker *w = funnel_worker(f);
  uint32_t *firsts, *slots, n = 0;
  void *device;

  *out = (struct candidates_excluded){ NULL, NULL };
  TRY(region_array(f->batch->scratch, group->n + 1, sizeof *firsts, &firsts));
  for (size_t q = 0; q < group->n; q++) {
    firsts[q] = n;
    n += (uint32_t)f->batch->results[group->first + q].admit.n_excluded;
  }
  firsts[group->n] = n;
  if (n == 0)
    return ERR_OK;
  TRY(region_array(f->batch->scratch, n, sizeof *slots, &slots));
  for (size_t q = 0; q < group->n; q++) {
    const struct admit *admit = &f->batch->results[group->first + q].admit;
    if (admit->n_excluded > 0)
      memcpy(slots + firsts[q], admit->excluded, admit->n_excluded * sizeof *slots);
  }
  TRY(device_worker_upload(w, firsts, group->n + 1, sizeof *firsts, &device));
  out->firsts = device;
  TRY(device_worker_upload(w, slots, n, sizeof *slots, &device));
  out->slots = device;
  return ERR_OK;
}

err_t funnel_upload_ranks(const struct funnel *f, struct funnel_group *group)
{
  struct device_worker *w = f->batch->worker;
  uint32_t *ks, *n_excluded, *ranks, n_all = 0;

  TRY(device_worker_input(w, group->n, sizeof *ks, &ks, &group->ks));
  TRY(device_worker_input(w, group->n, sizeof *n_excluded, &n_excluded, &group->n_excluded));
  TRY(device_worker_input(w, group->n, sizeof *ranks, &ranks, &group->ranks));
  for (size_t q = 0; q < group->n; q++) {
    const struct search_result *result = &f->batch->results[group->first + q];
    ks[q] = (uint32_t)result->topk.k;
    n_excluded[q] = (uint32_t)result->admit.n_excluded;
    ranks[q] = (uint32_t)rank_of(f->batch, group->first + q);
    n_all += n_excluded[q];
  }
  if (n_all == 0)
    group->n_excluded = NULL;
  return device_worker_array(w, group->n, sizeof *group->floors, &group->floors);
}

/* Send the group's inputs, and make the words that the device makes. */
static err_t send_inputs(const struct funnel *f, const struct funnel_group *group)
{
  TRY(device_worker_send(f->batch->worker));
  return group->programs.n > 0 ? device_programs_run(&group->programs) : ERR_OK;
}

/* The hits that the queries of a group ask for. */
static size_t n_hits_of(const struct funnel *f, const struct funnel_group *group)
{
  size_t n = 0;

  for (size_t q = 0; q < group->n; q++)
    n += f->batch->results[group->first + q].topk.k;
  return n;
}

/* Score what is left in the lists, and copy to the hits what reaches the last threshold. */
static err_t copy_hits(const struct funnel *f, const struct funnel_group *group)
{
  struct device_stream *stream = funnel_worker(f)->stream;

  if (f->ops->hits)
    return f->ops->hits(f, group);
  if (f->ops->score)
    TRY(f->ops->score(f, group, &group->scored));
  TRY(lists_threshold(stream, &group->scored, (struct lists_ranks){ group->ranks, 0 }, group->thresholds));
  return lists_keep(stream, &group->scored, group->thresholds, &group->hits);
}

/* Run the steps from floors to hits, all on the device. */
static err_t find_hits(const struct funnel *f, struct funnel_group *group)
{
  struct device_worker *w = f->batch->worker;
  struct slot_range all = { 0, f->batch->n_slots };

  if (f->ops->floor)
    TRY(f->ops->floor(f, group));
  else
    TRY(find_floors(f, group));
  TRY(f->ops->append(f, group, all, group->floors));
  if (f->ops->refine) {
    TRY(f->ops->refine(f, group));
    TRY(lists_keep(w->stream, &group->lists, group->floors, &group->scored));
  }
  TRY(copy_hits(f, group));
  return n_hits_of(f, group) < SORTED_LEAST ? ERR_OK : lists_sort(w->stream, &group->hits);
}

/* A group's outputs on the host. */
struct returned {
  const uint32_t *n_listed; /* [n] */
  const uint32_t *n_scored; /* [n] */
  const uint32_t *n_hits;   /* [n] */
  const uint32_t *slots;    /* [n][capacity] */
  const float *scores;
  const float *thresholds; /* [n] */
};

/* Allocate what f->ops->hits writes, and the lengths of lists. */
static err_t open_direct_outputs(const struct funnel *f, struct funnel_group *group, struct returned *out)
{
  struct device_worker *w = f->batch->worker;
  size_t n = group->n, n_entries = n * group->hits.capacity;

  assert(!f->ops->refine); /* else more lists would have lengths */
  group->all = (struct device_lists){ .n_lists = n };
  TRY(device_worker_array(w, n, sizeof *group->all.n, &group->all.n));
  TRY(device_worker_direct_output(w, n, sizeof *group->n_listed, &group->n_listed));
  TRY(device_worker_direct_output(w, n, sizeof *group->hits.n, &group->hits.n));
  TRY(device_worker_direct_output(w, n, sizeof *group->thresholds, &group->thresholds));
  TRY(device_worker_direct_output(w, n_entries, sizeof *group->hits.slots, &group->hits.slots));
  TRY(device_worker_direct_output(w, n_entries, sizeof *group->hits.scores, &group->hits.scores));
  group->lists.n = group->all.n;
  *out = (struct returned){ .n_listed = group->n_listed,
                            .n_scored = group->n_listed,
                            .n_hits = group->hits.n,
                            .slots = group->hits.slots,
                            .scores = group->hits.scores,
                            .thresholds = group->thresholds };
  return ERR_OK;
}

/* Allocate hits and the lengths of lists, all of which are copied to the host. */
static err_t open_outputs(const struct funnel *f, struct funnel_group *group, struct returned *out)
{
  struct device_worker *w = f->batch->worker;
  size_t n = group->n, n_entries = n * group->hits.capacity;

  group->all = (struct device_lists){ .n_lists = 3 * n };
  TRY(device_worker_output(w, 3 * n, sizeof *group->all.n, &group->all.n, &out->n_listed));
  TRY(device_worker_output(w, n, sizeof *out->thresholds, &group->thresholds, &out->thresholds));
  TRY(device_worker_output(w, n_entries, sizeof *out->slots, &group->hits.slots, &out->slots));
  TRY(device_worker_output(w, n_entries, sizeof *out->scores, &group->hits.scores, &out->scores));
  group->lists.n = group->all.n;
  group->hits.n = group->all.n + 2 * n;
  out->n_scored = f->ops->refine ? out->n_listed + n : out->n_listed;
  out->n_hits = out->n_listed + 2 * n;
  return ERR_OK;
}

/* Does f->ops->hits write them to the host? Not where they are sorted after it. */
static bool is_direct(const struct funnel *f, const struct funnel_group *group)
{
  return f->ops->hits && n_hits_of(f, group) < SORTED_LEAST;
}

/* Allocate a group's lists and hits, empty. */
static err_t open_lists(const struct funnel *f, const struct plan *plan, struct funnel_group *group,
                        struct returned *out)
{
  struct device_worker *w = f->batch->worker;
  size_t n = group->n;

  TRY(funnel_lists(w, n, plan->list_capacity, &group->lists));
  group->hits = (struct device_lists){ .n_lists = n, .capacity = plan->hits_capacity };
  group->n_listed = NULL;
  TRY(is_direct(f, group) ? open_direct_outputs(f, group, out) : open_outputs(f, group, out));
  group->scored = group->lists;
  if (f->ops->refine) {
    TRY(funnel_lists(w, n, plan->list_capacity, &group->scored));
    group->scored.n = group->all.n + n;
  }
  return f->ops->empties_lists ? ERR_OK : lists_clear(w->stream, &group->all);
}

/* Is a slot that the device has found admitted? It knows words, but not excluded slots. */
static bool is_admitted(const struct admit *admit, uint32_t slot)
{
  return admit->program ? !admit_excludes(admit, slot) : admit_slot(admit, slot);
}

/* Offer hits, the worst first if they are sorted: so they are a heap as they come, and are only reversed at the end. */
static void offer(struct search_result *result, const uint32_t *slots, const float *scores, size_t n)
{
  for (size_t i = n; i-- > 0;) {
    if (scores[i] >= topk_threshold(&result->topk) && is_admitted(&result->admit, slots[i]))
      topk_push(&result->topk, scores[i], slots[i]);
  }
}

/* Copy a range's list to the host piece by piece, and offer its entries to the result. */
static err_t offer_list(const struct funnel *f, const struct device_lists *list, size_t n, struct search_result *result)
{
  enum { PIECE = 1 << 16 };
  struct device_worker *w = f->batch->worker;
  size_t outputs_used = w->outputs.used;
  uint32_t *slots;
  float *scores;
  void *unused;

  TRY(device_worker_output(w, PIECE, sizeof *slots, &unused, &slots));
  TRY(device_worker_output(w, PIECE, sizeof *scores, &unused, &scores));
  for (size_t first = 0; first < n; first += PIECE) {
    size_t n_piece = size_min(n - first, PIECE);
    TRY(device_copy_out(w->stream, slots, list->slots + first, n_piece * sizeof *slots));
    TRY(device_copy_out(w->stream, scores, list->scores + first, n_piece * sizeof *scores));
    TRY(device_worker_wait(w));
    offer(result, slots, scores, n_piece);
  }
  w->outputs.used = outputs_used;
  return ERR_OK;
}

/* Search one range of slots. *n_listed is the number of items that reach the floor; the list has all of them unless it
 * overflowed. */
static err_t search_range(const struct funnel *f, struct funnel_group *one, struct slot_range range, float floor,
                          uint32_t *n_listed)
{
  struct device_worker *w = f->batch->worker;
  size_t inputs_used = w->inputs.used, outputs_used = w->outputs.used, scratch_used = w->scratch_used;
  const uint32_t *n;
  float *floors;

  TRY(device_worker_input(w, 1, sizeof *floors, &floors, &one->floors));
  TRY(device_worker_output(w, 1, sizeof *n, &one->lists.n, &n));
  *floors = floor;
  TRY(device_worker_send(w));
  TRY(lists_clear(w->stream, &one->lists));
  TRY((f->ops->exhaust ? f->ops->exhaust : f->ops->append)(f, one, range, one->floors));
  TRY(device_worker_receive(w));
  *n_listed = *n;
  if (*n_listed <= one->lists.capacity && f->ops->score) {
    TRY(f->ops->score(f, one, &one->lists));
    TRY(device_worker_wait(w));
  }
  w->inputs.used = w->inputs_sent = inputs_used;
  w->outputs.used = outputs_used;
  w->scratch_used = scratch_used;
  return ERR_OK;
}

/* Search one query again, range by range. A range whose list overflows is halved; when less than half of a list is
 * used, the next range is twice as long. floor: at most the score of the query's last hit. */
static err_t search_by_ranges(const struct funnel *f, size_t q, float floor)
{
  struct device_worker *w = f->batch->worker;
  struct search_result *result = &f->batch->results[q];
  struct funnel_group one = { .first = q, .n = 1 };
  size_t n_slots = f->batch->n_slots, span = n_slots;

  device_worker_reset(w);
  result->counts.scored = 0;
  TRY(funnel_upload_ranks(f, &one));
  TRY(funnel_upload_filters(f, &one));
  TRY(f->ops->upload(f, &one));
  TRY(send_inputs(f, &one));
  TRY(funnel_lists(w, 1, size_min(n_slots, LIST_USUAL), &one.lists));
  for (size_t first = 0; first < n_slots;) {
    struct slot_range range = { first, size_min(span, n_slots - first) };
    uint32_t n_listed;
    progress_note();
    TRY(search_range(f, &one, range, fmaxf(topk_threshold(&result->topk), floor), &n_listed));
    if (n_listed > one.lists.capacity) {
      span = (range.n / 2 + DEVICE_TILE_ITEMS - 1) / DEVICE_TILE_ITEMS * DEVICE_TILE_ITEMS;
      continue;
    }
    TRY(offer_list(f, &one.lists, n_listed, result));
    result->counts.scored += n_listed;
    first += range.n;
    if (n_listed < one.lists.capacity / 2 && span < n_slots)
      span *= 2;
  }
  funnel_count_admitted(f, &one);
  return ERR_OK;
}

/* How a query's first search ended. */
struct outcome {
  bool has_overflowed;
  float floor; /* its rank-th best score so far */
};

static err_t search_group(const struct funnel *f, const struct plan *plan, struct funnel_group *group,
                          struct outcome *outcomes)
{
  struct device_worker *w = f->batch->worker;
  struct returned returned;

  device_worker_reset(w);
  TRY(funnel_upload_ranks(f, group));
  TRY(funnel_upload_filters(f, group));
  TRY(f->ops->upload(f, group));
  TRY(send_inputs(f, group));
  TRY(open_lists(f, plan, group, &returned));
  TRY(find_hits(f, group));
  TRY(device_worker_receive(w));
  funnel_count_admitted(f, group);
  if (f->ops->collect)
    f->ops->collect(f, group);
  for (size_t q = 0; q < group->n; q++) {
    struct search_result *result = &f->batch->results[group->first + q];
    outcomes[q].has_overflowed =
        returned.n_listed[q] > group->lists.capacity || returned.n_hits[q] > group->hits.capacity;
    outcomes[q].floor = returned.thresholds[q];
    result->counts.scored = returned.n_scored[q];
    if (!outcomes[q].has_overflowed)
      offer(result, returned.slots + q * group->hits.capacity, returned.scores + q * group->hits.capacity,
            returned.n_hits[q]);
  }
  return ERR_OK;
}

err_t funnel_search(struct funnel *f)
{
  struct search_batch *batch = f->batch;
  struct plan plan = plan_search(f);
  struct outcome *outcomes;

  TRY(region_array(batch->scratch, batch->n, sizeof *outcomes, &outcomes));
  for (size_t q = 0; q < batch->n; q++)
    outcomes[q] = (struct outcome){ .has_overflowed = true, .floor = -INFINITY };
  for (size_t q = 0; q < batch->n && batch->n_items > 0 && plan.n_together > 0; q += plan.n_together) {
    struct funnel_group group = { .first = q, .n = size_min(plan.n_together, batch->n - q) };
    TRY(search_group(f, &plan, &group, outcomes + q));
  }
  for (size_t q = 0; q < batch->n; q++) {
    bool is_exact = batch->n_items > 0 && outcomes[q].has_overflowed;
    if (is_exact)
      TRY(search_by_ranges(f, q, outcomes[q].floor));
    if (f->ops->receipt)
      f->ops->receipt(f, q, is_exact);
    else
      receipt_exact(&batch->results[q], batch->n_items);
  }
  return ERR_OK;
}
