/* SPDX-License-Identifier: Apache-2.0 */
/* The table of Mixture-of-Logits methods (MoL paper, section 3). */
#include "engine/mol/mol_methods.h"

static const struct method_row rows[] = {
  {
      .name = "exact",
      .is_exact = true,
      .search = METHOD_SEARCHES(mol_search_exact, mol_cuda_search_exact),
      .summary = "the K best: full scores only for items that may reach them",
  },
  {
      .name = "brute_force",
      .is_exact = true,
      .search = METHOD_SEARCHES(mol_search_brute_force, mol_cuda_search_exact), /* on a GPU no faster, and the same */
      .summary = "the K best: a full score for every item",
  },
  {
      .name = "two_pass",
      .is_exact = true,
      .search = METHOD_SEARCHES(mol_search_two_pass, mol_cuda_search_two_pass),
      .summary = "the K best, by the paper's Algorithm 1",
  },
  {
      .name = "average",
      .args = { { .name = "N" } },
      .search = METHOD_SEARCHES(mol_search_average, mol_cuda_search_average),
      .summary = "full scores for the N best by averaged vectors",
  },
  {
      .name = "per_embedding",
      .args = { { .name = "N" } },
      .search = METHOD_SEARCHES(mol_search_per_embedding, mol_cuda_search_per_embedding),
      .summary = "full scores for the N best of each pair of component vectors",
  },
  {
      .name = "combined",
      .args = { { .name = "N1" }, { .name = "N2" } },
      .search = METHOD_SEARCHES(mol_search_combined, mol_cuda_search_combined),
      .summary = "full scores for the candidates of per_embedding(N1) and average(N2)",
  },
};

const struct methods mol_methods = { rows, sizeof rows / sizeof rows[0] };
