/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of component pairs: the bounds of the half-precision scan, and which entries are near the N-th best,
 * compared with dot products computed on the host. */
#include "kernels/cuda/mol_pair_lists.h"
#include "tests/gpu/pairs_fixture.h"

static struct mol_pairs_input input_of(void)
{
  struct mol_pairs_input input = { .items = t.columns.rows,
                                   .halves = t.source.halves,
                                   .n_item_components = shape()->n_item_components,
                                   .component_dim = shape()->component_dim,
                                   .n_components = shape()->n_item_components,
                                   .n_blocks = t.worker->n_processors };

  input.rows.n = t.n_queries * shape()->n_query_components;
  input.rows.vectors = t.source.query_components;
  CHECK_OK(
      device_worker_array(t.worker, input.rows.n, 2 * mol_pairs_half_dim(input.component_dim), &input.rows.halves));
  CHECK_OK(device_worker_array(t.worker, input.rows.n, sizeof *input.rows.margins, &input.rows.margins));
  CHECK_OK(mol_pairs_prepare(t.worker->stream, &input.rows, input.component_dim));
  return input;
}

static float scale = 1.0f; /* of the queries */

/* The largest distance allowed between a bound and the dot product of a row that is compared with `floor` (0 if with
 * none): twice the expected one, so that loose bounds fail. */
static float looseness(size_t row, float floor)
{
  const float *f = t.queries + row * shape()->component_dim;
  double square = 0;

  for (size_t k = 0; k < shape()->component_dim; k++)
    square += (double)f[k] * (double)f[k];
  double n_steps = (double)mol_pairs_half_dim(shape()->component_dim) / 16, size = sqrt(square);
  if (shape()->component_dim > MOL_PAIRS_DIM_MAX)
    n_steps = 0;
  double of_floor = isfinite(floor) ? fabs((double)floor) : 0;
  return (float)(2 * (size + of_floor) * (n_steps + 1) * 0x1p-10 + size * 0x1p-9) + 1e-5f;
}

static void check_maxima(const struct mol_pairs_input *input, size_t stride)
{
  size_t n_all = (t.n_slots + 63) / 64, n_tiles = (n_all + stride - 1) / stride;
  size_t n_sets = 1 + dice_below(&t.dice, n_tiles), n_rows = input->rows.n, n = n_rows * input->n_components * n_sets;
  float *maxima, *found = on_host(n, sizeof *found);

  CHECK_OK(device_worker_array(t.worker, n, sizeof *maxima, &maxima));
  CHECK_OK(mol_pairs_maxima(t.worker->stream, input, t.n_slots, stride, n_tiles, n_sets, maxima));
  CHECK_OK(device_copy_out(t.worker->stream, found, maxima, n * sizeof *found));
  CHECK_OK(device_wait(t.worker->stream));
  for (size_t i = 0; i < n; i++) {
    size_t set = i % n_sets, list = i / n_sets, row = list % n_rows, m = input->first_component + list / n_rows;
    float best = -INFINITY;
    for (size_t slot = 0; slot < t.n_slots; slot++) {
      size_t tile = slot / 64;
      if (t.present[slot] && tile % stride == 0 && tile / stride % n_sets == set)
        best = fmaxf(best, dot_at(row, m, slot));
    }
    CHECK(found[i] <= best, "list %zu, set %zu: %.9g is above %.9g", list, set, (double)found[i], (double)best);
    CHECK(found[i] == best || found[i] >= best - looseness(row, 0), "list %zu, set %zu: %.9g is far from %.9g", list, set,
          (double)found[i], (double)best);
  }
  device_free_host(&found);
}

/* Use some item's exact dot product as each floor. That item is the first to be lost if a bound is too low. */
static void draw_floors(const struct mol_pairs_input *input, float *floors)
{
  for (size_t list = 0; list < input->rows.n * input->n_components; list++) {
    size_t slot = dice_below(&t.dice, t.n_slots);
    floors[list] = dot_at(list % input->rows.n, input->first_component + list / input->rows.n, slot);
    if (dice_below(&t.dice, 32) == 0)
      floors[list] = dice_below(&t.dice, 2) ? -INFINITY : -floors[list];
  }
}

static void check_list(const struct mol_pairs_input *input, size_t list, float floor, const uint32_t *slots,
                       const float *scores, uint32_t n)
{
  static uint8_t is_in[ITEMS_MAX];
  size_t row = list % input->rows.n, m = input->first_component + list / input->rows.n;

  memset(is_in, 0, sizeof is_in);
  for (uint32_t i = 0; i < n; i++) {
    CHECK(slots[i] < t.n_slots && t.present[slots[i]] && !is_in[slots[i]], "list %zu has slot %u", list, slots[i]);
    CHECK(!(fabsf(scores[i] - dot_at(row, m, slots[i])) > looseness(row, floor)) && (scores[i] == scores[i] || floor < -1e9f),
          "list %zu: %.9g is not near %.9g", list, (double)scores[i], (double)dot_at(row, m, slots[i]));
    is_in[slots[i]] = 1;
  }
  for (size_t slot = 0; slot < t.n_slots; slot++) {
    float dot = dot_at(row, m, slot);
    CHECK(is_in[slot] || !t.present[slot] || dot < floor, "list %zu lost slot %zu, %.9g, floor %.9g", list, slot,
          (double)dot, (double)floor);
    CHECK(!is_in[slot] || dot >= floor - looseness(row, floor), "list %zu has slot %zu, %.9g, floor %.9g", list, slot,
          (double)dot, (double)floor);
  }
}

static void check_append(const struct mol_pairs_input *input)
{
  size_t n_lists = input->rows.n * input->n_components;
  float *host_floors = on_host(n_lists, sizeof *host_floors), *floors;
  uint32_t *n = on_host(n_lists, sizeof *n), *slots = on_host(n_lists * t.n_slots, sizeof *slots);
  float *scores = on_host(n_lists * t.n_slots, sizeof *scores);
  struct device_lists lists;

  draw_floors(input, host_floors);
  floors = to_device(host_floors, n_lists, sizeof *floors);
  CHECK_OK(funnel_lists(t.worker, n_lists, t.n_slots, &lists));
  CHECK_OK(lists_clear(t.worker->stream, &lists));
  CHECK_OK(device_fill(t.worker->stream, lists.slots, 0, n_lists * t.n_slots * sizeof *lists.slots));
  CHECK_OK(device_fill(t.worker->stream, lists.scores, 0, n_lists * t.n_slots * sizeof *lists.scores));
  CHECK_OK(mol_pairs_append(t.worker->stream, input, t.n_slots, floors, &lists));
  CHECK_OK(device_copy_out(t.worker->stream, n, lists.n, n_lists * sizeof *n));
  CHECK_OK(device_copy_out(t.worker->stream, slots, lists.slots, n_lists * t.n_slots * sizeof *slots));
  CHECK_OK(device_copy_out(t.worker->stream, scores, lists.scores, n_lists * t.n_slots * sizeof *scores));
  CHECK_OK(device_wait(t.worker->stream));
  for (size_t list = 0; list < n_lists; list++) {
    CHECK(n[list] <= t.n_slots, "list %zu has %u items", list, n[list]);
    check_list(input, list, host_floors[list], slots + list * t.n_slots, scores + list * t.n_slots, n[list]);
  }
  device_free_host(&scores);
  device_free(&floors);
  device_free_host(&host_floors);
  device_free_host(&n);
  device_free_host(&slots);
}

/* The rank-th best exact dot product of a list's items. */
static float ranked(const struct mol_pairs_input *input, size_t list, size_t rank)
{
  static float dots[ITEMS_MAX];
  size_t n = 0;

  for (size_t slot = 0; slot < t.n_slots; slot++) {
    if (t.present[slot])
      dots[n++] = dot_at(list % input->rows.n, input->first_component + list / input->rows.n, slot);
  }
  qsort(dots, n, sizeof *dots, falling);
  return rank <= n ? dots[rank - 1] : -INFINITY;
}

/* The items that have their exact dot products computed are at least the `rank` best of each list. All items are
 * listed, so that many estimates are close to the one of that rank. */
static void check_near(const struct mol_pairs_input *input)
{
  size_t n_lists = input->rows.n * input->n_components, n_entries = n_lists * t.n_slots, rank;
  float *floors = on_host(n_lists, sizeof *floors), *scores = on_host(n_entries, sizeof *scores), *estimates;
  uint32_t *n = on_host(n_lists, sizeof *n), *slots = on_host(n_entries, sizeof *slots);
  struct mol_pair_queries queries = { .n = t.n_queries, .n_components = shape()->n_query_components };
  struct device_stream *stream = t.worker->stream;
  struct device_lists lists;
  float *device_floors;

  rank = 1 + dice_below(&t.dice, t.n_slots / 4 + 1);
  for (size_t list = 0; list < n_lists; list++)
    floors[list] = -2.0f * scale;
  device_floors = to_device(floors, n_lists, sizeof *floors);
  CHECK_OK(funnel_lists(t.worker, n_lists, t.n_slots, &lists));
  CHECK_OK(device_worker_array(t.worker, n_lists, sizeof *estimates, &estimates));
  CHECK_OK(lists_clear(stream, &lists));
  CHECK_OK(device_fill(stream, lists.slots, 0, n_entries * sizeof *lists.slots));
  CHECK_OK(device_fill(stream, lists.scores, 0, n_entries * sizeof *lists.scores));
  CHECK_OK(mol_pairs_append(stream, input, t.n_slots, device_floors, &lists));
  CHECK_OK(lists_threshold(stream, &lists, (struct lists_ranks){ NULL, (uint32_t)rank }, estimates));
  CHECK_OK(mol_pair_lists_score(stream, input, &queries, device_floors, estimates, &lists));
  CHECK_OK(device_copy_out(stream, n, lists.n, n_lists * sizeof *n));
  CHECK_OK(device_copy_out(stream, slots, lists.slots, n_entries * sizeof *slots));
  CHECK_OK(device_copy_out(stream, scores, lists.scores, n_entries * sizeof *scores));
  CHECK_OK(device_wait(stream));
  for (size_t list = 0; list < n_lists; list++) {
    float least = ranked(input, list, rank);
    for (size_t i = 0; i < n[list]; i++) {
      float score = scores[list * t.n_slots + i];
      float due = dot_at(list % input->rows.n, input->first_component + list / input->rows.n,
                         slots[list * t.n_slots + i]);
      CHECK(memcmp(&score, &due, sizeof due) == 0 || (score == -INFINITY && due < least),
            "list %zu: %.9g, not %.9g; that of rank %zu is %.9g", list, (double)score, (double)due, rank,
            (double)least);
    }
  }
  device_free(&device_floors);
  device_free_host(&floors);
  device_free_host(&scores);
  device_free_host(&n);
  device_free_host(&slots);
}

static void check_bounds(const struct mol_shape *of, size_t n_slots, size_t n_queries, enum draw draw, size_t one_of)
{
  open_fixture(of, n_slots, n_queries, draw, one_of);
  for (size_t i = 0; i < n_queries * of->n_query_components * of->component_dim; i++)
    t.queries[i] *= scale;
  upload();
  struct mol_pairs_input input = input_of();
  check_maxima(&input, 1);
  check_maxima(&input, 3);
  check_append(&input);
  check_near(&input);
  input.first_component = of->n_item_components / 2; /* as in a second pass */
  input.n_components = of->n_item_components - input.first_component;
  check_maxima(&input, 1);
  check_append(&input);
  close_fixture();
}

/* Numbers beyond half's range, and items with an unknown residual: everything passes, and there are no lower bounds. */
static void check_infinities(void)
{
  static const struct mol_shape of = { 2, 3, 16, 1, 1.0f };
  enum { SLOTS = 130, LOST = 70 };
  float *maxima, *floors, found[3 * 4 * 3];
  uint32_t n[12];
  struct device_lists lists;

  open_fixture(&of, SLOTS, 2, DRAW_UNIFORM, 1);
  t.queries[0] = 1e5f; /* row 0 exceeds half's range */
  t.residuals[LOST * MOL_RESIDUALS + MOL_RESIDUAL_COMPONENT] = NAN;
  t.halves[LOST * mol_halves_stride(48, 8)] = 0xfe00; /* a NaN with the sign bit set */
  upload();
  struct mol_pairs_input input = input_of();
  CHECK_OK(device_worker_array(t.worker, 36, sizeof *maxima, &maxima));
  CHECK_OK(mol_pairs_maxima(t.worker->stream, &input, SLOTS, 1, 3, 3, maxima));
  float *high = on_host(12, sizeof *high), *out = on_host(36, sizeof *out);
  uint32_t *counts = on_host(12, sizeof *counts);
  for (size_t i = 0; i < 12; i++)
    high[i] = i % 4 == 0 ? -INFINITY : 100.0f;
  floors = to_device(high, 12, sizeof *floors);
  CHECK_OK(funnel_lists(t.worker, 12, SLOTS, &lists));
  CHECK_OK(lists_clear(t.worker->stream, &lists));
  CHECK_OK(mol_pairs_append(t.worker->stream, &input, SLOTS, floors, &lists));
  CHECK_OK(device_copy_out(t.worker->stream, out, maxima, sizeof found));
  CHECK_OK(device_copy_out(t.worker->stream, counts, lists.n, sizeof n));
  CHECK_OK(device_wait(t.worker->stream));
  for (size_t i = 0; i < 12; i++) {
    CHECK(counts[i] == (i % 4 == 0 ? SLOTS : 64), "list %zu has %u items", i, counts[i]);
    CHECK(out[i * 3 + 1] == -INFINITY, "list %zu has a floor of %g", i, (double)out[i * 3 + 1]);
    CHECK((out[i * 3] == -INFINITY) == (i % 4 == 0), "list %zu has a floor of %g", i, (double)out[i * 3]);
  }
  device_free(&floors);
  device_free_host(&high);
  device_free_host(&out);
  device_free_host(&counts);
  close_fixture();
}

/* Numbers of rows on both sides of what one warp, all warps and one block hold, several launches for many components,
 * and rows as large as they may be. */
static void check_many_rows(void)
{
  static const struct mol_shape many[] = { { 8, 2, 32, 1, 1.0f }, { 8, 1, 64, 1, 1.0f },  { 8, 1, 128, 1, 1.0f },
                                           { 1, 9, 16, 1, 1.0f }, { 2, 16, 24, 1, 1.0f }, { 3, 2, 27, 1, 1.0f } };
  static const size_t n_queries[] = { 8, 9, 17, 33 };

  for (size_t s = 0; s < sizeof many / sizeof many[0]; s++) {
    for (size_t i = 0; i < check_size(4, 2); i++)
      check_bounds(&many[s], 1 + dice_below(&t.dice, 200), n_queries[i], DRAW_UNIFORM, i % 2 ? 1 : 3);
  }
  scale = 1000.0f;
  for (size_t s = 0; s < 3; s++)
    check_bounds(&many[s], 1 + dice_below(&t.dice, 200), 2, DRAW_UNIFORM, 1);
  scale = 1.0f;
}

int main(void)
{
  check_begin("gpu_mol_pairs");
  t.dice.state = dice_seed();
  CHECK_OK(device_worker_open(ITEMS_MAX, &t.worker));
  check_infinities();
  for (size_t s = 0, first = dice_below(&t.dice, N_DRAWS); s < N_SHAPES; s++) {
    for (size_t i = 0; i < check_size(N_DRAWS, 1); i++) {
      enum draw draw = (enum draw)((first + s + i) % N_DRAWS);
      check_bounds(&shapes[s], 1 + dice_below(&t.dice, 300), 1 + dice_below(&t.dice, 3), draw, draw % 2 ? 1 : 40);
    }
  }
  check_many_rows();
  device_worker_close(&t.worker);
  return check_end("gpu_mol_pairs");
}
