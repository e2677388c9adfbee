/* SPDX-License-Identifier: Apache-2.0 */
/* Base64, six bits at a time. */
#include "ingest/json/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Return the value of a digit, or -1 if the byte is no digit. */
static int digit_of(uint8_t c)
{
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  if (c == '+' || c == '-')
    return 62;
  if (c == '/' || c == '_')
    return 63;
  return -1;
}

/* Remove the padding from the text. Returns false if the length of the text or of its padding is impossible. */
static bool strip_padding(struct span *text)
{
  size_t padding = 0;

  while (padding < 2 && padding < text->n && text->p[text->n - 1 - padding] == '=')
    padding++;
  if (padding > 0 && text->n % 4 != 0)
    return false;
  text->n -= padding;
  return text->n % 4 != 1;
}

bool base64_decode(struct span text, uint8_t *out, size_t *n)
{
  uint32_t bits = 0;
  unsigned n_bits = 0;
  size_t n_out = 0;

  if (!strip_padding(&text))
    return false;
  for (size_t i = 0; i < text.n; i++) {
    int digit = digit_of(text.p[i]);
    if (digit < 0)
      return false;
    bits = bits << 6 | (uint32_t)digit;
    n_bits += 6;
    if (n_bits >= 8) {
      n_bits -= 8;
      out[n_out++] = (uint8_t)(bits >> n_bits);
      bits &= (1u << n_bits) - 1;
    }
  }
  if (bits != 0) /* the bits after the last whole byte must be zero */
    return false;
  *n = n_out;
  return true;
}

err_t base64_encode(struct region *r, struct span bytes, char **out)
{
  char *text, *at;

  TRY(region_array(r, (bytes.n + 2) / 3 * 4 + 1, 1, &text));
  at = text;
  for (size_t i = 0; i < bytes.n; i += 3) {
    size_t left = bytes.n - i;
    uint32_t bits =
        (uint32_t)bytes.p[i] << 16 | (left > 1 ? (uint32_t)bytes.p[i + 1] << 8 : 0) | (left > 2 ? bytes.p[i + 2] : 0);
    *at++ = alphabet[bits >> 18];
    *at++ = alphabet[bits >> 12 & 63];
    *at++ = left > 1 ? alphabet[bits >> 6 & 63] : '=';
    *at++ = left > 2 ? alphabet[bits & 63] : '=';
  }
  *out = text;
  return ERR_OK;
}
