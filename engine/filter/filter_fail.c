/* SPDX-License-Identifier: Apache-2.0 */
/* Positions are counted in characters only when something is wrong: parsing itself works on bytes. */
#include "engine/filter/filter_fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/size.h"
#include "base/utf8.h"

enum { MESSAGE_BYTES = 768 };

err_code_t filter_fail_at(struct span text, size_t offset, const char *file, int line, const char *format, ...)
{
  char message[MESSAGE_BYTES];
  va_list args;

  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return err_set(ERR_QUERY, file, line, "filter: at character %zu: %s", utf8_count(span_of(text.p, offset)) + 1,
                 message);
}

const char *filter_fail_quote(struct span piece, const char *quote, char out[FILTER_PIECE_BYTES])
{
  const size_t room = FILTER_PIECE_BYTES - 2 * strlen(quote) - sizeof "...";
  size_t n = utf8_prefix(span_of(piece.p, size_min(piece.n, room)));

  const char *more = n < piece.n ? "..." : "";

  snprintf(out, FILTER_PIECE_BYTES, "%s%.*s%s%s", quote, (int)n, (const char *)piece.p, more, quote);
  return out;
}
