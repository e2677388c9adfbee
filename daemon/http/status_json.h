/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the daemon as JSON. Thread: any. */
#ifndef DAEMON_HTTP_STATUS_JSON_H
#define DAEMON_HTTP_STATUS_JSON_H

#include <jansson.h>

#include "daemon/http/status.h"

/* Return the fields of /status, which the caller owns. NULL: out of memory; where it runs out within, fields are
 * missing.
 *
 * shows_data  false: `complaints` is null, because the log names items and users
 */
json_t *status_json_tree(struct status *s, bool shows_data);

/* Return the body of /status. The caller frees it with free(); NULL: out of memory. */
char *status_json(struct status *s, bool shows_data);

#endif
