/* SPDX-License-Identifier: Apache-2.0 */
/* Print the counters of the searches by space and method. Thread: any. */
#ifndef DAEMON_HTTP_SEARCH_METRICS_H
#define DAEMON_HTTP_SEARCH_METRICS_H

#include <stdio.h>

#include "daemon/counters/search_counters.h"
#include "engine/engine.h"

void search_metrics_print(const struct search_counters *search_counters, struct engine *engine, FILE *out);

#endif
