/* SPDX-License-Identifier: Apache-2.0 */
/* Show and accept a rebuild: a new catalogue that the daemon builds while it serves the old one. Used by sluicectl
 * rebuild and sluicectl status. Thread: one. */
#ifndef DAEMON_CTL_CTL_REBUILD_H
#define DAEMON_CTL_CTL_REBUILD_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

/* Print the progress of a rebuild, whether it waits for acceptance, and why.
 *
 * rebuild  as in /status: {"number": 3, "items": 10, "live_items": 19900, "waits": true, "reason": "..."}; NULL:
 *          nothing is printed
 */
void ctl_rebuild_print(const json_t *rebuild, FILE *out);

/* Get the number of the rebuild that waits for acceptance. Returns ERR_SYSTEM if none does. */
err_t ctl_rebuild_waiting(const json_t *rebuild, uint64_t *number);

/* Accept a rebuild by writing its number to a file in the store's directory. Any user who may write there may accept.
 * The file appears complete or not at all. Returns ERR_SYSTEM with the path. */
err_t ctl_rebuild_write(const char *store_path, uint64_t number);

#endif
