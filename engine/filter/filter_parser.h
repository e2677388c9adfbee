/* SPDX-License-Identifier: Apache-2.0 */
/* The state of parsing one filter: the next token, and what has been used. */
#ifndef ENGINE_FILTER_FILTER_PARSER_H
#define ENGINE_FILTER_FILTER_PARSER_H

#include "base/query.h"
#include "engine/filter/filter_build.h"
#include "engine/filter/filter_token.h"

struct filter_parser {
  struct filter_build build;
  const struct value *parameters;
  size_t n_parameters;
  uint64_t used; /* bit i: $(i+1) is used */
  const struct attributes *attributes;
  struct filter_token previous, token; /* token is the next one to take */
  size_t nesting;                      /* parentheses and nots that are open */
  size_t n_list_values;                /* of all lists so far */
};

/* Take the token, and read the next one. Returns ERR_OK; ERR_QUERY; ERR_MEMORY. */
err_t filter_parser_advance(struct filter_parser *p);

/* Take the token, which must be of this kind. Errors as above.
 *
 * expected  what the grammar has here, for the error: "a number"
 */
err_t filter_parser_take(struct filter_parser *p, enum filter_token_kind kind, const char *expected);

/* Fail because the token is not what is expected. Returns ERR_QUERY. */
err_t filter_parser_expected(const struct filter_parser *p, const char *expected);

#endif
