/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a URL in the configuration. Thread: any. */
#ifndef DAEMON_CONFIG_CONFIG_URL_H
#define DAEMON_CONFIG_CONFIG_URL_H

#include <stdbool.h>

#include "base/err.h"
#include "base/span.h"

/* Verify that a text is an HTTP URL. It may have no user name, password or query: these are often secrets,
 * and /status shows the URL.
 *
 * Returns ERR_CONFIG with what is expected.
 */
err_t config_url_verify(struct span text);

/* Does a URL that was verified have a path? */
bool config_url_has_path(const char *url);

#endif
