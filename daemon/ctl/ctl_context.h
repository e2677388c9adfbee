/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that talk to the daemon share: its configuration, its HTTP address, and properties for Kafka
 * clients. Thread: one. */
#ifndef DAEMON_CTL_CTL_CONTEXT_H
#define DAEMON_CTL_CTL_CONTEXT_H

#include <jansson.h>

#include "base/region.h"
#include "daemon/config/config.h"
#include "daemon/ctl/ctl_command.h"
#include "daemon/ctl/text/ctl_json.h"
#include "daemon/ctl/http_get.h"

struct ctl_context {
  struct config *config;
  struct http_get *http;
  struct region region; /* memory for properties */
  char *bootstrap;      /* address of the embedded broker, once the daemon was asked; else NULL */
};

enum { CTL_KAFKA_TIMEOUT_MS = 10000 };

err_t ctl_context_open(const struct ctl_options *options, struct ctl_context **out);
void ctl_context_close(struct ctl_context **ctx);

/* The same for a command that only asks the daemon: it needs no passwords, so its user need not be able to read them.
 * ctl_context_layers() must not be called then. */
err_t ctl_context_open_for_http(const struct ctl_options *options, struct ctl_context **out);

/* The same for a command that suggests a catalogue.mapping: there need be none yet. It also reads the password of the
 * schema registry. */
err_t ctl_context_open_for_mapping(const struct ctl_options *options, struct ctl_context **out);

/* Verify that a configuration is that of a daemon with a catalogue: a merge has none, and its configuration need not
 * name the catalogue's topics. Returns ERR_CONFIG with the remedy. */
err_t ctl_context_verify_catalogue(const struct config *config);

/* Make the properties for a client of the same cluster as one of the daemon's clients. If the embedded broker is
 * enabled, the daemon is asked for its address.
 *
 * defaults  this command's own defaults; the configuration overrides them; valid as long as `out`
 * of        properties of the daemon's client; only those for address and authentication are used
 * out       valid until the context is closed
 *
 * Returns ERR_SYSTEM if the daemon does not answer.
 */
err_t ctl_context_layers(struct ctl_context *ctx, const struct kafka_property *defaults, size_t n_defaults,
                         const struct kafka_properties *of, struct kafka_layers *out);

#endif
