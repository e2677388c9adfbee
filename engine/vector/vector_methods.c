/* SPDX-License-Identifier: Apache-2.0 */
/* The method tables of inner products. Bilinear has one method more than the others (bilinear paper, section 5). */
#include "engine/vector/vector_methods.h"

#include "engine/vector/vector_model.h"

static uint32_t max_rank(const struct model *model)
{
  return (uint32_t)vector_model_of(model)->dim;
}

/* On a GPU, bounds in half precision always pay: brute_force is served by the exact search, with the same answer. */
#define EXACT                                                                          \
  .name = "exact", .is_exact = true, .checks_late = true, .items_per_member = 1 << 15, \
  .search = METHOD_SEARCHES(vector_search_exact, vector_cuda_search_exact)
#define BRUTE_FORCE                                                     \
  .name = "brute_force", .is_exact = true, .items_per_member = 1 << 13, \
  .search = METHOD_SEARCHES(vector_search_brute_force, vector_cuda_search_exact), .summary = "every item in full"

static const struct method_row vector_rows[] = {
  { EXACT, .summary = "8-bit sketches first, full scores only for items that may reach the top k" },
  { BRUTE_FORCE },
};

static const struct method_row bilinear_rows[] = {
  { EXACT, .summary = "the same as for dot, on items rotated by the SVD of W" },
  { BRUTE_FORCE },
  {
      .name = "low_rank",
      .args = { { .name = "R", .model_max = max_rank } },
      .items_per_member = 1 << 13,
      .queries_per_claim = 8, /* queries share the sketches of a chunk */
      .search = METHOD_SEARCHES(vector_search_low_rank, vector_cuda_search_low_rank),
      .summary = "the k best under W cut to rank R, rescored with W",
  },
};

const struct methods vector_methods = { vector_rows, sizeof vector_rows / sizeof vector_rows[0] };
const struct methods bilinear_methods = { bilinear_rows, sizeof bilinear_rows / sizeof bilinear_rows[0] };
