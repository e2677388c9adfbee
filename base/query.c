/* SPDX-License-Identifier: Apache-2.0 */
/* What several folders need of queries and answers: limits, the names of errors, the order of hits, and the sum of
 * counts. */
#include "base/query.h"

#include "base/size.h"

/* Candidates of mmr for each hit, unless the query says how many. */
enum { MMR_USUAL = 5 };

const char *const query_error_words[QUERY_ERRORS] = {
  [ANSWER_BAD_QUERY] = "BAD_QUERY",
  [ANSWER_UNKNOWN_SPACE] = "UNKNOWN_SPACE",
  [ANSWER_UNKNOWN_METHOD] = "UNKNOWN_METHOD",
  [ANSWER_DEADLINE_PASSED] = "DEADLINE_PASSED",
  [ANSWER_NOT_SEEN] = "NOT_SEEN",
  [ANSWER_UNAVAILABLE] = "UNAVAILABLE",
  [ANSWER_INTERNAL] = "INTERNAL",
  [ANSWER_PARTIAL] = "PARTIAL",
};

err_t query_verify_parameters(const struct value *parameters, size_t n)
{
  size_t n_values = 0;

  for (size_t i = 0; i < n; i++)
    n_values += parameters[i].kind == VALUE_LIST ? parameters[i].list.n : 1;
  if (n_values > QUERY_PARAMETER_VALUES_MAX)
    FAIL(ERR_QUERY, "parameters: %zu values, at most %d", n_values, QUERY_PARAMETER_VALUES_MAX);
  return ERR_OK;
}

int query_compare_hits(const void *a, const void *b)
{
  const struct hit *x = a, *y = b;

  if (x->score != y->score)
    return x->score > y->score ? -1 : 1;
  return span_compare(x->key, y->key);
}

void query_add_counts(const struct counts *round, struct counts *out)
{
  out->scored = size_min(out->scored + round->scored, out->items);
  out->candidates = size_min(out->candidates + round->candidates, out->items);
}

uint32_t query_mmr_candidates(const struct query *query, size_t max_k)
{
  size_t most = size_min(max_k, QUERY_MMR_MAX);

  if (query->mmr.candidates)
    return query->mmr.candidates;
  return (uint32_t)size_max(query->k, size_min(MMR_USUAL * (size_t)query->k, most));
}
