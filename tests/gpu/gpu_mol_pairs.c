/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of component pairs on the device: the bounds of the half-precision scan, and whole candidate lists,
 * compared with dot products computed on the host.
 */
#include <math.h>
#include <string.h>

#include "engine/cuda/mol_pairs_cuda.h"
#include "engine/mol/mol_model.h"
#include "kernels/cuda/mol_pair_lists.h"
#include "tests/gpu/check.h"
#include "tests/support/dice.h"

enum { ITEMS_MAX = 1500, QUERIES_MAX = 33, EXCLUDED_MAX = 4, SCRATCH_TAIL = 8 * 1024 };

/* How components are drawn. */
enum draw {
  DRAW_UNIFORM,
  DRAW_FEW,     /* three different items: ties */
  DRAW_ZEROS,   /* mostly zeros */
  DRAW_HALFWAY, /* numbers just below the middle between two halves: all rounding errors have the same sign */
  DRAW_TINY,    /* numbers below half's range */
  DRAW_ONE_HOT,
  DRAW_SUBNORMAL, /* halves that need no rounding; a query's are subnormal, an item has one large number */
  N_DRAWS
};

static struct fixture {
  struct dice dice;
  struct mol_model model;
  size_t n_slots, n_items, n_queries;
  /* On the host. */
  float *rows; /* [n_slots][row_floats] */
  size_t row_floats;
  uint8_t *present; /* [n_slots] */
  uint16_t *halves; /* [n_slots][stride] */
  float *residuals; /* [n_slots][MOL_RESIDUALS] */
  float *queries;   /* [n_queries][P_q][d] */
  float *dots;      /* [n_queries P_q][P_x][n_slots]: exact */
  uint32_t excluded[QUERIES_MAX][EXCLUDED_MAX];
  struct search_result results[QUERIES_MAX];
  /* On the device. */
  struct device_worker *worker;
  struct device_columns columns;
  struct mol_pairs_source source;
  struct region region;
} t;

static struct mol_shape *shape(void)
{
  return &t.model.shape;
}

static void *on_host(size_t count, size_t size)
{
  void *memory;

  CHECK_OK(device_alloc_host(count, size, &memory));
  return memory;
}

static void *to_device(const void *from, size_t count, size_t size)
{
  void *memory;

  CHECK_OK(device_alloc(count, size, &memory));
  CHECK_OK(device_copy_in(t.worker->stream, memory, from, count * size));
  CHECK_OK(device_wait(t.worker->stream));
  return memory;
}

/* ---- Draws ---- */

static float draw_one(enum draw draw, size_t k, size_t hot)
{
  switch (draw) {
  case DRAW_ZEROS:
    return dice_below(&t.dice, 8) ? 0.0f : dice_float(&t.dice, 1.0f);
  case DRAW_HALFWAY: /* rounding loses nearly 2^-11 of the number */
    return (1.0f + 0x1p-11f - 0x1p-22f) * (dice_below(&t.dice, 2) ? 0.0625f : 0.03125f);
  case DRAW_TINY:
    return dice_float(&t.dice, dice_below(&t.dice, 2) ? 0x1p-20f : 0x1p-26f);
  case DRAW_ONE_HOT:
    return k == hot ? 1.0f : 0.0f;
  case DRAW_SUBNORMAL:
    return k == hot ? 0x1.ff8p-1f : (float)(1024 + dice_below(&t.dice, 1024)) * 0x1p-22f;
  default:
    return dice_float(&t.dice, 1.0f);
  }
}

/* Draw a component with a norm of at most 1, apart from rounding. */
static void draw_vector(enum draw draw, float *out, size_t dim)
{
  size_t hot = dice_below(&t.dice, dim);
  double square = 0;

  for (size_t k = 0; k < dim; k++) {
    out[k] = draw_one(draw, k, hot);
    square += (double)out[k] * (double)out[k];
  }
  float norm = (float)sqrt(square);
  for (size_t k = 0; k < dim && norm > 0.0f && (norm > 1.0f || draw == DRAW_UNIFORM); k++)
    out[k] /= norm;
}

/* Draw a query whose numbers are the smallest subnormal halves. Tensor cores count them as 2^-14, and cut the other
 * products of DRAW_SUBNORMAL's items. */
static void draw_subnormal_query(float *out, size_t dim)
{
  for (size_t k = 0; k < dim; k++)
    out[k] = (float)(1 + dice_below(&t.dice, 2)) * 0x1p-24f;
}

static uint16_t half_bits_of(float x, float *rounded)
{
  _Float16 half = (_Float16)x;
  uint16_t bits;

  memcpy(&bits, &half, sizeof bits);
  *rounded = (float)half;
  return bits;
}

/* Compute an item's entries in the derived arrays. */
static void derive(size_t slot)
{
  size_t dim = shape()->component_dim, n = shape()->n_item_components * dim, stride = mol_halves_stride(n, 8);
  const float *row = t.rows + slot * t.row_floats;
  double largest = 0, square = 0;

  memset(t.halves + slot * stride, 0, stride * sizeof *t.halves);
  for (size_t k = 0; k < n; k++) {
    float rounded;
    t.halves[slot * stride + k] = half_bits_of(row[k], &rounded);
    square = (k % dim == 0 ? 0 : square) + ((double)row[k] - (double)rounded) * ((double)row[k] - (double)rounded);
    largest = square > largest ? square : largest;
  }
  for (size_t i = 0; i < MOL_RESIDUALS; i++)
    t.residuals[slot * MOL_RESIDUALS + i] = NAN;
  t.residuals[slot * MOL_RESIDUALS + MOL_RESIDUAL_COMPONENT] = nextafterf((float)sqrt(largest), INFINITY);
}

static void draw_items(enum draw draw, size_t one_of)
{
  size_t n = shape()->n_item_components;

  t.n_items = 0;
  for (size_t slot = 0; slot < t.n_slots; slot++) {
    float *row = t.rows + slot * t.row_floats;
    for (size_t k = 0; k < t.row_floats; k++)
      row[k] = NAN; /* nothing after the components may be read */
    for (size_t m = 0; m < n; m++)
      draw_vector(draw, row + m * shape()->component_dim, shape()->component_dim);
    if (draw == DRAW_FEW && slot >= 3)
      memcpy(row, t.rows + dice_below(&t.dice, 3) * t.row_floats, t.row_floats * sizeof *row);
    t.present[slot] = dice_below(&t.dice, one_of) == 0;
    t.n_items += t.present[slot];
    derive(slot);
  }
}

static float exact_dot(const float *f, const float *g, size_t n)
{
  float sum = 0.0f;
  double check = 0;

  for (size_t k = 0; k < n; k++) {
    sum = fmaf(f[k], g[k], sum);
    check += (double)f[k] * (double)g[k];
  }
  CHECK(!(fabs(check - (double)sum) > 1e-5 * (1 + fabs(check))), "%g is not %g", (double)sum, check);
  return sum;
}

static float dot_at(size_t row, size_t m, size_t slot)
{
  return t.dots[(row * shape()->n_item_components + m) * t.n_slots + slot];
}

static void compute_dots(void)
{
  size_t dim = shape()->component_dim, n = shape()->n_item_components;

  for (size_t i = 0; i < t.n_queries * shape()->n_query_components * n * t.n_slots; i++) {
    size_t slot = i % t.n_slots, m = i / t.n_slots % n, row = i / t.n_slots / n;
    t.dots[i] = exact_dot(t.queries + row * dim, t.rows + slot * t.row_floats + m * dim, dim);
  }
}

static void draw_excluded(void)
{
  for (size_t q = 0; q < t.n_queries; q++) {
    size_t n = 0, slot = 0;
    for (size_t most = dice_below(&t.dice, EXCLUDED_MAX + 1); n < most && slot < t.n_slots;
         slot += 1 + dice_below(&t.dice, 9)) {
      if (t.present[slot])
        t.excluded[q][n++] = (uint32_t)slot;
    }
    t.results[q].admit = (struct admit){ t.present, t.excluded[q], n, false };
  }
}

static void open_fixture(const struct mol_shape *of, size_t n_slots, size_t n_queries, enum draw draw, size_t one_of)
{
  size_t n_rows = n_queries * of->n_query_components, n = of->n_item_components, whole = (n_slots + 63) / 64 * 64;
  size_t stride = mol_halves_stride(n * of->component_dim, 8);

  t.model.shape = *of;
  t.n_slots = n_slots;
  t.n_queries = n_queries;
  t.row_floats = n * of->component_dim + of->n_query_components * n + of->component_dim + 1;
  t.rows = on_host(n_slots, t.row_floats * sizeof(float));
  t.present = on_host(n_slots, 1);
  t.halves = on_host(whole, stride * sizeof *t.halves);
  t.residuals = on_host(whole, MOL_RESIDUALS * sizeof *t.residuals);
  t.queries = on_host(n_rows, of->component_dim * sizeof *t.queries);
  t.dots = on_host(n_rows * n * n_slots, sizeof *t.dots);
  memset(t.halves, 0, whole * stride * sizeof *t.halves);
  memset(t.residuals, 0, whole * MOL_RESIDUALS * sizeof *t.residuals);
  draw_items(draw, one_of);
  for (size_t row = 0; row < n_rows; row++)
    draw_vector(draw == DRAW_FEW || dice_below(&t.dice, 8) == 0 ? DRAW_UNIFORM : draw,
                t.queries + row * of->component_dim, of->component_dim);
  for (size_t row = 0; draw == DRAW_SUBNORMAL && row < n_rows; row++)
    draw_subnormal_query(t.queries + row * of->component_dim, of->component_dim);
  draw_excluded();
}

/* Copy the fixture to the device. */
static void upload(void)
{
  size_t whole = (t.n_slots + 63) / 64 * 64, dim = shape()->component_dim;
  size_t stride = mol_halves_stride(shape()->n_item_components * dim, 8);

  compute_dots();
  device_worker_reset(t.worker);
  t.columns.model = &t.model.base;
  t.columns.rows =
      (struct device_rows){ t.row_floats * sizeof(float), to_device(t.rows, t.n_slots, t.row_floats * sizeof(float)),
                            to_device(t.present, t.n_slots, 1) };
  t.source.halves.components = to_device(t.halves, whole, stride * sizeof *t.halves);
  t.source.halves.residuals = to_device(t.residuals, whole, MOL_RESIDUALS * sizeof *t.residuals);
  t.source.query_components = to_device(t.queries, t.n_queries * shape()->n_query_components, dim * sizeof(float));
}

static void free_const(const void *memory)
{
  void *taken = (void *)(uintptr_t)memory;

  device_free(&taken);
}

static void forget_device(void)
{
  device_free(&t.columns.rows.bytes);
  device_free(&t.columns.rows.present);
  free_const(t.source.halves.components);
  free_const(t.source.halves.residuals);
  free_const(t.source.query_components);
}

static void close_fixture(void)
{
  forget_device();
  device_free_host(&t.rows);
  device_free_host(&t.present);
  device_free_host(&t.halves);
  device_free_host(&t.residuals);
  device_free_host(&t.queries);
  device_free_host(&t.dots);
}

/* ---- Kernels ---- */

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

/* The largest distance allowed between a bound and the dot product: twice the expected one, so that loose bounds fail.
 */
static float looseness(size_t row)
{
  const float *f = t.queries + row * shape()->component_dim;
  double square = 0;

  for (size_t k = 0; k < shape()->component_dim; k++)
    square += (double)f[k] * (double)f[k];
  return (float)(sqrt(square) * 0x1p-9) + 1e-5f;
}

static void check_maxima(const struct mol_pairs_input *input, size_t stride)
{
  size_t n_all = (t.n_slots + 63) / 64, n_tiles = (n_all + stride - 1) / stride;
  size_t n_rows = input->rows.n, n = n_rows * input->n_components * n_tiles;
  float *maxima, *found = on_host(n, sizeof *found);

  CHECK_OK(device_worker_array(t.worker, n, sizeof *maxima, &maxima));
  CHECK_OK(mol_pairs_maxima(t.worker->stream, input, t.n_slots, stride, n_tiles, maxima));
  CHECK_OK(device_copy_out(t.worker->stream, found, maxima, n * sizeof *found));
  CHECK_OK(device_wait(t.worker->stream));
  for (size_t i = 0; i < n; i++) {
    size_t tile = i % n_tiles, list = i / n_tiles, row = list % n_rows, m = input->first_component + list / n_rows;
    float best = -INFINITY;
    for (size_t slot = tile * stride * 64; slot < tile * stride * 64 + 64 && slot < t.n_slots; slot++)
      best = t.present[slot] ? fmaxf(best, dot_at(row, m, slot)) : best;
    CHECK(found[i] <= best, "list %zu, tile %zu: %.9g is above %.9g", list, tile, (double)found[i], (double)best);
    CHECK(found[i] == best || found[i] >= best - looseness(row), "list %zu, tile %zu: %.9g is far from %.9g", list,
          tile, (double)found[i], (double)best);
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
    CHECK(!(fabsf(scores[i] - dot_at(row, m, slots[i])) > looseness(row)) && (scores[i] == scores[i] || floor < -1e9f),
          "list %zu: %.9g is not near %.9g", list, (double)scores[i], (double)dot_at(row, m, slots[i]));
    is_in[slots[i]] = 1;
  }
  for (size_t slot = 0; slot < t.n_slots; slot++) {
    float dot = dot_at(row, m, slot);
    CHECK(is_in[slot] || !t.present[slot] || dot < floor, "list %zu lost slot %zu, %.9g, floor %.9g", list, slot,
          (double)dot, (double)floor);
    CHECK(!is_in[slot] || dot >= floor - looseness(row), "list %zu has slot %zu, %.9g, floor %.9g", list, slot,
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

static int falling(const void *a, const void *b)
{
  float x = *(const float *)a, y = *(const float *)b;

  return (x < y) - (x > y);
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
  struct mol_pair_queries queries = { t.n_queries, shape()->n_query_components, 0, { NULL, NULL } };
  struct device_stream *stream = t.worker->stream;
  struct device_lists lists;
  float *device_floors;

  rank = 1 + dice_below(&t.dice, t.n_slots / 4 + 1);
  for (size_t list = 0; list < n_lists; list++)
    floors[list] = -2.0f;
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
  CHECK_OK(mol_pairs_maxima(t.worker->stream, &input, SLOTS, 1, 3, maxima));
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

/* ---- Candidates ---- */

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

static void find(uint32_t n_best, struct answers *out)
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
  struct mol_pairs_found found;
  struct device_stream *stream = t.worker->stream;

  region_reset(&t.region);
  CHECK_OK(funnel_lists(t.worker, group.n, t.n_slots, &found.candidates));
  CHECK_OK(device_worker_array(t.worker, group.n, sizeof *found.nth_best, &found.nth_best));
  CHECK_OK(device_worker_array(t.worker, group.n, sizeof *found.has_overflowed, &found.has_overflowed));
  CHECK_OK(funnel_upload_ranks(&f, &group));
  CHECK_OK(funnel_upload_excluded(&f, &group, &t.source.excluded));
  CHECK_OK(device_worker_send(t.worker));
  CHECK_OK(mol_pairs_cuda_candidates(&f, &group, &t.source, n_best, &found));
  CHECK_OK(device_copy_out(stream, out->n, found.candidates.n, group.n * sizeof *out->n));
  CHECK_OK(device_copy_out(stream, out->nth_best, found.nth_best, group.n * sizeof *out->nth_best));
  CHECK_OK(device_copy_out(stream, out->has_overflowed, found.has_overflowed, group.n * sizeof *out->has_overflowed));
  CHECK_OK(device_wait(stream));
  for (size_t q = 0; q < group.n; q++) /* beyond its length a list was never written */
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
  device_worker_reset(t.worker);
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
  struct search_batch batch = { .n = t.n_queries, .results = t.results, .n_slots = t.n_slots, .n_items = t.n_items };
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

int main(void)
{
  static const struct mol_shape shapes[] = { { 8, 8, 32, 1, 1.0f },  { 8, 4, 64, 1, 1.0f }, { 1, 1, 1, 1, 1.0f },
                                             { 2, 3, 5, 1, 1.0f },   { 3, 8, 16, 1, 1.0f }, { 1, 2, 72, 1, 1.0f },
                                             { 2, 1, 128, 1, 1.0f }, { 2, 2, 130, 1, 1.0f } };
  static const size_t sizes[] = { 0, 1, 2, 63, 64, 65, 67 };
  enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

  check_begin("gpu_mol_pairs");
  t.dice.state = dice_seed();
  CHECK_OK(device_worker_open(ITEMS_MAX, &t.worker));
  check_infinities();
  for (size_t s = 0; s < N_SHAPES; s++) {
    for (size_t i = 0; i < check_size(N_DRAWS, 1); i++) {
      enum draw draw = (enum draw)((s + i) % N_DRAWS);
      check_bounds(&shapes[s], 1 + dice_below(&t.dice, 300), 1 + dice_below(&t.dice, 3), draw, draw % 2 ? 1 : 40);
      check_candidates(&shapes[s], 100 + dice_below(&t.dice, 200), 1 + dice_below(&t.dice, 3), draw, s % 2 == draw % 2);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
      check_candidates(&shapes[s], sizes[i], i % 2 ? 1 : s % 3 ? 2 : 7, DRAW_UNIFORM, false);
    check_candidates(&shapes[s], ITEMS_MAX, s == 0 ? 7 : s == 4 ? 33 : 1, DRAW_UNIFORM, false);
  }
  check_overflow();
  device_worker_close(&t.worker);
  region_fini(&t.region);
  return check_end("gpu_mol_pairs");
}
