/* SPDX-License-Identifier: Apache-2.0 */
/* From the configuration to the exporter of spans, in every role. Thread: main. */
#ifndef DAEMON_SETUP_TRACING_SETUP_H
#define DAEMON_SETUP_TRACING_SETUP_H

#include "daemon/config/config.h"
#include "daemon/tracing/tracing.h"

/* Open the exporter if there is a collector. Everything outlives it. `*out` stays NULL if there is none. */
err_t tracing_setup_open(const struct config *config, struct counters *counters, struct alarm *alarm,
                         struct tracing **out);

#endif
