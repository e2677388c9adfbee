/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on the outputs of layers. */
#include "engine/mol/mol_range.h"

#include <float.h>
#include <math.h>

#include "base/mem.h"
#include "engine/model/shape_check.h"

/* The largest number of a query or an item. */
static const double input_max = (double)SHAPE_CHECK_NUMBER_MAX;

/* Bound the outputs of a layer, for inputs of at most x. */
static err_t bound_outputs(const struct mol_linear *l, double x, double *bound)
{
  AUTO(mem_free) double *sums = NULL;

  TRY(mem_array(l->n_out, sizeof *sums, &sums));
  for (size_t i = 0; i < l->n_in; i++)
    for (size_t j = 0; j < l->n_out; j++)
      sums[j] += fabs((double)l->w[i * l->n_out + j]) * x;
  *bound = 0;
  for (size_t j = 0; j < l->n_out; j++)
    *bound = fmax(*bound, sums[j] + (l->b ? fabs((double)l->b[j]) : 0));
  return ERR_OK;
}

err_t mol_range_verify(const char *file, const char *prefix, const struct mol_projection *p)
{
  double hidden = input_max, components;

  if (p->glu.w) {
    TRY(bound_outputs(&p->glu, input_max, &hidden));
    hidden *= hidden; /* no activation is larger than its input */
  }
  TRY(bound_outputs(&p->out, hidden, &components));
  if (!(fmax(hidden, components) <= (double)FLT_MAX))
    FAIL(ERR_MODEL, "%s: the weights of %s are too large: numbers of up to %g, which are accepted, could become %g",
         file, prefix, input_max, fmax(hidden, components));
  return ERR_OK;
}
