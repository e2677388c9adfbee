/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of a query that two folders check: where queries are decoded, and where filters are parsed. */
#include "base/query.h"

err_t query_verify_parameters(const struct value *parameters, size_t n)
{
  size_t n_values = 0;

  for (size_t i = 0; i < n; i++)
    n_values += parameters[i].kind == VALUE_LIST ? parameters[i].list.n : 1;
  if (n_values > QUERY_PARAMETER_VALUES_MAX)
    FAIL(ERR_QUERY, "parameters: %zu values, at most %d", n_values, QUERY_PARAMETER_VALUES_MAX);
  return ERR_OK;
}
