/* SPDX-License-Identifier: Apache-2.0 */
/* jansson parses the text. It fails on numbers beyond 64 bits: then they are turned into strings, and it parses again.
 */
#include "ingest/json/json_parse.h"

#include "ingest/json/json_text.h"

err_t json_parse(struct span text, size_t flags, struct region *r, bool *has_large, json_t **out)
{
  json_error_t error;
  bool is_quoted = false;

  if (json_text_cost(text) > JSON_COST_MAX)
    FAIL(ERR_WIRE, "the JSON takes more than %d bytes of memory to parse: too many values", (int)JSON_COST_MAX);
  json_t *json = json_loadb((const char *)text.p, text.n, JSON_ALLOW_NUL | flags, &error);
  if (!json && json_error_code(&error) == json_error_numeric_overflow) {
    TRY(json_text_quote_large(text, r, &text));
    is_quoted = true;
    json = json_loadb((const char *)text.p, text.n, JSON_ALLOW_NUL | flags, &error);
  }
  if (!json)
    FAIL(ERR_WIRE, "not JSON: %s (line %d, column %d)", error.text, error.line, error.column);
  *has_large = is_quoted;
  *out = json;
  return ERR_OK;
}

const char *json_parse_large(bool has_large, const json_t *json)
{
  if (!has_large || !json_is_string(json) || json_string_length(json) < 2)
    return NULL;

  const char *text = json_string_value(json);
  return text[0] == JSON_TEXT_LARGE && strchr("-0123456789", text[1]) ? text + 1 : NULL;
}
