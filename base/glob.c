/* SPDX-License-Identifier: Apache-2.0 */
#include "base/glob.h"

/* Of several stars only the newest ever has to take more: what stands before it has matched, and may stay as short as
 * it is. So the time is at most pattern times text. */
bool glob_check(const char *pattern, struct span text)
{
  const char *star = NULL;
  size_t star_i = 0, i = 0;

  while (i < text.n) {
    if (*pattern == '*') {
      star = pattern++;
      star_i = i;
    } else if (*pattern && (*pattern == '?' || (uint8_t)*pattern == text.p[i])) {
      pattern++;
      i++;
    } else if (star) {
      pattern = star + 1;
      i = ++star_i;
    } else {
      return false;
    }
  }
  while (*pattern == '*')
    pattern++;
  return *pattern == '\0';
}
