/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of bounds on Mixture-of-Logits scores run with: this machine's kernels, and the same with tiles in plain C
 * (mol_bounds_model.h). Both need AVX-512; tests are skipped without. */
#ifndef TESTS_SUPPORT_MOL_BOUNDS_TABLES_H
#define TESTS_SUPPORT_MOL_BOUNDS_TABLES_H

#include "tests/support/mol_bounds_model.h"

static struct kernels machine; /* the table of this machine */
static struct kernels model;   /* the same with tiles in plain C */

static inline int open_model(void **state)
{
  const struct kernels *k = NULL;

  (void)state;
  if (isa_detect() < ISA_AVX512)
    return 0;
  if (kernels_get(isa_detect(), &k) != ERR_OK)
    return -1;
  model = machine = *k;
  model.mol_bounds = mol_bounds_model;
  return 0;
}

static inline void skip_without_avx512(void)
{
  if (isa_detect() < ISA_AVX512)
    skip();
}

#endif
