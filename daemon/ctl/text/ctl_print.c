/* SPDX-License-Identifier: Apache-2.0 */
/* Characters that control a terminal become visible, and columns are counted meanwhile. */
#include "daemon/ctl/text/ctl_print.h"

#include <stdlib.h>

/* Does a text begin with a character that a terminal must not get: a control, or one that turns the direction of what
 * follows? Returns its number of bytes; 0 if not.
 *
 * code  its code point
 */
static size_t find_unsafe(struct span text, unsigned *code)
{
  const uint8_t *c = text.p;
  unsigned high = text.n >= 3 && c[0] == 0xe2 ? 0x2000 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu) : 0;

  if (c[0] < 0x20 || c[0] == 0x7f) {
    *code = c[0];
    return 1;
  }
  if (text.n >= 2 && c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) {
    *code = c[1];
    return 2;
  }
  *code = high;
  bool turns =
      (high >= 0x200e && high <= 0x200f) || (high >= 0x202a && high <= 0x202e) || (high >= 0x2066 && high <= 0x2069);
  return turns ? 3 : 0;
}

size_t ctl_print_text(const char *text, FILE *out)
{
  size_t n_columns = 0, n = strlen(text), n_bytes;
  unsigned code;

  for (size_t i = 0; i < n; i += n_bytes) {
    size_t n_unsafe = find_unsafe(span_of(text + i, n - i), &code);
    bool is_long = code >= 0x100;
    n_bytes = n_unsafe ? n_unsafe : 1;
    n_columns += n_unsafe ? strlen(is_long ? "\\u202e" : "\\x1b") : (text[i] & 0xc0) != 0x80;
    if (out && n_unsafe)
      fprintf(out, is_long ? "\\u%04x" : "\\x%02x", code);
    else if (out)
      fputc(text[i], out);
  }
  return n_columns;
}

void ctl_print_json(struct span text, FILE *out)
{
  size_t n_bytes;
  unsigned code;

  for (size_t i = 0; i < text.n; i += n_bytes) {
    size_t n_unsafe = find_unsafe(span_of(text.p + i, text.n - i), &code);
    bool is_escaped = n_unsafe > 0 && code >= 0x20; /* below are line breaks between values */
    n_bytes = is_escaped ? n_unsafe : 1;
    if (is_escaped)
      fprintf(out, "\\u%04x", code);
    else
      fputc(text.p[i], out);
  }
}

bool ctl_print_json_value(const json_t *json, size_t flags, FILE *out)
{
  char *text = json_dumps(json, flags);

  if (!text)
    return false;
  ctl_print_json(span_of_str(text), out);
  fputc('\n', out);
  free(text);
  return true;
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
