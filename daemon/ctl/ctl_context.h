/* SPDX-License-Identifier: Apache-2.0 */
/* What every command needs: the configuration, the daemon's address, and properties for Kafka clients. Thread: one. */
#ifndef DAEMON_CTL_CTL_CONTEXT_H
#define DAEMON_CTL_CTL_CONTEXT_H

#include <jansson.h>

#include "base/region.h"
#include "daemon/config/config.h"
#include "daemon/ctl/ctl_command.h"
#include "daemon/ctl/ctl_json.h"
#include "daemon/ctl/http_get.h"

struct ctl_context {
  struct config *config;
  struct http_get *http;
  struct region region; /* properties, until the context is closed */
  char *bootstrap;      /* of the embedded broker, once the daemon has told it; else NULL */
};

enum { CTL_KAFKA_TIMEOUT_MS = 10000, CTL_HTTP_TIMEOUT_MS = 5000 };

err_t ctl_context_open(const struct ctl_options *options, struct ctl_context **out);
void ctl_context_close(struct ctl_context **ctx);

/* Properties of a client of the cluster that one of the daemon's clients is on.
 *
 * defaults  what this command wants unless the configuration says otherwise; valid as long as `out`
 * of        the daemon's client: of its own properties those that say where the broker is and who we are are taken
 * out       valid until the context is closed
 *
 * With the embedded broker the daemon is asked for its address. Returns ERR_SYSTEM when it does not answer.
 */
err_t ctl_context_layers(struct ctl_context *ctx, const struct kafka_property *defaults, size_t n_defaults,
                         const struct kafka_properties *of, struct kafka_layers *out);

/* The daemon's /status. The caller owns it: json_decref().
 * Returns ERR_SYSTEM with the address when it does not answer or the answer is no status. */
err_t ctl_context_status(struct ctl_context *ctx, json_t **out);

#endif
