/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of sluicectl layout, for people. Thread: one. */
#ifndef DAEMON_CTL_CTL_LAYOUT_PRINT_H
#define DAEMON_CTL_CTL_LAYOUT_PRINT_H

#include <stdio.h>

#include "daemon/ctl/layout/ctl_layout_check.h"

/* shows_positions  also print a row for each partition of each daemon */
void ctl_layout_print(const struct ctl_layout_daemons *daemons, const struct ctl_layouts *layouts,
                      const struct ctl_findings *findings, bool shows_positions, FILE *out);

#endif
