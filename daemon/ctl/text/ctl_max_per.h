/* SPDX-License-Identifier: Apache-2.0 */
/* The value of --max-per. Thread: any. */
#ifndef DAEMON_CTL_CTL_MAX_PER_H
#define DAEMON_CTL_CTL_MAX_PER_H

#include "base/query.h"

/* Take "ATTRIBUTE:N", for a row of options. Returns ERR_USAGE.
 *
 * max_per  a struct max_per, which borrows the text
 */
err_t ctl_max_per_take(void *max_per, const char *text);

#endif
