/* SPDX-License-Identifier: Apache-2.0 */
/* Control characters become visible, and columns are counted meanwhile. */
#include "daemon/ctl/ctl_print.h"

#include <stdbool.h>

/* Print a character; print nothing if out is NULL, because then only columns are counted. */
static void put(FILE *out, char c)
{
  if (out)
    fputc(c, out);
}

size_t ctl_print_text(const char *text, FILE *out)
{
  size_t n_columns = 0;

  for (const char *c = text; *c; c++) {
    unsigned char byte = (unsigned char)*c;
    bool is_c1 = byte == 0xc2 && (unsigned char)c[1] >= 0x80 && (unsigned char)c[1] < 0xa0;
    if (byte >= 0x20 && byte != 0x7f && !is_c1) {
      put(out, *c);
      n_columns += (byte & 0xc0) != 0x80;
      continue;
    }
    if (is_c1)
      byte = (unsigned char)*++c;
    if (out)
      fprintf(out, "\\x%02x", byte);
    n_columns += 4;
  }
  return n_columns;
}

size_t ctl_print_key(const json_t *key, FILE *out)
{
  const json_t *coded = json_object_get(key, "base64");

  if (!coded)
    return ctl_print_text(json_is_string(key) ? json_string_value(key) : "", out);
  return ctl_print_text("base64:", out) + ctl_print_text(json_is_string(coded) ? json_string_value(coded) : "", out);
}

void ctl_print_spaces(size_t n, FILE *out)
{
  for (size_t i = 0; i < n; i++)
    fputc(' ', out);
}
