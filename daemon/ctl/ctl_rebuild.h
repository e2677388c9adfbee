/* SPDX-License-Identifier: Apache-2.0 */
/* A catalogue that the daemon builds anew beside the one that it serves, as /status tells of it: what is common to
 * sluicectl rebuild and sluicectl status. Thread: one. */
#ifndef DAEMON_CTL_CTL_REBUILD_H
#define DAEMON_CTL_CTL_REBUILD_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

/* Say how far it is and whether it waits, and for what.
 *
 * rebuild  {"number": 3, "items": 10, "live_items": 19900, "waits": true, "reason": "..."}; NULL: nothing is printed
 */
void ctl_rebuild_print(const json_t *rebuild, FILE *out);

/* Verify that a rebuild waits for being accepted, and give its number. Returns ERR_SYSTEM where none does. */
err_t ctl_rebuild_waiting(const json_t *rebuild, uint64_t *number);

/* Write the number into the store's directory; whoever may write there may accept. The file is there whole or not at
 * all. Returns ERR_SYSTEM with the path. */
err_t ctl_rebuild_write(const char *store_path, uint64_t number);

#endif
