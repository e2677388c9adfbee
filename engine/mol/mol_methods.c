/* SPDX-License-Identifier: Apache-2.0 */
/* The table of Mixture-of-Logits methods (MoL paper, section 3). */
#include "engine/mol/mol_methods.h"

static const struct method_row rows[] = {
  {
      .name = "exact",
      .is_exact = true,
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
      .search = METHOD_SEARCHES(mol_search_two_pass, mol_cuda_search_two_pass),
      .summary = "Algorithm 1 of the MoL paper",
  },
  {
      .name = "average",
      .args = { { .name = "N" } },
      .search = METHOD_SEARCHES(mol_search_average, mol_cuda_search_average),
      .summary = "the N best by averaged components; of these, full scores for those that may reach the top k",
  },
  {
      .name = "per_embedding",
      .args = { { .name = "N" } },
      .search = METHOD_SEARCHES(mol_search_per_embedding, mol_cuda_search_per_embedding),
      .summary = "the N best of each pair of components; of these, full scores for those that may reach the top k",
  },
  {
      .name = "combined",
      .args = { { .name = "N1" }, { .name = "N2" } },
      .search = METHOD_SEARCHES(mol_search_combined, mol_cuda_search_combined),
      .summary = "the candidates of per_embedding(N1) and average(N2)",
  },
};

const struct methods mol_methods = { rows, sizeof rows / sizeof rows[0] };
