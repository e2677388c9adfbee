/* SPDX-License-Identifier: Apache-2.0 */
/* The form of the catalogue's records, from the configuration. Thread: one. */
#ifndef DAEMON_CATALOGUE_CATALOGUE_FORMAT_H
#define DAEMON_CATALOGUE_CATALOGUE_FORMAT_H

#include "daemon/config/config.h"
#include "ingest/wire/item_format.h"

/* Make the format. On error, what has been made is in `out`. The caller frees it with mapping_fini(). Returns
 * ERR_MEMORY; the errors of avro_schemas_open() and config_message_open(). The rest of the configuration was checked
 * when it was read. */
err_t catalogue_format_init(const struct config *config, struct item_format *out);

#endif
