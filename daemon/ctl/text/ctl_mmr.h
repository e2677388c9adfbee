/* SPDX-License-Identifier: Apache-2.0 */
/* The value of --mmr. Thread: any. */
#ifndef DAEMON_CTL_CTL_MMR_H
#define DAEMON_CTL_CTL_MMR_H

#include "base/query.h"

/* Take "DIVERSITY" or "DIVERSITY:CANDIDATES", for a row of options. Returns ERR_USAGE.
 *
 * mmr  a struct mmr
 */
err_t ctl_mmr_take(void *mmr, const char *text);

#endif
