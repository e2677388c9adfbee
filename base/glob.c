/* SPDX-License-Identifier: Apache-2.0 */
/* Matching glob patterns without recursion. */
#include "base/glob.h"

/* On a mismatch, only the newest star needs to match one byte more: everything before it has matched as few bytes as
 * possible. So the time is at most the length of the pattern times that of the text. */
bool glob_matches(const char *pattern, struct span text)
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
