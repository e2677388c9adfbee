/* SPDX-License-Identifier: Apache-2.0 */
/* A score is a number that a float can hold. */
#include "daemon/ctl/text/ctl_min_score.h"

#include <math.h>
#include <stdlib.h>

#include "base/log.h"

err_t ctl_min_score_take(void *min_score, const char *text)
{
  char *end;
  double score = strtod(text, &end);

  if (end == text || *end || !isfinite((float)score))
    FAIL(ERR_USAGE, "--min-score expects a number, such as 0.7, not %s", log_quote(span_of_str(text)));
  *(struct ctl_min_score *)min_score = (struct ctl_min_score){ true, score };
  return ERR_OK;
}
