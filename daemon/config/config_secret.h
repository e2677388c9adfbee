/* SPDX-License-Identifier: Apache-2.0 */
/* Values that the configuration refers to instead of having them: passwords and other secrets of Kafka clients.
 * Thread: one. */
#ifndef DAEMON_CONFIG_CONFIG_SECRET_H
#define DAEMON_CONFIG_CONFIG_SECRET_H

#include <stdbool.h>

#include "base/err.h"
#include "base/span.h"

enum { CONFIG_SECRET_BYTES_MAX = 65536 };

/* Does the text refer to a value: credential:NAME, file:PATH or env:NAME? */
bool config_secret_is_reference(struct span text);

/* Get the value that a text stands for: what it refers to, without the line break at the end; the rest of literal:TEXT;
 * any other text itself.
 *
 * directory  where relative paths start, with a slash at the end; "" for the working directory
 * out        the caller frees it with mem_free()
 *
 * Returns ERR_CONFIG with what the text refers to, why that cannot be used, and what helps. Logs a warning if others
 * may read the file. Blocks: on the file.
 */
err_t config_secret_read(const char *directory, struct span text, char **out);

/* Must the value of a property not be shown? Passwords and keys never; what is referred to only if everybody may know
 * it, as the address of a broker. */
bool config_secret_is_secret(const char *name, bool is_reference);

#endif
