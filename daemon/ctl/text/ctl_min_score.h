/* SPDX-License-Identifier: Apache-2.0 */
/* The value of --min-score. Thread: any. */
#ifndef DAEMON_CTL_CTL_MIN_SCORE_H
#define DAEMON_CTL_CTL_MIN_SCORE_H

#include <stdbool.h>

#include "base/err.h"

/* All zeros: not given. */
struct ctl_min_score {
  bool is_given;
  double score; /* finite, as a float too */
};

/* Take "SCORE", for a row of options. Returns ERR_USAGE.
 *
 * min_score  a struct ctl_min_score
 */
err_t ctl_min_score_take(void *min_score, const char *text);

#endif
