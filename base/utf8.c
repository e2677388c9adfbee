/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, character by character. */
#include "base/utf8.h"

/* Return the length of the character that starts at p, or 0 if none does. The ranges of the second byte come from table
 * 3-7 of the Unicode standard. */
static size_t character_bytes(const uint8_t *p, size_t n)
{
  uint8_t low = 0x80, high = 0xbf;
  size_t length;

  if (p[0] >= 0x01 && p[0] <= 0x7f)
    return 1;
  if (p[0] >= 0xc2 && p[0] <= 0xdf)
    length = 2;
  else if (p[0] >= 0xe0 && p[0] <= 0xef)
    length = 3;
  else if (p[0] >= 0xf0 && p[0] <= 0xf4)
    length = 4;
  else
    return 0;

  switch (p[0]) {
  case 0xe0:
    low = 0xa0;
    break;
  case 0xed:
    high = 0x9f;
    break;
  case 0xf0:
    low = 0x90;
    break;
  case 0xf4:
    high = 0x8f;
    break;
  }
  if (length > n || p[1] < low || p[1] > high)
    return 0;
  for (size_t i = 2; i < length; i++) {
    if (p[i] < 0x80 || p[i] > 0xbf)
      return 0;
  }
  return length;
}

size_t utf8_prefix(struct span text)
{
  size_t i = 0, length;

  while (i < text.n && (length = character_bytes(text.p + i, text.n - i)) > 0)
    i += length;
  return i;
}

bool utf8_is_valid(struct span text)
{
  return utf8_prefix(text) == text.n;
}

size_t utf8_count(struct span text)
{
  size_t n = 0;

  for (size_t i = 0; i < text.n; i++)
    n += (text.p[i] & 0xc0) != 0x80;
  return n;
}

err_t utf8_mend(struct region *r, struct span text, char **out)
{
  char *copy;
  size_t i = 0;

  TRY(region_array(r, text.n + 1, 1, &copy));
  while (i < text.n) {
    size_t length = character_bytes(text.p + i, text.n - i);
    if (length == 0)
      copy[i++] = '?';
    else
      memcpy(copy + i, text.p + i, length);
    i += length;
  }
  *out = copy;
  return ERR_OK;
}
