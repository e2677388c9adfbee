/* SPDX-License-Identifier: Apache-2.0 */
/* The quantiles that people look at. */
#include "daemon/http/print/quantiles_json.h"

#include "daemon/http/print/json_put.h"

json_t *quantiles_json(const struct hist_window *w, const struct hist *h)
{
  json_t *object = json_object();

  json_put_count(object, "count", hist_window_count(w, h));
  json_put_count(object, "p50", hist_window_quantile(w, h, 0.5));
  json_put_count(object, "p95", hist_window_quantile(w, h, 0.95));
  json_put_count(object, "p99", hist_window_quantile(w, h, 0.99));
  return object;
}
