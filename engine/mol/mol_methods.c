/* SPDX-License-Identifier: Apache-2.0 */
/* The table of Mixture-of-Logits methods (MoL paper, section 3). */
#include "engine/mol/mol_methods.h"

static const struct method_row rows[] = {
  {
      .name = "exact",
      .is_exact = true,
      .checks_late = true,
      .items_per_member = 1024,
      .search = METHOD_SEARCHES(mol_search_exact, mol_cuda_search_exact),
      .summary = "cheap bounds first, full scores only for items that may reach the top k",
  },
  {
      .name = "brute_force",
      .is_exact = true,
      .items_per_member = 256,
      /* Brute force is no faster on a GPU, and the result is the same. */
      .search = METHOD_SEARCHES(mol_search_brute_force, mol_cuda_search_exact),
      .summary = "every item in full",
  },
  {
      .name = "two_pass",
      .is_exact = true,
      .items_per_member = 1024,
      .queries_per_claim = UINT32_MAX, /* queries share tiles */
      .search = METHOD_SEARCHES(mol_search_two_pass, mol_cuda_search_two_pass),
      .summary = "Algorithm 1 of the MoL paper",
  },
  {
      .name = "average",
      .args = { { .name = "N" } },
      .items_per_member = 1 << 15,
      .queries_per_claim = UINT32_MAX, /* queries share a pass */
      .search = METHOD_SEARCHES(mol_search_average, mol_cuda_search_average),
      .search_admitted = mol_search_admitted,
      .summary = "the N best by averaged components; of these, full scores for those that may reach the top k",
  },
  {
      .name = "per_embedding",
      .args = { { .name = "N" } },
      .items_per_member = 1 << 12,
      .queries_per_claim = UINT32_MAX,
      .search = METHOD_SEARCHES(mol_search_per_embedding, mol_cuda_search_per_embedding),
      .search_admitted = mol_search_admitted,
      .summary = "the N best of each pair of components; of these, full scores for those that may reach the top k",
  },
  {
      .name = "combined",
      .args = { { .name = "N1" }, { .name = "N2" } },
      .items_per_member = 1 << 12,
      .queries_per_claim = UINT32_MAX,
      .search = METHOD_SEARCHES(mol_search_combined, mol_cuda_search_combined),
      .search_admitted = mol_search_admitted,
      .summary = "the candidates of per_embedding(N1) and average(N2)",
  },
};

const struct methods mol_methods = { rows, sizeof rows / sizeof rows[0] };
