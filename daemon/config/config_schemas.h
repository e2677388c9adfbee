/* SPDX-License-Identifier: Apache-2.0 */
/* Where the schemas of a catalogue topic in Avro are. Thread: any. */
#ifndef DAEMON_CONFIG_CONFIG_SCHEMAS_H
#define DAEMON_CONFIG_CONFIG_SCHEMAS_H

#include "daemon/config/config.h"
#include "ingest/avro/avro_schemas.h"

/* The texts belong to the configuration. */
struct avro_sources config_schemas(const struct config *c);

#endif
