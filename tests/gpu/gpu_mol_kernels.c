/* SPDX-License-Identifier: Apache-2.0 */
/* The Mixture-of-Logits kernels compared with scalar references: half-precision copies and their residuals, canonical
 * scores to the last bit, and bounds of averaged dot products from both sides.
 */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "kernels/cuda/average_scan.h"
#include "kernels/cuda/average_score.h"
#include "kernels/cuda/mol_derive.h"
#include "kernels/cuda/mol_score.h"
#include "kernels/kernels.h"
#include "tests/gpu/check.h"
#include "tests/support/dice.h"

enum { TILE = 64, QUERIES_MAX = 40, N_BLOCKS = 3 };

static struct dice dice;
static struct device_stream *stream;

/* A catalogue of random rows with some absent slots, on the host and on the device. */
struct catalogue {
  struct mol_shape shape;
  size_t n_slots, n_padded, row_floats, n_logits;
  float *rows; /* [n_padded][row_floats] on the host */
  uint8_t *present;
  struct device_rows device_rows;
  struct mol_derive_arrays device;
  uint16_t *components, *gates, *averages; /* copied back */
  float *residuals;
  size_t components_stride, gates_stride, averages_stride;
};

/* Return a copy in device memory. */
static void *to_device(const void *from, size_t bytes)
{
  void *pinned, *memory;

  CHECK_OK(device_alloc_host(bytes, 1, &pinned));
  CHECK_OK(device_alloc(bytes, 1, &memory));
  memcpy(pinned, from, bytes);
  CHECK_OK(device_copy_in(stream, memory, pinned, bytes));
  CHECK_OK(device_wait(stream));
  device_free_host(&pinned);
  return memory;
}

static void *from_device(const void *from, size_t bytes)
{
  void *pinned, *memory = malloc(bytes + 1);

  CHECK_OK(device_alloc_host(bytes, 1, &pinned));
  CHECK_OK(device_copy_out(stream, pinned, from, bytes));
  CHECK_OK(device_wait(stream));
  memcpy(memory, pinned, bytes);
  device_free_host(&pinned);
  return memory;
}

static void *device_zeros(size_t bytes)
{
  void *zeros = calloc(bytes, 1), *memory = to_device(zeros, bytes);

  free(zeros);
  return memory;
}

static float half_at(const uint16_t *array, size_t i)
{
  uint8_t bytes[2] = { (uint8_t)array[i], (uint8_t)(array[i] >> 8) };

  return half_from_f16(bytes);
}

/* Move x to just above the middle between two half-precision neighbours, where the rounding error is largest. */
static float middle(float x)
{
  float step = ldexpf(1.0f, ilogbf(x) - 10);

  return (floorf(x / step) + 0.5f) * step * (1 + 0x1p-22f);
}

/* Draw an average with a norm of at most 1: random, all numbers rounding the same way, tiny, or zero. */
static void draw_average(float *out, size_t dim)
{
  size_t kind = dice_below(&dice, 5);
  float even = middle(1 / sqrtf((float)dim) * 0.9f * (1 - dice_float(&dice, 0.04f)));

  for (size_t k = 0; k < dim; k++)
    out[k] = kind == 0   ? even
             : kind == 1 ? -even
             : kind == 2 ? dice_float(&dice, 1e-6f)
             : kind == 3 ? (dice_below(&dice, 4) ? 0.0f : dice_float(&dice, 1 / sqrtf((float)dim)))
                         : dice_float(&dice, 1 / sqrtf((float)dim));
}

static void draw_row(const struct catalogue *c, float *row)
{
  size_t n_components = c->shape.n_item_components * c->shape.component_dim;

  dice_fill(&dice, row, n_components, dice_below(&dice, 4) ? 0.3f : 0.0f);
  dice_fill(&dice, row + n_components, c->n_logits, dice_below(&dice, 4) ? 3.0f : 2e5f); /* 2e5: exceeds half's range */
  draw_average(row + n_components + c->n_logits, c->shape.component_dim);
}

static struct catalogue catalogue_open(struct mol_shape shape, size_t n_slots)
{
  struct catalogue c = { .shape = shape, .n_slots = n_slots, .n_padded = (n_slots + TILE - 1) / TILE * TILE };
  uint32_t *slots = calloc(n_slots, sizeof *slots);

  c.n_logits = shape.n_query_components * shape.n_item_components;
  c.row_floats = (shape.n_item_components + 1) * shape.component_dim + c.n_logits + 1;
  c.components_stride = mol_halves_stride(shape.n_item_components * shape.component_dim, 8);
  c.gates_stride = mol_halves_stride(c.n_logits, 8);
  c.averages_stride = mol_halves_stride(shape.component_dim, 16);
  c.rows = calloc(c.n_padded * c.row_floats, sizeof *c.rows);
  c.present = calloc(c.n_padded, 1);
  for (size_t i = 0; i < n_slots; i++) {
    slots[i] = (uint32_t)(n_slots - 1 - i);
    c.present[i] = dice_below(&dice, 6) != 0;
    draw_row(&c, c.rows + i * c.row_floats);
  }
  c.device_rows.row_bytes = c.row_floats * sizeof(float);
  c.device_rows.bytes = to_device(c.rows, c.n_padded * c.device_rows.row_bytes);
  c.device_rows.present = to_device(c.present, c.n_padded);
  c.device.components = device_zeros(c.n_padded * c.components_stride * 2);
  c.device.gates = device_zeros(c.n_padded * c.gates_stride * 2);
  c.device.averages = device_zeros(c.n_padded * c.averages_stride * 2);
  c.device.residuals = device_zeros(c.n_padded * MOL_RESIDUALS * sizeof(float));
  uint32_t *device_slots = to_device(slots, n_slots * sizeof *slots);
  CHECK_OK(mol_derive(stream, &shape, &c.device_rows, device_slots, n_slots, &c.device));
  CHECK_OK(device_wait(stream));
  device_free(&device_slots);
  free(slots);
  c.components = from_device(c.device.components, c.n_padded * c.components_stride * 2);
  c.gates = from_device(c.device.gates, c.n_padded * c.gates_stride * 2);
  c.averages = from_device(c.device.averages, c.n_padded * c.averages_stride * 2);
  c.residuals = from_device(c.device.residuals, c.n_padded * MOL_RESIDUALS * sizeof(float));
  return c;
}

static void catalogue_close(struct catalogue *c)
{
  device_free(&c->device.components);
  device_free(&c->device.gates);
  device_free(&c->device.averages);
  device_free(&c->device.residuals);
  device_free(&c->device_rows.bytes);
  device_free(&c->device_rows.present);
  free(c->rows);
  free(c->present);
  free(c->components);
  free(c->gates);
  free(c->averages);
  free(c->residuals);
}

static const float *average_of(const struct catalogue *c, size_t slot)
{
  return c->rows + slot * c->row_floats + c->row_floats - 1 - c->shape.component_dim;
}

/* Copies -------------------- */

/* Return |x - half| in double, and check that each number is rounded to nearest. */
static double residual(const float *x, const uint16_t *halves, size_t n)
{
  double sum = 0;

  for (size_t k = 0; k < n; k++) {
    double rest = fabs((double)x[k] - (double)half_at(halves, k));
    if (fabsf(x[k]) < 65504.0f)
      CHECK(rest <= fmax(fabs((double)x[k]) * 0x1p-11, 0x1p-25), "%.9g is not rounded to nearest", (double)x[k]);
    sum += rest * rest;
  }
  return sqrt(sum);
}

static void check_residual(float stored, double want, const char *what)
{
  CHECK((double)stored >= want, "%s: a residual of %.9g is below %.9g", what, (double)stored, want);
  CHECK(isinf(want) || (double)stored <= want * 1.001 + 1e-15, "%s: a residual of %.9g is far above %.9g", what,
        (double)stored, want);
}

static double norm_of_halves(const uint16_t *x, size_t n)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += (double)half_at(x, i) * (double)half_at(x, i);
  return sqrt(sum);
}

static void check_item(const struct catalogue *c, size_t slot)
{
  const float *row = c->rows + slot * c->row_floats, *residuals = c->residuals + slot * MOL_RESIDUALS;
  size_t n_item = c->shape.n_item_components, n_query = c->shape.n_query_components, dim = c->shape.component_dim;
  const uint16_t *gates = c->gates + slot * c->gates_stride;
  double most = 0;
  float *item_major = calloc(c->n_logits, sizeof *item_major);

  for (size_t m = 0; m < n_item; m++)
    most = fmax(most, residual(row + m * dim, c->components + slot * c->components_stride + m * dim, dim));
  check_residual(residuals[MOL_RESIDUAL_COMPONENT], most, "components");
  for (size_t n = 0; n < n_query; n++) {
    for (size_t m = 0; m < n_item; m++)
      item_major[m * n_query + n] = row[n_item * dim + n * n_item + m];
  }
  check_residual(residuals[MOL_RESIDUAL_GATE], residual(item_major, gates, c->n_logits), "gates");
  check_residual(residuals[MOL_GATE_NORM], norm_of_halves(gates, c->n_logits), "the norm of gates");
  residual(average_of(c, slot), c->averages + slot * c->averages_stride, dim);
  for (size_t k = c->n_logits; k < c->gates_stride; k++)
    CHECK(gates[k] == 0, "the gates' padding is not zero");
  for (size_t k = dim; k < c->averages_stride; k++)
    CHECK(c->averages[slot * c->averages_stride + k] == 0, "the average's padding is not zero");
  free(item_major);
}

static void check_copies(const struct catalogue *c)
{
  for (size_t slot = 0; slot < c->n_padded; slot++) {
    if (c->present[slot])
      check_item(c, slot);
    else
      CHECK(c->residuals[slot * MOL_RESIDUALS] == 0 && c->averages[slot * c->averages_stride] == 0,
            "an absent slot was derived");
  }
}

/* Lists -------------------- */

static struct device_lists lists_new(size_t n_lists, size_t capacity)
{
  return (struct device_lists){ .n_lists = n_lists,
                                .capacity = capacity,
                                .n = device_zeros(n_lists * sizeof(uint32_t)),
                                .slots = device_zeros(n_lists * capacity * sizeof(uint32_t)),
                                .scores = device_zeros(n_lists * capacity * sizeof(float)) };
}

static void lists_free(struct device_lists *lists)
{
  device_free(&lists->n);
  device_free(&lists->slots);
  device_free(&lists->scores);
}

struct host_lists {
  uint32_t *n, *slots;
  float *scores;
};

static struct host_lists lists_read(const struct device_lists *lists)
{
  size_t n_entries = lists->n_lists * lists->capacity;

  return (struct host_lists){ from_device(lists->n, lists->n_lists * sizeof(uint32_t)),
                              from_device(lists->slots, n_entries * sizeof(uint32_t)),
                              from_device(lists->scores, n_entries * sizeof(float)) };
}

static void host_lists_free(struct host_lists *lists)
{
  free(lists->n);
  free(lists->slots);
  free(lists->scores);
}

/* Scores -------------------- */

struct scorer {
  const struct kernels *kernels;
  struct mol_gate gate;
  float *query, *query_gate, *items, *item_gates, *scratch;
};

static float *floats_new(size_t n, float scale)
{
  float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);

  dice_fill(&dice, x, n, scale);
  return x;
}

/* The reference's score of one item. */
static float score_ref(const struct scorer *s, const struct catalogue *c, size_t q, size_t slot)
{
  const float *row = c->rows + slot * c->row_floats;
  size_t n_components = c->shape.n_item_components * c->shape.component_dim;
  const float *gates = row + n_components;
  float phi[MOL_LANES];

  s->kernels->transpose(&row, 1, n_components, s->items);
  s->kernels->transpose(&gates, 1, c->n_logits, s->item_gates);
  s->kernels->mol_score(&c->shape, &s->gate, s->query + q * c->shape.n_query_components * c->shape.component_dim,
                        s->query_gate + q * c->n_logits, s->items, s->item_gates, s->scratch, NULL, phi);
  return phi[0];
}

/* Upload a layer with padded rows. The padding is not zero, because kernels must ignore it. */
static const float *padded_to_device(const float *rows, size_t n, size_t n_out)
{
  size_t stride = mol_score_pad(n_out);
  float *padded = floats_new(n * stride, 9.0f);

  for (size_t i = 0; i < n; i++)
    memcpy(padded + i * stride, rows + i * n_out, n_out * sizeof *padded);
  void *device = to_device(padded, n * stride * sizeof *padded);
  free(padded);
  return device;
}

/* Compare the scores of lists of n[q] entries, some of which may have overflowed. */
static void check_lists(const struct catalogue *c, const struct scorer *s, const struct mol_score_input *in,
                        size_t capacity, const uint32_t *slots, const uint32_t *n)
{
  struct device_lists lists = lists_new(in->n_queries, capacity);

  device_free(&lists.n);
  device_free(&lists.slots);
  lists.n = to_device(n, in->n_queries * sizeof *n);
  lists.slots = to_device(slots, in->n_queries * capacity * sizeof *slots);
  CHECK_OK(mol_score_lists(stream, in, &lists));
  struct host_lists got = lists_read(&lists);
  for (size_t q = 0; q < in->n_queries; q++) {
    size_t n_stored = n[q] == LISTS_INVALID ? 0 : n[q] < capacity ? n[q] : capacity;
    for (size_t i = 0; i < n_stored; i++) {
      float want = score_ref(s, c, q, slots[q * capacity + i]), have = got.scores[q * capacity + i];
      CHECK(memcmp(&want, &have, sizeof want) == 0, "query %zu, entry %zu of %u: %.9g instead of %.9g", q, i, n[q],
            (double)have, (double)want);
    }
    CHECK(n_stored == capacity || got.scores[q * capacity + n_stored] == 0.0f,
          "query %zu: a score past the end of a list of %u", q, n[q]);
  }
  host_lists_free(&got);
  lists_free(&lists);
}

static void check_list_scores(const struct catalogue *c, const struct scorer *s, const struct mol_score_input *in)
{
  size_t capacity = c->n_slots + 3;
  uint32_t *slots = calloc(capacity * in->n_queries, sizeof *slots), *n = calloc(in->n_queries, sizeof *n);

  for (size_t q = 0; q < in->n_queries; q++) {
    for (size_t slot = 0; slot < c->n_slots; slot++) {
      if (c->present[slot] && dice_below(&dice, 3))
        slots[q * capacity + n[q]++] = (uint32_t)slot;
    }
  }
  check_lists(c, s, in, capacity, slots, n);
  free(slots);
  free(n);
}

/* Lists around the borders of tiles, and of what a list's blocks share. Alone, a list has 2 N_BLOCKS blocks. */
static void check_list_lengths(const struct catalogue *c, const struct scorer *s, const struct mol_score_input *in)
{
  enum { N = 22, WIDE = 32, NARROW = 8, BLOCKS = 2 * N_BLOCKS, CAPACITY = BLOCKS * (WIDE + NARROW) + 2 };
  static const uint32_t lengths[N] = { 0,
                                       1,
                                       NARROW - 1,
                                       NARROW,
                                       NARROW + 1,
                                       WIDE - 1,
                                       WIDE,
                                       WIDE + 1,
                                       2 * WIDE - 1,
                                       2 * WIDE,
                                       2 * WIDE + 1,
                                       2 * (WIDE + NARROW),
                                       2 * (WIDE + NARROW) + 1,
                                       BLOCKS * NARROW,
                                       BLOCKS * NARROW + 1,
                                       BLOCKS * WIDE - 1,
                                       BLOCKS * WIDE,
                                       BLOCKS * WIDE + 1,
                                       CAPACITY - 2,
                                       CAPACITY - 1,
                                       CAPACITY + 9,
                                       LISTS_INVALID };
  uint32_t *slots = calloc(CAPACITY * in->n_queries, sizeof *slots);
  struct mol_score_input of_one = *in;

  for (size_t i = 0; i < CAPACITY * in->n_queries; i++) {
    do
      slots[i] = (uint32_t)dice_below(&dice, c->n_slots);
    while (!c->present[slots[i]]);
  }
  of_one.n_queries = 1;
  for (size_t i = 0; i < N; i++)
    check_lists(c, s, &of_one, CAPACITY, slots, &lengths[i]);
  for (size_t i = 0; i + in->n_queries <= N; i += in->n_queries)
    check_lists(c, s, in, CAPACITY, slots, &lengths[i]);
  free(slots);
}

static void check_append_scores(const struct catalogue *c, const struct scorer *s, const struct mol_score_input *in)
{
  struct device_lists lists = lists_new(in->n_queries, c->n_slots);
  float floors[QUERIES_MAX];
  size_t first = c->n_slots > TILE ? TILE : 0;

  for (size_t q = 0; q < in->n_queries; q++)
    floors[q] = q % 3 ? score_ref(s, c, q, c->n_slots / 2) : -INFINITY;
  float *device_floors = to_device(floors, in->n_queries * sizeof *floors);
  CHECK_OK(mol_score_append(stream, in, first, c->n_slots - first, device_floors, &lists));
  struct host_lists got = lists_read(&lists);
  for (size_t q = 0; q < in->n_queries; q++) {
    size_t n_want = 0;
    for (size_t slot = first; slot < c->n_slots; slot++) {
      float want = score_ref(s, c, q, slot);
      bool is_hit = c->present[slot] && want >= floors[q], is_found = false;
      n_want += is_hit;
      for (size_t i = 0; i < got.n[q]; i++)
        is_found |= got.slots[q * lists.capacity + i] == slot &&
                    memcmp(&want, &got.scores[q * lists.capacity + i], sizeof want) == 0;
      CHECK(is_found == is_hit, "query %zu, slot %zu, score %.9g: found %d", q, slot, (double)want, is_found);
    }
    CHECK(got.n[q] == n_want, "query %zu: %u items instead of %zu", q, got.n[q], n_want);
  }
  host_lists_free(&got);
  lists_free(&lists);
  device_free(&device_floors);
}

static void check_scores(const struct catalogue *c, size_t n_queries)
{
  size_t hidden = c->shape.gate_hidden, n_query = c->shape.n_query_components * c->shape.component_dim;
  size_t work = mol_score_work_bytes(&c->shape, N_BLOCKS);
  struct scorer s = { .query = floats_new(n_queries * n_query, 0.3f),
                      .query_gate = floats_new(n_queries * c->n_logits, 2.0f),
                      .items = floats_new(c->shape.n_item_components * c->shape.component_dim * MOL_LANES, 0),
                      .item_gates = floats_new(c->n_logits * MOL_LANES, 0),
                      .scratch = floats_new(mol_scratch_floats(&c->shape), 0) };
  float *weights[] = { floats_new(c->n_logits * hidden, 0.3f), floats_new(hidden, 1.0f),
                       floats_new(c->n_logits * hidden, 0.3f), floats_new(c->n_logits, 1.0f) };
  float *packed[] = { floats_new(c->n_logits * hidden, 0), floats_new(c->n_logits * hidden, 0) };

  CHECK_OK(kernels_get(isa_detect(), &s.kernels));
  mol_pack(weights[0], c->n_logits, hidden, packed[0]);
  mol_pack(weights[2], hidden, c->n_logits, packed[1]);
  s.gate = (struct mol_gate){ packed[0], weights[1], packed[1], weights[3] };
  struct mol_score_input in = {
    .shape = c->shape,
    .gate = { padded_to_device(weights[0], c->n_logits, hidden), padded_to_device(weights[1], 1, hidden),
              padded_to_device(weights[2], hidden, c->n_logits), padded_to_device(weights[3], 1, c->n_logits) },
    .rows = c->device_rows,
    .components = to_device(s.query, n_queries * n_query * sizeof(float)),
    .gates = to_device(s.query_gate, n_queries * c->n_logits * sizeof(float)),
    .n_queries = n_queries,
    .n_blocks = N_BLOCKS,
    .work = work ? device_zeros(work) : NULL
  };
  check_list_scores(c, &s, &in);
  if (c->n_logits * hidden <= 64 * 128) /* the reference takes long for larger models */
    check_list_lengths(c, &s, &in);
  check_append_scores(c, &s, &in);
  const void *of_device[] = { in.gate.w1, in.gate.b1, in.gate.w2, in.gate.b2, in.components, in.gates, in.work };
  for (size_t i = 0; i < sizeof of_device / sizeof of_device[0]; i++)
    device_free(&of_device[i]);
  float *of_host[] = { s.query,    s.query_gate, s.items,    s.item_gates, s.scratch, weights[0],
                       weights[1], weights[2],   weights[3], packed[0],    packed[1] };
  for (size_t i = 0; i < sizeof of_host / sizeof of_host[0]; i++)
    free(of_host[i]);
}

/* Averages -------------------- */

static float dot(const float *a, const float *b, size_t n)
{
  float sum = 0.0f;

  for (size_t k = 0; k < n; k++)
    sum = fmaf(a[k], b[k], sum);
  return sum;
}

/* The largest distance allowed between a bound and the dot product: twice the error, because the product itself may be
 * off by the error. */
static float slack_of(size_t dim)
{
  return 0x1.2p-9f + (float)dim * 0x1.8p-19f;
}

/* The items that each query admits, as bits. */
static struct {
  uint64_t *bits[QUERIES_MAX];     /* NULL: all */
  const uint64_t *of[QUERIES_MAX]; /* the same on the device */
} words;

static void draw_words(const struct catalogue *c, size_t n_queries)
{
  size_t n = c->n_padded / TILE;

  for (size_t q = 0; q < n_queries; q++) {
    words.bits[q] = dice_below(&dice, 4) ? calloc(n, sizeof *words.bits[q]) : NULL;
    for (size_t i = 0; words.bits[q] && i < n; i++)
      words.bits[q][i] = dice_below(&dice, 3) ? dice_u64(&dice) & dice_u64(&dice) : 0;
    words.of[q] = words.bits[q] ? to_device(words.bits[q], n * sizeof *words.bits[q]) : NULL;
  }
}

static void drop_words(size_t n_queries)
{
  for (size_t q = 0; q < n_queries; q++) {
    free(words.bits[q]);
    words.bits[q] = NULL;
    device_free(&words.of[q]);
  }
}

static bool counts(const struct catalogue *c, size_t q, size_t slot)
{
  return slot < c->n_slots && c->present[slot] && (!words.bits[q] || words.bits[q][slot / 64] >> slot % 64 & 1);
}

static void check_maxima(const struct catalogue *c, const struct average_scan_input *in, const float *queries,
                         size_t stride)
{
  size_t n_tiles = (c->n_padded / TILE + stride - 1) / stride, n = n_tiles * AVERAGE_SCAN_MAXIMA;
  float *device = device_zeros(in->n_queries * n * sizeof *device);

  CHECK_OK(average_scan_maxima(stream, in, c->n_slots, stride, n_tiles, device));
  float *maxima = from_device(device, in->n_queries * n * sizeof *maxima);
  for (size_t q = 0; q < in->n_queries; q++) {
    for (size_t i = 0; i < n; i++) {
      float most = -INFINITY, got = maxima[q * n + i];
      for (size_t j = 0; j < TILE / AVERAGE_SCAN_MAXIMA; j++) {
        size_t slot = i / AVERAGE_SCAN_MAXIMA * stride * TILE + i % AVERAGE_SCAN_MAXIMA * 2 + j / 2 * 8 + j % 2;
        if (counts(c, q, slot))
          most = fmaxf(most, dot(queries + q * in->dim, average_of(c, slot), in->dim));
      }
      CHECK(got <= most, "query %zu, maximum %zu: the lower bound %.9g is above %.9g", q, i, (double)got, (double)most);
      CHECK(isinf(most) || got >= most - slack_of(in->dim),
            "query %zu, maximum %zu: the lower bound %.9g is far below %.9g", q, i, (double)got, (double)most);
    }
  }
  free(maxima);
  device_free(&device);
}

/* Use items' own dot products as floors. Those items must be found. */
static void check_append(const struct catalogue *c, const struct average_scan_input *in, const float *queries,
                         size_t first)
{
  struct device_lists lists = lists_new(in->n_queries, c->n_slots);
  float floors[QUERIES_MAX];
  uint8_t *is_found = calloc(c->n_slots, 1);

  for (size_t q = 0; q < in->n_queries; q++)
    floors[q] = dot(queries + q * in->dim, average_of(c, dice_below(&dice, c->n_slots)), in->dim);
  float *device_floors = to_device(floors, in->n_queries * sizeof *floors);
  CHECK_OK(average_scan_append(stream, in, first, c->n_slots - first, device_floors, &lists));
  struct host_lists got = lists_read(&lists);
  for (size_t q = 0; q < in->n_queries; q++) {
    memset(is_found, 0, c->n_slots);
    for (size_t i = 0; i < got.n[q]; i++) {
      uint32_t slot = got.slots[q * lists.capacity + i];
      CHECK(slot >= first && counts(c, q, slot) && !is_found[slot], "slot %u is not one to find", slot);
      is_found[slot] = 1;
    }
    for (size_t slot = first; slot < c->n_slots; slot++) {
      float product = dot(queries + q * in->dim, average_of(c, slot), in->dim);
      CHECK(is_found[slot] || !counts(c, q, slot) || product < floors[q], "query %zu: slot %zu with %.9g is lost", q,
            slot, (double)product);
      CHECK(!is_found[slot] || product >= floors[q] - slack_of(in->dim),
            "query %zu: slot %zu with %.9g is far below %.9g", q, slot, (double)product, (double)floors[q]);
    }
  }
  host_lists_free(&got);
  lists_free(&lists);
  device_free(&device_floors);
  free(is_found);
}

/* Append all items that count to lists that are too short for them. One list more must stay empty. */
static void check_append_full(const struct catalogue *c, const struct average_scan_input *in)
{
  struct device_lists lists = lists_new(in->n_queries + 1, c->n_slots / 3 + 1);
  float floors[QUERIES_MAX];
  uint8_t *is_found = calloc(c->n_slots, 1);

  for (size_t q = 0; q < in->n_queries; q++)
    floors[q] = -INFINITY;
  float *device_floors = to_device(floors, in->n_queries * sizeof *floors);
  CHECK_OK(average_scan_append(stream, in, 0, c->n_slots, device_floors, &lists));
  struct host_lists got = lists_read(&lists);
  for (size_t q = 0; q < in->n_queries; q++) {
    size_t n = 0;
    memset(is_found, 0, c->n_slots);
    for (size_t slot = 0; slot < c->n_slots; slot++)
      n += counts(c, q, slot);
    CHECK(got.n[q] == n, "query %zu: %u items reach no floor, not %zu", q, got.n[q], n);
    for (size_t i = 0; i < n && i < lists.capacity; i++) {
      uint32_t slot = got.slots[q * lists.capacity + i];
      CHECK(counts(c, q, slot) && !is_found[slot], "query %zu: slot %u is not one to find", q, slot);
      is_found[slot] = 1;
    }
  }
  for (size_t i = 0; i < lists.capacity; i++)
    CHECK(got.slots[in->n_queries * lists.capacity + i] == 0, "an entry lies behind the last list");
  host_lists_free(&got);
  lists_free(&lists);
  device_free(&device_floors);
  free(is_found);
}

/* Check the exact dot products of list entries; excluded items get -inf. */
static void check_average_scores(const struct catalogue *c, const struct average_scan_input *in, const float *queries)
{
  struct device_lists lists = lists_new(in->n_queries, c->n_slots);
  float floors[QUERIES_MAX];
  uint32_t firsts[QUERIES_MAX + 1] = { 0 }, *slots = calloc(c->n_slots * in->n_queries, sizeof *slots);

  for (size_t q = 0; q < in->n_queries; q++) {
    floors[q] = -INFINITY;
    firsts[q + 1] = firsts[q];
    for (size_t slot = q; slot < c->n_slots; slot += 3 + q)
      slots[firsts[q + 1]++] = (uint32_t)slot;
  }
  float *device_floors = to_device(floors, in->n_queries * sizeof *floors);
  CHECK_OK(average_scan_append(stream, in, 0, c->n_slots, device_floors, &lists));
  struct average_score_input score = { .rows = c->device_rows,
                                       .offset = (c->row_floats - 1 - in->dim) * sizeof(float),
                                       .dim = in->dim,
                                       .queries = in->queries,
                                       .excluded = { to_device(firsts, sizeof firsts),
                                                     to_device(slots, firsts[in->n_queries] * sizeof *slots) } };
  CHECK_OK(average_score_lists(stream, &score, &lists));
  struct host_lists got = lists_read(&lists);
  for (size_t q = 0; q < in->n_queries; q++) {
    for (size_t i = 0; i < got.n[q]; i++) {
      uint32_t slot = got.slots[q * lists.capacity + i];
      bool is_excluded = slot >= q && (slot - q) % (3 + q) == 0;
      float want = is_excluded ? -INFINITY : dot(queries + q * in->dim, average_of(c, slot), in->dim);
      CHECK(memcmp(&want, &got.scores[q * lists.capacity + i], sizeof want) == 0, "query %zu: slot %u has another dot",
            q, slot);
    }
  }
  host_lists_free(&got);
  lists_free(&lists);
  device_free(&device_floors);
  device_free(&score.excluded.firsts);
  device_free(&score.excluded.slots);
  free(slots);
}

/* A query beyond half's range has no bounds: it must find all items, and its maxima are -inf. */
static void check_unbounded(const struct catalogue *c, struct average_scan_input in)
{
  float *query = calloc(in.dim, sizeof *query), floor = 1.0f,
        *maxima = device_zeros(AVERAGE_SCAN_MAXIMA * sizeof(float));
  struct device_lists lists = lists_new(1, c->n_slots);
  size_t n_present = 0;

  for (size_t k = 0; k < in.dim; k++)
    query[k] = k % 2 ? 1e6f : -1e6f;
  in.queries = to_device(query, in.dim * sizeof *query);
  in.n_queries = 1;
  float *device_floor = to_device(&floor, sizeof floor);
  CHECK_OK(average_scan_append(stream, &in, 0, c->n_slots, device_floor, &lists));
  CHECK_OK(average_scan_maxima(stream, &in, c->n_slots, 1, 1, maxima));
  struct host_lists got = lists_read(&lists);
  float *found = from_device(maxima, AVERAGE_SCAN_MAXIMA * sizeof *found);
  for (size_t slot = 0; slot < c->n_slots; slot++)
    n_present += c->present[slot];
  CHECK(got.n[0] == n_present, "a query without bounds found %u items of %zu", got.n[0], n_present);
  for (size_t i = 0; i < AVERAGE_SCAN_MAXIMA; i++)
    CHECK(isinf(found[i]) && found[i] < 0, "a query without bounds has a lower bound: %g", (double)found[i]);
  host_lists_free(&got);
  lists_free(&lists);
  device_free(&in.queries);
  device_free(&device_floor);
  device_free(&maxima);
  free(found);
  free(query);
}

static void check_averages(const struct catalogue *c, size_t n_queries)
{
  size_t dim = c->shape.component_dim;
  float *queries = calloc(n_queries * dim, sizeof *queries);

  for (size_t q = 0; q < n_queries; q++)
    draw_average(queries + q * dim, dim);
  struct average_scan_input in = { .present = c->device_rows.present,
                                   .items = { .averages = c->device.averages, .residuals = c->device.residuals },
                                   .dim = dim,
                                   .queries = to_device(queries, n_queries * dim * sizeof *queries),
                                   .n_queries = n_queries,
                                   .n_blocks = 1 };
  check_maxima(c, &in, queries, 1);
  check_maxima(c, &in, queries, 3);
  check_append(c, &in, queries, 0);
  check_append(c, &in, queries, c->n_slots > TILE ? TILE : 0);
  check_average_scores(c, &in, queries);
  check_unbounded(c, in);
  draw_words(c, n_queries);
  in.admitted.of = to_device(words.of, n_queries * sizeof words.of[0]);
  check_maxima(c, &in, queries, 1);
  check_maxima(c, &in, queries, 2);
  check_append(c, &in, queries, 0);
  check_append_full(c, &in);
  device_free(&in.admitted.of);
  drop_words(n_queries);
  device_free(&in.queries);
  free(queries);
}

static void check_shape(struct mol_shape shape, size_t n_slots, size_t n_queries)
{
  struct catalogue c = catalogue_open(shape, n_slots);

  check_copies(&c);
  check_averages(&c, n_queries);
  check_scores(&c, n_queries < 3 ? n_queries : 3);
  catalogue_close(&c);
}

int main(void)
{
  dice.state = dice_seed();
  check_begin("gpu_mol_kernels");
  CHECK_OK(device_stream_open(&stream));
  check_shape((struct mol_shape){ 8, 8, 32, 128, 20.0f }, 200, 33);
  check_shape((struct mol_shape){ 8, 4, 64, 128, 20.0f }, 100, 9);
  check_shape((struct mol_shape){ 2, 3, 5, 7, 20.0f }, 700, 40);
  check_shape((struct mol_shape){ 1, 1, 1, 1, 3.0f }, 130, 8);
  check_shape((struct mol_shape){ 3, 2, 301, 20, 7.0f }, 65, 2);    /* a component in several pieces */
  check_shape((struct mol_shape){ 16, 17, 3, 1200, 20.0f }, 40, 2); /* tiles exceed shared memory */
  check_shape((struct mol_shape){ 1, 1, 9000, 3, 20.0f }, 70, 3);   /* queries read from global memory */
  check_shape((struct mol_shape){ 1, 1, 20, 1, 20.0f }, 2500, 33);  /* several tiles for each warp of a scan */
  check_shape((struct mol_shape){ 1, 1, 40, 1, 20.0f }, 2500, 20);
  check_shape((struct mol_shape){ 1, 1, 48, 1, 20.0f }, 2100, 4);
#ifdef SLUICE_CUDA_MODEL
  cuda_model_set_shared(99 * 1024); /* a card with room for tiles, but not for the weights */
  check_shape((struct mol_shape){ 8, 8, 32, 128, 20.0f }, 100, 3);
#endif
  device_stream_close(&stream);
  return check_end("gpu_mol_kernels");
}
