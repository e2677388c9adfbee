/* SPDX-License-Identifier: Apache-2.0 */
/* A number, and perhaps a colon and a count. */
#include "daemon/ctl/text/ctl_mmr.h"

#include <stdlib.h>

#include "base/log.h"
#include "daemon/ctl/text/ctl_option.h"

static err_t refuse(const char *text)
{
  FAIL(ERR_USAGE,
       "--mmr expects a number above 0, at most 1, and perhaps how many candidates, at most %d, such as 0.5 or "
       "0.5:100, not %s",
       QUERY_MMR_MAX, log_quote(span_of_str(text)));
}

err_t ctl_mmr_take(void *mmr, const char *text)
{
  char *end;
  uint64_t candidates = 0;
  double diversity = strtod(text, &end);

  if (!(diversity > 0 && diversity <= 1) || (*end && *end != ':'))
    return refuse(text);
  if (*end && ctl_option_number("--mmr", end + 1, 1, QUERY_MMR_MAX, &candidates) != ERR_OK)
    return refuse(text);
  *(struct mmr *)mmr = (struct mmr){ .diversity = diversity, .candidates = (uint32_t)candidates };
  return ERR_OK;
}
