/* SPDX-License-Identifier: Apache-2.0 */
/* Decode keys that may have any bytes: the HTTP library would end one at a coded zero. */
#include "daemon/http/pages/url_key.h"

#include <string.h>

static int digit_of(char c)
{
  const char *digits = "0123456789abcdef";
  const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;

  return at ? (int)(at - digits) : -1;
}

bool url_key_decode(const char *text, uint8_t key[ITEM_KEY_MAX], size_t *n)
{
  for (*n = 0; *text; (*n)++) {
    if (*n == ITEM_KEY_MAX)
      return false;
    int high = *text == '%' ? digit_of(text[1]) : 0, low = *text == '%' && high >= 0 ? digit_of(text[2]) : 0;
    if (high < 0 || low < 0)
      return false;
    key[*n] = *text == '%' ? (uint8_t)(high * 16 + low) : (uint8_t)*text;
    text += *text == '%' ? 3 : 1;
  }
  return *n > 0;
}
