/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that tests of Mixture-of-Logits bounds run with: this machine's, and the same with tiles in plain C
 * (mol_bounds_model.h). Both need AVX-512; without it the tests are skipped. */
#ifndef TESTS_SUPPORT_MOL_BOUNDS_TABLES_H
#define TESTS_SUPPORT_MOL_BOUNDS_TABLES_H

#include "tests/support/mol_bounds_model.h"

static struct kernels machine; /* this machine's table */
static struct kernels model;   /* the same, with tiles in plain C */

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
