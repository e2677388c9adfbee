/* SPDX-License-Identifier: Apache-2.0 */
/* Loading the rows of an array: an item's vector or codes in one space each. */
#ifndef DAEMON_CTL_CTL_LOAD_ARRAY_H
#define DAEMON_CTL_CTL_LOAD_ARRAY_H

#include "daemon/ctl/load/ctl_loading.h"

/* Verify the whole array and its keys against what the daemon's space needs, then send its rows.
 *
 * Returns ERR_ITEM with the row, or what the space needs; ERR_USAGE; the errors of Kafka.
 */
err_t ctl_load_array(struct ctl_loading *l);

#endif
