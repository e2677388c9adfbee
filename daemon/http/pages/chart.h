/* SPDX-License-Identifier: Apache-2.0 */
/* A small line chart of the last minutes, as SVG. Thread: any. */
#ifndef DAEMON_HTTP_CHART_H
#define DAEMON_HTTP_CHART_H

#include <stdio.h>

#include "daemon/http/history.h"

enum { CHART_LINES_MAX = 2 };

struct chart_line {
  const char *name;       /* "" if the chart has one line */
  size_t value;           /* offsetof() a double in struct moment */
  bool is_absent_if_zero; /* zero means that there was nothing to measure: the line has a gap */
};

struct chart {
  const char *title; /* what is drawn, and its unit */
  struct chart_line lines[CHART_LINES_MAX];
  size_t n_lines;
};

/* Print a figure: the title, the newest values, and the lines.
 *
 * moments  [n], oldest first; n <= HISTORY_MAX
 */
void chart_print(FILE *out, const struct chart *chart, const struct moment *moments, size_t n);

#endif
