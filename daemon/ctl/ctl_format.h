/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them. Thread: any. */
#ifndef DAEMON_CTL_CTL_FORMAT_H
#define DAEMON_CTL_CTL_FORMAT_H

#include "base/err.h"
#include "base/span.h"

enum { CTL_TEXT_BYTES = 48 };

struct ctl_text {
  char s[CTL_TEXT_BYTES];
};

/* 63,000 */
struct ctl_text ctl_format_count(uint64_t n);

/* 3.2 s, 12 ms, 0.25 ms, 4 min 5 s, 3 h 12 min, 2 d 4 h; two digits at least */
struct ctl_text ctl_format_span(int64_t ns);

/* n per that time, to three digits: 19,700 */
struct ctl_text ctl_format_rate(uint64_t n, int64_t ns);

/* "item", "items" */
const char *ctl_plural(uint64_t n, const char *one, const char *many);

/* A whole number in [min, max] from a command line.
 * Returns ERR_USAGE, naming the option. */
err_t ctl_parse_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out);

#endif
