/* SPDX-License-Identifier: Apache-2.0 */
/* The message of a catalogue topic in somebody's own Protobuf. Thread: any. */
#ifndef DAEMON_CONFIG_CONFIG_MESSAGE_H
#define DAEMON_CONFIG_CONFIG_MESSAGE_H

#include "daemon/config/config.h"
#include "ingest/protobuf/protobuf_source.h"

/* Read the message that the settings name, and verify that the paths of catalogue.mapping lead to its fields.
 *
 * Returns ERR_CONFIG with the line of what is wrong, and what to do; ERR_SYSTEM; ERR_MEMORY. Blocks: on the file. */
err_t config_message_open(const struct config *c, struct protobuf_source **out);

#endif
