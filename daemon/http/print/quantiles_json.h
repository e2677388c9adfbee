/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles of a histogram as /status has them. Thread: any. */
#ifndef DAEMON_HTTP_QUANTILES_JSON_H
#define DAEMON_HTTP_QUANTILES_JSON_H

#include <jansson.h>

#include "base/hist.h"

/* Return `count`, `p50`, `p95` and `p99` of the values in the window, which the caller owns. */
json_t *quantiles_json(const struct hist_window *w, const struct hist *h);

#endif
