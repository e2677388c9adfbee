/* SPDX-License-Identifier: Apache-2.0 */
/* Taking tokens, and the error of a token that does not fit. */
#include "engine/filter/filter_parser.h"

static size_t offset_of(const struct filter_parser *p, const struct filter_token *token)
{
  return (size_t)(token->source.p - p->build.text.p);
}

err_t filter_parser_advance(struct filter_parser *p)
{
  p->previous = p->token;
  TRY(filter_token_read(p->build.text, filter_token_end(p->build.text, &p->token), p->build.region, &p->token));
  p->build.offset = offset_of(p, &p->token);
  return ERR_OK;
}

err_t filter_parser_expected(const struct filter_parser *p, const char *expected)
{
  char before[FILTER_PIECE_BYTES], found[FILTER_PIECE_BYTES];
  size_t offset = offset_of(p, &p->token);

  if (p->previous.kind == TOKEN_END) /* nothing is before the token */
    FILTER_FAIL(p->build.text, offset, "expected %s, not %s", expected, filter_token_describe(&p->token, found));
  FILTER_FAIL(p->build.text, offset, "expected %s after %s, not %s", expected,
              filter_token_describe(&p->previous, before), filter_token_describe(&p->token, found));
}

err_t filter_parser_take(struct filter_parser *p, enum filter_token_kind kind, const char *expected)
{
  return p->token.kind == kind ? filter_parser_advance(p) : filter_parser_expected(p, expected);
}
