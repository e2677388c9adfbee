/* SPDX-License-Identifier: Apache-2.0 */
/* An attribute's name has no colon, so the number is behind the last one. */
#include "daemon/ctl/text/ctl_max_per.h"

#include <string.h>

#include "base/log.h"
#include "daemon/ctl/text/ctl_option.h"

err_t ctl_max_per_take(void *max_per, const char *text)
{
  const char *colon = strrchr(text, ':');
  uint64_t n;

  if (!colon || colon == text)
    FAIL(ERR_USAGE, "--max-per expects an attribute and a number, such as artist:2, not %s",
         log_quote(span_of_str(text)));
  TRY(ctl_option_number("--max-per", colon + 1, 1, UINT32_MAX, &n));
  *(struct max_per *)max_per = (struct max_per){ span_of(text, (size_t)(colon - text)), (uint32_t)n };
  return ERR_OK;
}
