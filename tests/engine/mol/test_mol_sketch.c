/* SPDX-License-Identifier: Apache-2.0 */
/* The slack of sketches covers the rounding of both sides: products of bytes are compared with those in double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "engine/mol/mol_sketch.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { COMPONENTS = 3, DIM_MAX = 20, PADDED_MAX = 20, ROUNDS = 2000 };

static struct dice dice;

/* A vector of length 1. An axis turns into bytes without an error. */
static void draw(float *out, size_t dim, bool is_axis)
{
  double sum = 0;

  dice_fill(&dice, out, dim, 1.0f);
  if (is_axis) {
    memset(out, 0, dim * sizeof *out);
    out[dice_below(&dice, dim)] = 1.0f;
  }
  for (size_t k = 0; k < dim; k++)
    sum += (double)out[k] * (double)out[k];
  for (size_t k = 0; k < dim; k++)
    out[k] = (float)((double)out[k] / sqrt(sum));
}

/* By how many units does the product of two sketches differ from the real one? n is the query's row. */
static double error_of(const struct mol_query_sketch *sketch, const float *f, size_t n, const uint8_t *bytes,
                       const float *g, size_t dim)
{
  double dot = 0;
  int32_t sum = -sketch->scales[n].offset;

  for (size_t k = 0; k < dim; k++) {
    dot += (double)f[k] * (double)g[k];
    sum += sketch->rows.bytes[(k / 4 * sketch->rows.n_rows + n) * 4 + k % 4] * (int32_t)bytes[k];
  }
  return fabs(dot * sketch->scales[n].units - sum);
}

static void the_slack_covers_the_rounding_of_queries_and_items(void **state)
{
  struct region region = { 0 };
  float query[COMPONENTS * DIM_MAX], components[COMPONENTS * DIM_MAX], average[DIM_MAX] = { 0 }, residual;
  uint8_t bytes[COMPONENTS * PADDED_MAX];
  int16_t short_average[DIM_MAX + 1];
  struct mol_item item = {
    .components = components, .average = average, .sketch = bytes, .short_average = short_average, .residual = &residual
  };

  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    size_t dim = 2 + dice_below(&dice, DIM_MAX - 1), padded = (dim + 3) / 4 * 4;
    const struct mol_shape shape = { COMPONENTS, COMPONENTS, .component_dim = dim };
    struct mol_query_sketch sketch;
    for (size_t i = 0; i < COMPONENTS; i++) {
      draw(query + i * dim, dim, dice_below(&dice, 3) == 0);
      draw(components + i * dim, dim, dice_below(&dice, 3) == 0);
    }
    region_reset(&region);
    mol_sketch_item(&shape, &item);
    assert_ok(mol_sketch_query(&shape, query, residual, &region, &sketch));
    for (size_t n = 0; n < COMPONENTS; n++) {
      for (size_t m = 0; m < COMPONENTS; m++)
        assert_true(error_of(&sketch, query + n * dim, n, bytes + m * padded, components + m * dim, dim) <=
                    sketch.scales[n].slack);
    }
  }
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_slack_covers_the_rounding_of_queries_and_items),
  };

  dice.state = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
