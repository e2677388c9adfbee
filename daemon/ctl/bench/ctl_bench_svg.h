/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram of sluicectl bench as a drawing. */
#ifndef DAEMON_CTL_CTL_BENCH_SVG_H
#define DAEMON_CTL_CTL_BENCH_SVG_H

#include "daemon/ctl/bench/ctl_bench_report.h"

/* Verify that a drawing can be written there. Files stay as they are. Returns ERR_SYSTEM with the path. */
err_t ctl_bench_svg_verify(const char *path);

/* Draw the histogram on a logarithmic axis, with a line at each percentile. Returns ERR_SYSTEM with the path. */
err_t ctl_bench_svg_write(const char *path, const struct ctl_bench_report *report);

#endif
