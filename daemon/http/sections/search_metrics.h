/* SPDX-License-Identifier: Apache-2.0 */
/* Print the figures of the searches by space and method. Thread: any. */
#ifndef DAEMON_HTTP_SEARCH_METRICS_H
#define DAEMON_HTTP_SEARCH_METRICS_H

#include <stdio.h>

#include "daemon/search_figures.h"
#include "engine/engine.h"

void search_metrics_print(const struct search_figures *figures, struct engine *engine, FILE *out);

#endif
