/* SPDX-License-Identifier: Apache-2.0 */
/* What came of comparing generations, as a field of /status and as metrics for Prometheus. Thread: any. */
#ifndef DAEMON_HTTP_SHADOW_STATUS_H
#define DAEMON_HTTP_SHADOW_STATUS_H

#include <jansson.h>
#include <stdio.h>

#include "daemon/shadow/shadow_board.h"

/* Make the field of a generation; null if it was never to be compared.
 *
 * space  its name
 */
json_t *shadow_status_json(struct shadow_board *board, const char *space, uint32_t generation);

/* Print the metrics. Without a board there are only their heads. */
void shadow_status_metrics(struct shadow_board *board, FILE *out);

#endif
