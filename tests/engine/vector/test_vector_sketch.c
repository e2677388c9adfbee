/* SPDX-License-Identifier: Apache-2.0 */
/* Sketches: scores in double precision stay within the slack, for vectors that are made to be awkward. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/vector/vector_sketch.h"
#include "tests/support/assert_ok.h"
#include "tests/support/blocks.h"

static struct dice dice;

/* How a vector is drawn. */
enum draw {
  DRAW_UNIFORM,
  DRAW_ZERO,
  DRAW_ONE_SPIKE,  /* one number dominates */
  DRAW_HALF_STEPS, /* numbers halfway between two steps of the sketch */
  DRAW_HUGE,       /* numbers as large as items may have */
  DRAW_DENORMAL,
  DRAW_ALL_SCALES, /* numbers of very different sizes in one vector */
  DRAW_EQUAL,
  DRAW_TINY_OR_HUGE,
  N_DRAWS
};

static float draw_number(enum draw draw, size_t k)
{
  float sign = dice_below(&dice, 2) ? 1.0f : -1.0f;

  switch (draw) {
  case DRAW_ZERO:
    return 0.0f * sign;
  case DRAW_ONE_SPIKE:
    return k == 3 ? 77.7f * sign : dice_float(&dice, 1e-3f);
  case DRAW_HALF_STEPS:
    return sign * (k == 0 ? 127.0f : (float)dice_below(&dice, 126) + 0.5f) * 0.01f;
  case DRAW_HUGE:
    return sign * 1e9f;
  case DRAW_DENORMAL:
    return dice_float(&dice, 1e-39f);
  case DRAW_ALL_SCALES:
    return sign * ldexpf(1.0f + dice_float(&dice, 0.5f), (int)dice_below(&dice, 178) - 149);
  case DRAW_EQUAL:
    return 0.3f;
  case DRAW_TINY_OR_HUGE:
    return dice_below(&dice, 2) ? dice_float(&dice, 1e-37f) : dice_float(&dice, 1e9f);
  default:
    return dice_float(&dice, 1.0f);
  }
}

static void draw_vector(enum draw draw, size_t dim, float *out)
{
  for (size_t k = 0; k < dim; k++)
    out[k] = draw_number(draw, k);
}

static double norm_of(const float *v, size_t n)
{
  double sum = 0;

  for (size_t k = 0; k < n; k++)
    sum += (double)v[k] * (double)v[k];
  return sqrt(sum);
}

/* An item's score for the worst query that the slack covers: q changed by up to 2^-22 |q| to raise or lower the score,
 * plus a tail. */
static float true_score(const float *q, const float *v, size_t dim, double direction, double residual)
{
  double sum = residual, v_norm = norm_of(v, dim), step = direction * 0x1p-22 * norm_of(q, dim);

  for (size_t k = 0; k < dim; k++)
    sum += ((double)q[k] + (v_norm > 0 ? step * (double)v[k] / v_norm : 0)) * (double)v[k];
  return (float)sum;
}

struct catalogue {
  struct vector_sketch sketch;
  size_t dim, n;
  float *vectors; /* [n][dim] */
  float *tails;
};

static void check_query(const struct catalogue *c, const float *q, double tail, enum isa isa)
{
  size_t n_blocks = (c->n + SKETCH_BLOCK_ITEMS - 1) / SKETCH_BLOCK_ITEMS, n = n_blocks * SKETCH_BLOCK_ITEMS;
  float *bounds = block_new(n, sizeof *bounds);
  struct region region = { 0 };
  const struct kernels *kernels;
  struct vector_sketch_query query;

  assert_ok(kernels_get(isa, &kernels));
  assert_ok(vector_sketch_query_init(c->dim, q, tail, &region, &query));
  struct vector_sketch_set set = vector_sketch_set_of(&c->sketch, 0, c->n);
  vector_sketch_bounds(&set, &query, kernels, bounds);
  for (size_t i = 0; i < c->n; i++) {
    for (int direction = -1; direction <= 1; direction++) {
      double residual = c->tails ? direction * tail * (double)c->tails[i] : 0;
      float wanted = true_score(q, c->vectors + i * c->dim, c->dim, direction, residual);
      float lower = vector_sketch_lower_bound(&c->sketch, &query, (uint32_t)i, bounds[i]);
      if (!(lower <= wanted && wanted <= bounds[i]))
        fail_msg("item %zu of dimension %zu: score %.9g, bounds %.9g and %.9g", i, c->dim, (double)wanted,
                 (double)lower, (double)bounds[i]);
    }
  }
  region_fini(&region);
  free(bounds);
}

static struct catalogue catalogue_new(size_t dim, size_t n, bool has_tails)
{
  struct catalogue c = { .dim = dim, .n = n };

  c.vectors = block_new(n * dim, sizeof *c.vectors);
  c.tails = has_tails ? block_new(n, sizeof *c.tails) : NULL;
  assert_ok(vector_sketch_init(dim, n, has_tails, &c.sketch));
  for (size_t i = 0; i < n; i++) {
    draw_vector((enum draw)dice_below(&dice, N_DRAWS), dim, c.vectors + i * dim);
    if (has_tails)
      c.tails[i] = fabsf(draw_number((enum draw)dice_below(&dice, N_DRAWS), 3));
    vector_sketch_put(&c.sketch, (uint32_t)i, c.vectors + i * dim, has_tails ? c.tails[i] : 0.0f);
  }
  return c;
}

static void catalogue_free(struct catalogue *c)
{
  vector_sketch_fini(&c->sketch);
  free(c->vectors);
  free(c->tails);
}

static void check_dimension(size_t dim, size_t n, bool has_tails)
{
  struct catalogue c = catalogue_new(dim, n, has_tails);
  float *q = block_new(dim, sizeof *q);

  for (enum draw draw = DRAW_UNIFORM; draw < N_DRAWS; draw++) {
    draw_vector(draw, dim, q);
    for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++)
      check_query(&c, q, (double)fabsf(draw_number(draw, 3)), isa);
  }
  free(q);
  catalogue_free(&c);
}

static void no_score_lies_outside_the_slack(void **state)
{
  static const size_t large[] = { 128, 255, 300, 768, 1030, 4096 };

  (void)state;
  for (size_t dim = 1; dim < 68; dim++)
    check_dimension(dim, 40, dim % 2);
  for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
    check_dimension(large[i], 33, i % 2);
}

/* The worst query points along the item's rounding error. */
static void no_score_lies_outside_the_slack_of_the_worst_query(void **state)
{
  enum { DIM = 96, ITEMS = 32 };
  float q[DIM];

  (void)state;
  for (int round = 0; round < 20; round++) {
    struct catalogue c = catalogue_new(DIM, ITEMS, false);
    for (size_t i = 0; i < ITEMS; i++) {
      double scale = (double)c.sketch.scales[i];
      for (size_t k = 0; k < DIM; k++) {
        double v = (double)c.vectors[i * DIM + k], number = scale > 0 ? fmax(fmin(rint(v / scale), 127), -127) : 0;
        q[k] = (float)(v - scale * number);
      }
      check_query(&c, q, 0, isa_detect());
      for (size_t k = 0; k < DIM; k++)
        q[k] = -q[k];
      check_query(&c, q, 0, isa_detect());
    }
    catalogue_free(&c);
  }
}

/* Sketches are useful only if, on ordinary vectors, the slack is a small part of |q| |v|. */
static void the_slack_of_ordinary_vectors_is_small(void **state)
{
  enum { DIM = 128, ITEMS = 64 };
  float v[DIM], q[DIM], bounds[ITEMS];
  struct region region = { 0 };
  const struct kernels *kernels;
  struct vector_sketch_query query;
  struct vector_sketch sketch;

  (void)state;
  assert_ok(kernels_get(isa_detect(), &kernels));
  assert_ok(vector_sketch_init(DIM, ITEMS, false, &sketch));
  dice_fill(&dice, q, DIM, 1.0f);
  assert_ok(vector_sketch_query_init(DIM, q, 0, &region, &query));
  for (uint32_t i = 0; i < ITEMS; i++) {
    dice_fill(&dice, v, DIM, 1.0f);
    vector_sketch_put(&sketch, i, v, 0);
  }
  struct vector_sketch_set set = vector_sketch_set_of(&sketch, 0, ITEMS);
  vector_sketch_bounds(&set, &query, kernels, bounds);
  for (size_t i = 0; i < ITEMS; i++)
    assert_true(((double)bounds[i] - (double)vector_sketch_lower_bound(&sketch, &query, (uint32_t)i, bounds[i])) / 2 <
                0.006 * norm_of(q, DIM) * norm_of(v, DIM) * 1.3);
  vector_sketch_fini(&sketch);
  region_fini(&region);
}

static void a_moved_item_keeps_its_sketch(void **state)
{
  enum { DIM = 37, ITEMS = 50 };
  struct catalogue c = catalogue_new(DIM, ITEMS, true);
  float q[DIM];

  (void)state;
  dice_fill(&dice, q, DIM, 1.0f);
  for (int i = 0; i < 200; i++) {
    size_t from = dice_below(&dice, ITEMS), to = dice_below(&dice, ITEMS);
    if (from == to)
      continue;
    vector_sketch_move(&c.sketch, (uint32_t)from, (uint32_t)to);
    memcpy(c.vectors + to * DIM, c.vectors + from * DIM, DIM * sizeof(float));
    c.tails[to] = c.tails[from];
  }
  check_query(&c, q, 0.5, isa_detect());
  catalogue_free(&c);
}

/* Some slots, and queries with the bounds of all slots. */
struct listing {
  size_t n;
  uint32_t *slots; /* [n] */
  struct vector_sketch_query queries[VECTOR_SKETCH_QUERIES];
  float *wanted[VECTOR_SKETCH_QUERIES];
};

static struct listing listing_new(const struct catalogue *c, size_t n, const struct kernels *kernels,
                                  struct region *region)
{
  size_t n_all = (c->n + SKETCH_BLOCK_ITEMS - 1) / SKETCH_BLOCK_ITEMS * SKETCH_BLOCK_ITEMS;
  struct vector_sketch_set all = vector_sketch_set_of(&c->sketch, 0, c->n);
  struct listing l = { .n = n, .slots = block_new(n, sizeof *l.slots) };
  float *vector = block_new(c->dim, sizeof *vector);

  for (size_t i = 0; i < n; i++)
    l.slots[i] = (uint32_t)dice_below(&dice, c->n);
  for (size_t q = 0; q < VECTOR_SKETCH_QUERIES; q++) {
    dice_fill(&dice, vector, c->dim, 1.0f);
    assert_ok(vector_sketch_query_init(c->dim, vector, 0.5, region, &l.queries[q]));
    l.wanted[q] = block_new(n_all, sizeof *l.wanted[q]);
    vector_sketch_bounds(&all, &l.queries[q], kernels, l.wanted[q]);
  }
  free(vector);
  return l;
}

static void listing_free(struct listing *l)
{
  for (size_t q = 0; q < VECTOR_SKETCH_QUERIES; q++)
    free(l->wanted[q]);
  free(l->slots);
}

static void check_bounds_of_slots(const struct listing *l, size_t q, const float *bounds)
{
  for (size_t i = 0; i < l->n; i++)
    assert_memory_equal(&bounds[i], &l->wanted[q][l->slots[i]], sizeof(float));
}

/* The bounds of a list, arranged or not, are those of the same slots in a row. */
static void check_listed(const struct catalogue *c, size_t n, size_t n_queries)
{
  const struct vector_sketch_query *queries[VECTOR_SKETCH_QUERIES];
  float *bounds = block_new(n + SKETCH_BLOCK_ITEMS, sizeof *bounds);
  struct vector_sketch_room room = { 0 };
  struct region region = { 0 };
  const struct kernels *kernels;

  assert_ok(kernels_get(isa_detect(), &kernels));
  struct listing l = listing_new(c, n, kernels, &region);
  assert_ok(vector_sketch_room_init(&c->sketch, n, n_queries > 0, &region, &room));
  struct vector_sketch_set set = vector_sketch_set_listed(&c->sketch, l.slots, n, &room);
  vector_sketch_bounds(&set, &l.queries[0], kernels, bounds);
  check_bounds_of_slots(&l, 0, bounds);
  for (size_t q = 0; q < n_queries; q++)
    queries[q] = &l.queries[q];
  if (n_queries > 0) {
    vector_sketch_set_arrange(&set, kernels, &room);
    vector_sketch_multiply(&set, queries, n_queries, kernels, &room);
  }
  for (size_t q = 0; q < n_queries; q++) {
    vector_sketch_bounds_at(&set, queries, q, kernels, &room, bounds);
    check_bounds_of_slots(&l, q, bounds);
  }
  listing_free(&l);
  region_fini(&region);
  free(bounds);
}

static void listed_sketches_have_the_bounds_of_their_slots(void **state)
{
  static const size_t dims[] = { 1, 4, 37, 64, 100, 208, 1030 };

  (void)state;
  for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
    struct catalogue c = catalogue_new(dims[i], 90, i % 2);
    for (size_t n = 0; n < 40; n++)
      check_listed(&c, n, dice_below(&dice, VECTOR_SKETCH_QUERIES + 1));
    check_listed(&c, 1500, 0);
    check_listed(&c, 1500, VECTOR_SKETCH_QUERIES);
    catalogue_free(&c);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_score_lies_outside_the_slack),
    cmocka_unit_test(no_score_lies_outside_the_slack_of_the_worst_query),
    cmocka_unit_test(the_slack_of_ordinary_vectors_is_small),
    cmocka_unit_test(a_moved_item_keeps_its_sketch),
    cmocka_unit_test(listed_sketches_have_the_bounds_of_their_slots),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
