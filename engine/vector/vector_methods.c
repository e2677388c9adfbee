/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of methods of inner products: bilinear has one more than the others (bilinear paper, section 5). */
#include "engine/vector/vector_methods.h"

#include "engine/vector/vector_model.h"

static uint32_t max_rank(const struct model *model)
{
  return (uint32_t)vector_model_of(model)->dim;
}

static const struct method_row rows[] = {
  {
      .name = "exact",
      .is_exact = true,
      .search = METHOD_SEARCHES(vector_search_exact, vector_cuda_search_exact),
      .summary = "the K best: full scores only for items that may reach them",
  },
  {
      .name = "brute_force",
      .is_exact = true,
      /* On a GPU, bounds in half precision always pay, and the answer is the same. */
      .search = METHOD_SEARCHES(vector_search_brute_force, vector_cuda_search_exact),
      .summary = "the K best: a full score for every item",
  },
  {
      .name = "low_rank",
      .args = { { .name = "R", .model_max = max_rank } },
      .search = METHOD_SEARCHES(vector_search_low_rank, vector_cuda_search_low_rank),
      .summary = "the K best by W cut to rank R, in the order of their scores under W",
  },
};

enum { N_BILINEAR = sizeof rows / sizeof rows[0], N_VECTOR = N_BILINEAR - 1 /* without low_rank */ };

const struct methods vector_methods = { rows, N_VECTOR };
const struct methods bilinear_methods = { rows, N_BILINEAR };
