/* SPDX-License-Identifier: Apache-2.0 */
/* The values of --boost, --boost-if and --now. Thread: any. */
#ifndef DAEMON_CTL_CTL_BOOSTS_H
#define DAEMON_CTL_CTL_BOOSTS_H

#include "base/query.h"

/* The boosts of a command line, in their order. They borrow its texts. All zeros: none. */
struct ctl_boosts {
  struct boost v[QUERY_BOOSTS_MAX];
  const char *texts[QUERY_BOOSTS_MAX]; /* as given */
  size_t n;
  bool has_now; /* the next field is given */
  int64_t now_unix_ms;
};

/* Take "WEIGHT:ATTRIBUTE" or "WEIGHT:ATTRIBUTE:HALF_LIFE", for a row of options. Returns ERR_USAGE.
 *
 * boosts  a struct ctl_boosts, which gets one more
 */
err_t ctl_boosts_take(void *boosts, const char *text);

/* The same of "WEIGHT:FILTER". */
err_t ctl_boosts_take_if(void *boosts, const char *text);

/* The same of the time of --now: milliseconds since 1970, or what ctl_option_time() reads. */
err_t ctl_boosts_take_now(void *boosts, const char *text);

#endif
