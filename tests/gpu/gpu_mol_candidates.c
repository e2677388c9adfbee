/* SPDX-License-Identifier: Apache-2.0 */
/* The candidates of component pairs: whole lists, their ties, overflows and passes, compared with dot products computed
 * on the host. */
#include "tests/gpu/pairs_fixture.h"

enum { SCRATCH_TAIL = 8 * 1024 };

/* Return the n-th best dot product of a list's admitted items. */
static float nth_of(size_t q, size_t row, size_t m, uint32_t n)
{
  static float dots[ITEMS_MAX];
  size_t n_dots = 0;

  for (size_t slot = 0; slot < t.n_slots; slot++) {
    if (admit_slot(&t.results[q].admit, (uint32_t)slot))
      dots[n_dots++] = dot_at(row, m, slot);
  }
  qsort(dots, n_dots, sizeof *dots, falling);
  return n <= n_dots ? dots[n - 1] : -INFINITY;
}

/* Compute a query's expected candidates. Returns its nth_best. */
static float expect(size_t q, uint32_t n, uint8_t *is_candidate)
{
  size_t n_rows = shape()->n_query_components, n_lists = n_rows * shape()->n_item_components;
  float best = -INFINITY;

  memset(is_candidate, 0, ITEMS_MAX);
  for (size_t list = 0; list < n_lists; list++) {
    size_t row = q * n_rows + list % n_rows, m = list / n_rows;
    float nth = nth_of(q, row, m, n);
    best = fmaxf(best, nth);
    for (size_t slot = 0; slot < t.n_slots; slot++)
      is_candidate[slot] |= admit_slot(&t.results[q].admit, (uint32_t)slot) && dot_at(row, m, slot) >= nth;
  }
  return best;
}

struct answers {
  uint32_t *n, *slots, *has_overflowed; /* [n_queries], [n_queries][n_slots], [n_queries] */
  float *nth_best;
};

/* Allocate room for `capacity` candidates of each query and `more` queries. */
static void open_found(size_t capacity, size_t more, struct mol_pairs_found *out)
{
  device_worker_reset(t.worker);
  region_reset(&t.region);
  CHECK_OK(funnel_lists(t.worker, t.n_queries + more, capacity, &out->candidates));
  CHECK_OK(device_worker_array(t.worker, t.n_queries, sizeof *out->nth_best, &out->nth_best));
  CHECK_OK(device_worker_array(t.worker, t.n_queries, sizeof *out->has_overflowed, &out->has_overflowed));
  out->candidates.n_lists = t.n_queries;
}

static void find_into(uint32_t n_best, const struct mol_pairs_found *found)
{
  static const struct method method;
  struct search_batch batch = { .worker = t.worker,
                                .method = &method,
                                .n = t.n_queries,
                                .results = t.results,
                                .n_slots = t.n_slots,
                                .n_items = t.n_items,
                                .scratch = &t.region };
  struct funnel f = { .columns = &t.columns, .batch = &batch };
  struct funnel_group group = { .first = 0, .n = t.n_queries };

  CHECK_OK(funnel_upload_ranks(&f, &group));
  CHECK_OK(funnel_upload_excluded(&f, &group, &t.source.excluded));
  CHECK_OK(device_worker_send(t.worker));
  CHECK_OK(mol_pairs_cuda_candidates(&f, &group, &t.source, n_best, found));
}

static void find(uint32_t n_best, struct answers *out)
{
  struct mol_pairs_found found;
  struct device_stream *stream = t.worker->stream;

  open_found(t.n_slots, 0, &found);
  find_into(n_best, &found);
  CHECK_OK(device_copy_out(stream, out->n, found.candidates.n, t.n_queries * sizeof *out->n));
  CHECK_OK(device_copy_out(stream, out->nth_best, found.nth_best, t.n_queries * sizeof *out->nth_best));
  CHECK_OK(
      device_copy_out(stream, out->has_overflowed, found.has_overflowed, t.n_queries * sizeof *out->has_overflowed));
  CHECK_OK(device_wait(stream));
  for (size_t q = 0; q < t.n_queries; q++) /* beyond its length a list was never written */
    CHECK_OK(device_copy_out(stream, out->slots + q * t.n_slots, found.candidates.slots + q * t.n_slots,
                             out->n[q] * sizeof *out->slots));
  CHECK_OK(device_wait(stream));
}

static void check_query(size_t q, uint32_t n_best, const struct answers *a)
{
  static uint8_t is_candidate[ITEMS_MAX];
  float nth_best = expect(q, n_best, is_candidate);
  size_t n = 0;

  nth_best = n_best >= t.n_items ? -INFINITY : nth_best;
  CHECK(memcmp(&nth_best, &a->nth_best[q], sizeof nth_best) == 0, "query %zu: N-th best %.9g, not %.9g", q,
        (double)a->nth_best[q], (double)nth_best);
  for (size_t slot = 0; slot < t.n_slots; slot++)
    n += is_candidate[slot];
  CHECK(a->n[q] == n, "query %zu: %u candidates, not %zu", q, a->n[q], n);
  for (size_t i = 0; i < n; i++) {
    uint32_t slot = a->slots[q * t.n_slots + i];
    CHECK(slot < t.n_slots && is_candidate[slot], "query %zu: slot %u is no candidate, or listed twice", q, slot);
    is_candidate[slot] = 0;
  }
}

/* Check all queries. n_best 0: each query's own K. Returns the number of queries whose lists overflowed. */
static size_t check_answers(uint32_t n_best)
{
  size_t n = t.n_queries, n_overflowed = 0;
  struct answers a = { on_host(n, sizeof *a.n), on_host(n * t.n_slots, sizeof *a.slots),
                       on_host(n, sizeof *a.has_overflowed), on_host(n, sizeof *a.nth_best) };

  for (size_t q = 0; q < n; q++)
    t.results[q].topk.k = 1 + dice_below(&t.dice, 2 * t.n_items + 1);
  find(n_best, &a);
  for (size_t q = 0; q < n; q++) {
    n_overflowed += a.has_overflowed[q] != 0;
    size_t n_due = n_best ? n_best : t.results[q].topk.k;
    if (!a.has_overflowed[q] && (n_best || n_due < t.n_items))
      check_query(q, (uint32_t)n_due, &a);
  }
  device_free_host(&a.n);
  device_free_host(&a.slots);
  device_free_host(&a.has_overflowed);
  device_free_host(&a.nth_best);
  return n_overflowed;
}

static size_t least_scratch(uint32_t n_best)
{
  struct search_batch batch = {
    .worker = t.worker, .n = t.n_queries, .results = t.results, .n_slots = t.n_slots, .n_items = t.n_items
  };
  struct funnel f = { .columns = &t.columns, .batch = &batch };

  return t.n_queries * (mol_pairs_cuda_query_bytes(&f, n_best) + t.n_slots * 8 + 64) + SCRATCH_TAIL;
}

/* Check the candidates of a catalogue. Each call takes the next N. is_twice: check again with little scratch, which
 * takes many passes. */
static void check_candidates(const struct mol_shape *of, size_t n_slots, size_t n_queries, enum draw draw,
                             bool is_twice)
{
  static const uint32_t n_bests[] = { 1, 100, 5, 0, 4000 };
  static size_t turn;
  size_t all = t.worker->scratch_bytes, n_overflowed;
  uint32_t n_best = n_bests[turn++ % (sizeof n_bests / sizeof n_bests[0])];

  open_fixture(of, n_slots, n_queries, draw, n_slots % 2 ? 1 : 1 + dice_below(&t.dice, 4));
  upload();
  n_overflowed = check_answers(n_best);
  CHECK(n_overflowed == 0 || draw != DRAW_UNIFORM || of->component_dim == 1, /* with 1 number all are 1 or -1 */
        "lists of %zu of %zu queries overflowed", n_overflowed, n_queries);
  if (is_twice && n_best) {
    t.worker->scratch_bytes = least_scratch(n_best);
    CHECK(check_answers(n_best) == n_overflowed, "the number of overflowed queries differs");
    t.worker->scratch_bytes = all;
  }
  close_fixture();
}

/* More equal items than a list can keep: the overflow must be reported. */
static void check_overflow(void)
{
  static const struct mol_shape of = { 2, 2, 8, 1, 1.0f };

  open_fixture(&of, ITEMS_MAX, 3, DRAW_FEW, 1);
  for (size_t slot = 1; slot < t.n_slots; slot++) {
    memcpy(t.rows + slot * t.row_floats, t.rows, t.row_floats * sizeof *t.rows);
    derive(slot);
  }
  upload();
  CHECK(check_answers(1) == 3, "short lists did not overflow with %d equal items", ITEMS_MAX);
  CHECK(check_answers(ITEMS_MAX - 100) == 0, "long lists overflowed");
  close_fixture();
}

/* More candidates than there is room for: what is stored are candidates, and nothing lies behind the last list. n_best:
 * from lists, or all items. */
static void check_short_union(uint32_t n_best)
{
  enum { QUERIES = 3, ROOM = 10, ENTRIES = (QUERIES + 1) * ROOM };
  static uint8_t is_candidate[ITEMS_MAX];
  struct mol_pairs_found found;
  struct device_stream *stream = t.worker->stream;
  uint32_t *n = on_host(QUERIES, sizeof *n), *slots = on_host(ENTRIES, sizeof *slots);
  uint32_t *has_overflowed = on_host(QUERIES, sizeof *has_overflowed);

  open_fixture(&shapes[0], 300, QUERIES, DRAW_UNIFORM, 1);
  upload();
  open_found(ROOM, 1, &found);
  CHECK_OK(device_fill(stream, found.candidates.slots, 0xff, ENTRIES * sizeof *slots));
  find_into(n_best, &found);
  CHECK_OK(device_copy_out(stream, n, found.candidates.n, QUERIES * sizeof *n));
  CHECK_OK(device_copy_out(stream, slots, found.candidates.slots, ENTRIES * sizeof *slots));
  CHECK_OK(device_copy_out(stream, has_overflowed, found.has_overflowed, QUERIES * sizeof *has_overflowed));
  CHECK_OK(device_wait(stream));
  for (size_t q = 0; q < QUERIES; q++) {
    expect(q, n_best, is_candidate);
    CHECK(n[q] > ROOM && has_overflowed[q] == 1, "query %zu: %u candidates, but no overflow", q, n[q]);
    for (size_t i = 0; i < ROOM; i++) {
      uint32_t slot = slots[q * ROOM + i];
      CHECK(slot < t.n_slots && is_candidate[slot], "query %zu: slot %u is no candidate, or listed twice", q, slot);
      is_candidate[slot] = 0;
    }
  }
  for (size_t i = QUERIES * ROOM; i < ENTRIES; i++)
    CHECK(slots[i] == UINT32_MAX, "an entry lies behind the last list");
  close_fixture();
  device_free_host(&n);
  device_free_host(&slots);
  device_free_host(&has_overflowed);
}

int main(void)
{
  static const size_t sizes[] = { 0, 1, 2, 63, 64, 65, 67 };

  check_begin("gpu_mol_candidates");
  t.dice.state = dice_seed();
  CHECK_OK(device_worker_open(ITEMS_MAX, &t.worker));
  for (size_t s = 0, first = dice_below(&t.dice, N_DRAWS); s < N_SHAPES; s++) {
    for (size_t i = 0; i < check_size(N_DRAWS, 1); i++) {
      enum draw draw = (enum draw)((first + s + i) % N_DRAWS);
      check_candidates(&shapes[s], 100 + dice_below(&t.dice, 200), 1 + dice_below(&t.dice, 3), draw, s % 2 == draw % 2);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
      check_candidates(&shapes[s], sizes[i], i % 2 ? 1 : s % 3 ? 2 : 7, DRAW_UNIFORM, false);
    check_candidates(&shapes[s], ITEMS_MAX, s == 0 ? 7 : s == 4 ? 33 : 1, DRAW_UNIFORM, false);
  }
  check_overflow();
  check_short_union(20);
  check_short_union(300);
  device_worker_close(&t.worker);
  region_fini(&t.region);
  return check_end("gpu_mol_candidates");
}
