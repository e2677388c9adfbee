/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a filter's text: names, operators, literals, parameters. */
#ifndef ENGINE_FILTER_FILTER_TOKEN_H
#define ENGINE_FILTER_FILTER_TOKEN_H

#include "base/region.h"
#include "base/value.h"
#include "engine/filter/filter_fail.h"

enum filter_token_kind {
  TOKEN_END,
  TOKEN_NAME,
  TOKEN_LITERAL,   /* a number, a text, true or false */
  TOKEN_PARAMETER, /* $1 */
  TOKEN_OPEN,
  TOKEN_CLOSE,
  TOKEN_COMMA,
  TOKEN_EQUAL,
  TOKEN_NOT_EQUAL,
  TOKEN_LESS,
  TOKEN_AT_MOST,
  TOKEN_MORE,
  TOKEN_AT_LEAST,
  TOKEN_IN,
  TOKEN_HAS,
  TOKEN_BETWEEN,
  TOKEN_AND,
  TOKEN_OR,
  TOKEN_NOT,
};

struct filter_token {
  enum filter_token_kind kind;
  struct span source; /* the token in the text */
  struct value value; /* TOKEN_LITERAL */
  size_t parameter;   /* TOKEN_PARAMETER: from 1 */
};

/* Read the token that follows `at`, which is white space or the beginning of a token.
 *
 * text    the whole filter: UTF-8 without zero bytes
 * region  keeps the text of a literal that has quotes in it
 *
 * Returns ERR_OK; ERR_QUERY; ERR_MEMORY.
 */
err_t filter_token_read(struct span text, size_t at, struct region *region, struct filter_token *out);

/* Where does the token end? A byte of the text. */
size_t filter_token_end(struct span text, const struct filter_token *token);

/* Write a token for an error: 'and', 17, $1 or "the end". */
const char *filter_token_describe(const struct filter_token *token, char out[FILTER_PIECE_BYTES]);

#endif
