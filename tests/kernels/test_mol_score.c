/* SPDX-License-Identifier: Apache-2.0 */
/* mol_score(): every level against the scalar reference, to the last bit; the reference against the formulas in double;
 * every level against golden data of the paper authors' implementation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/kernels.h"
#include "tests/support/mol_case.h"

static struct dice dice;

static void mol_run(const struct mol_case *c, enum isa isa, float phi[MOL_LANES])
{
  struct mol_gate gate = gate_new(c);
  float *scratch = block_new_aligned(mol_scratch_floats(&c->shape), sizeof *scratch);
  float *out = block_new(MOL_LANES, sizeof *out);
  const struct kernels *k = NULL;
  const float *lines[] = { c->items, c->query, c->item_gates, NULL, c->items }; /* prefetching NULL is harmless */
  struct mol_prefetch prefetch = { lines, dice_below(&dice, 6) };

  assert_int_equal(kernels_get(isa, &k), ERR_OK);
  k->mol_score(&c->shape, &gate, c->query, c->query_gate, c->items, c->item_gates, scratch, isa % 2 ? &prefetch : NULL,
               out);
  memcpy(phi, out, MOL_LANES * sizeof *phi);
  gate_free(&gate);
  free(out);
  free(scratch);
}

static void assert_same_phi(const float *found, const float *wanted, const struct mol_shape *s, enum isa isa)
{
  for (size_t i = 0; i < MOL_LANES; i++) {
    if (memcmp(&found[i], &wanted[i], sizeof found[i]) != 0)
      fail_msg("%s, %zux%zux%zu, hidden %zu: phi[%zu] is %a, not %a", isa_name(isa), s->n_query_components,
               s->n_item_components, s->component_dim, s->gate_hidden, i, (double)found[i], (double)wanted[i]);
  }
}

static void check_same(const struct mol_case *c)
{
  float wanted[MOL_LANES], found[MOL_LANES];

  mol_run(c, ISA_REF, wanted);
  for (size_t i = 0; i < MOL_LANES; i++)
    assert_true(isfinite(wanted[i]));
  for (enum isa isa = ISA_AVX2; isa <= isa_detect(); isa++) {
    mol_run(c, isa, found);
    assert_same_phi(found, wanted, &c->shape, isa);
  }
}

static const struct mol_shape shapes[] = {
  { 8, 8, 32, 128, 20.0f }, { 8, 4, 64, 128, 20.0f }, { 5, 3, 12, 19, 20.0f }, { 1, 1, 1, 1, 20.0f },
  { 3, 7, 13, 33, 20.0f },  { 2, 1, 67, 5, 1.0f },    { 16, 2, 8, 66, 20.0f }, { 9, 9, 4, 8, 100.0f },
};

enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void phi_is_the_same_at_every_level(void **state)
{
  (void)state;
  for (size_t i = 0; i < N_SHAPES; i++) {
    for (int fill = 0; fill < N_FILLS; fill++) {
      struct mol_case c = mol_new(&dice, shapes[i], (enum fill)fill);
      check_same(&c);
      mol_free(&c);
    }
  }
}

static void phi_is_the_same_at_every_level_for_odd_shapes(void **state)
{
  (void)state;
  for (size_t i = 0; i < 150; i++) {
    struct mol_shape shape = { 1 + dice_below(&dice, 18), 1 + dice_below(&dice, 9), 1 + dice_below(&dice, 40),
                               1 + dice_below(&dice, 67), 20.0f };
    struct mol_case c = mol_new(&dice, shape, (enum fill)(i % N_FILLS));
    check_same(&c);
    mol_free(&c);
  }
}

/* With gates of 1e4 on both sides SiLU and the softmax saturate: one logit gets all the weight. */
static void saturated_gates_give_a_logit(void **state)
{
  (void)state;
  for (size_t i = 0; i < N_SHAPES; i++) {
    struct mol_case c = mol_new(&dice, shapes[i], FILL_RANDOM);
    scale_floats(c.query_gate, n_logits_of(&c.shape), 1e4f);
    scale_floats(c.item_gates, n_logits_of(&c.shape) * MOL_LANES, 1e4f);
    check_same(&c);
    float phi[MOL_LANES];
    mol_run(&c, ISA_REF, phi);
    for (size_t lane = 0; lane < MOL_LANES; lane++)
      assert_true(fabsf(phi[lane]) <= 1.0001f * c.shape.inv_temperature);
    mol_free(&c);
  }
}

/* In double -------------------- */

static double silu(double x)
{
  return x / (1 + exp(-x));
}

static void logits_in_double(const struct mol_case *c, size_t lane, double *l)
{
  size_t n_items = c->shape.n_item_components, dim = c->shape.component_dim;

  for (size_t p = 0; p < n_logits_of(&c->shape); p++) {
    const float *query = c->query + p / n_items * dim;
    const float *item = c->items + p % n_items * dim * MOL_LANES + lane;
    l[p] = 0;
    for (size_t k = 0; k < dim; k++)
      l[p] += (double)query[k] * (double)item[k * MOL_LANES];
    l[p] *= c->shape.inv_temperature;
  }
}

static void gates_in_double(const struct mol_case *c, size_t lane, const double *l, double *s)
{
  size_t n_logits = n_logits_of(&c->shape), n_hidden = c->shape.gate_hidden;
  double hidden[256];

  assert_true(n_hidden <= 256);
  for (size_t j = 0; j < n_hidden; j++) {
    hidden[j] = c->b1[j];
    for (size_t p = 0; p < n_logits; p++)
      hidden[j] += l[p] * (double)c->w1[p * n_hidden + j];
    hidden[j] = silu(hidden[j]);
  }
  for (size_t p = 0; p < n_logits; p++) {
    double w = c->b2[p];
    for (size_t j = 0; j < n_hidden; j++)
      w += hidden[j] * (double)c->w2[j * n_logits + p];
    s[p] = silu((double)c->query_gate[p] * (double)c->item_gates[p * MOL_LANES + lane] + w);
  }
}

static double phi_in_double(const struct mol_case *c, size_t lane)
{
  size_t n_logits = n_logits_of(&c->shape);
  double l[256], s[256], max = -INFINITY, den = 0, num = 0;

  assert_true(n_logits <= 256);
  logits_in_double(c, lane, l);
  gates_in_double(c, lane, l, s);
  for (size_t p = 0; p < n_logits; p++)
    max = fmax(max, s[p]);
  for (size_t p = 0; p < n_logits; p++) {
    den += exp(s[p] - max);
    num += exp(s[p] - max) * l[p];
  }
  return num / den;
}

static void phi_is_close_to_its_formula(void **state)
{
  (void)state;
  for (size_t i = 0; i < N_SHAPES; i++) {
    struct mol_case c = mol_new(&dice, shapes[i], FILL_RANDOM);
    float phi[MOL_LANES];
    mol_run(&c, ISA_REF, phi);
    for (size_t lane = 0; lane < MOL_LANES; lane++) {
      double wanted = phi_in_double(&c, lane), tolerance = 2e-5 * c.shape.inv_temperature;
      if (!(fabs((double)phi[lane] - wanted) <= tolerance))
        fail_msg("shape %zu, lane %zu: %.9g, not %.9g", i, lane, (double)phi[lane], wanted);
    }
    mol_free(&c);
  }
}

/* Golden data -------------------- */

struct golden_pairs {
  const float *item_components, *item_gates, *query_components, *query_gates, *phi;
  const double *phi_f64;
  size_t n_queries, n_items;
};

static struct golden_pairs golden_pairs(const struct golden *g, const struct mol_shape *s)
{
  struct golden_pairs p = { .n_queries = golden_extent(g, "phi", 0), .n_items = golden_extent(g, "phi", 1) };
  size_t n_logits = n_logits_of(s);

  p.query_components = GOLDEN_F32(g, "q_comp", p.n_queries, s->n_query_components, s->component_dim);
  p.query_gates = GOLDEN_F32(g, "gate_q", p.n_queries, n_logits);
  p.item_components = GOLDEN_F32(g, "x_comp", p.n_items, s->n_item_components, s->component_dim);
  p.item_gates = GOLDEN_F32(g, "gate_x", p.n_items, n_logits);
  p.phi = GOLDEN_F32(g, "phi", p.n_queries, p.n_items);
  p.phi_f64 = GOLDEN_F64(g, "phi_f64", p.n_queries, p.n_items);
  return p;
}

static void check_golden_block(struct mol_case *c, const struct golden_pairs *g, const struct kernels *k, enum isa isa,
                               size_t first)
{
  size_t n = g->n_items - first < MOL_LANES ? g->n_items - first : MOL_LANES;
  size_t n_logits = n_logits_of(&c->shape), n_query = c->shape.n_query_components * c->shape.component_dim;
  float phi[MOL_LANES];

  transpose_tile(k, g->item_components, first, n, c->shape.n_item_components * c->shape.component_dim, c->items);
  transpose_tile(k, g->item_gates, first, n, n_logits, c->item_gates);
  for (size_t b = 0; b < g->n_queries; b++) {
    memcpy(c->query, g->query_components + b * n_query, n_query * sizeof *c->query);
    memcpy(c->query_gate, g->query_gates + b * n_logits, n_logits * sizeof *c->query_gate);
    mol_run(c, isa, phi);
    for (size_t i = 0; i < n; i++) {
      size_t at = b * g->n_items + first + i;
      if (!(fabs((double)phi[i] - g->phi_f64[at]) <= 1e-4) || !(fabsf(phi[i] - g->phi[at]) <= 1e-4f))
        fail_msg("query %zu, item %zu: %.9g, not %.9g (f32: %.9g)", b, first + i, (double)phi[i], g->phi_f64[at],
                 (double)g->phi[at]);
    }
  }
}

static void check_golden(const char *weights_path, const char *expected_path)
{
  struct golden *weights = golden_open(weights_path), *expected = golden_open(expected_path);
  struct mol_case c = mol_case_of_golden(weights);
  struct golden_pairs pairs = golden_pairs(expected, &c.shape);

  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    const struct kernels *k = NULL;
    assert_int_equal(kernels_get(isa, &k), ERR_OK);
    for (size_t first = 0; first < pairs.n_items; first += MOL_LANES)
      check_golden_block(&c, &pairs, k, isa, first);
  }
  mol_free(&c);
  golden_close(&expected);
  golden_close(&weights);
}

static void phi_is_the_authors_phi_for_books(void **state)
{
  (void)state;
  check_golden("books/weights.safetensors", "books/expected.safetensors");
}

static void phi_is_the_authors_phi_with_user_tables(void **state)
{
  (void)state;
  check_golden("small_uid/weights.safetensors", "small_uid/expected.safetensors");
}

static void phi_is_the_authors_phi_for_odd_shapes_and_extreme_vectors(void **state)
{
  (void)state;
  check_golden("edge/weights.safetensors", "edge/expected.safetensors");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(phi_is_the_same_at_every_level),
    cmocka_unit_test(phi_is_the_same_at_every_level_for_odd_shapes),
    cmocka_unit_test(saturated_gates_give_a_logit),
    cmocka_unit_test(phi_is_close_to_its_formula),
    cmocka_unit_test(phi_is_the_authors_phi_for_books),
    cmocka_unit_test(phi_is_the_authors_phi_with_user_tables),
    cmocka_unit_test(phi_is_the_authors_phi_for_odd_shapes_and_extreme_vectors),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
