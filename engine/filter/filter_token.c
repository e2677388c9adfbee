/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting the text of a filter into tokens. Common slips, such as == for =, get an error with the remedy. */
#include "engine/filter/filter_token.h"

#include <strings.h>

#include "base/query.h"
#include "engine/filter/filter.h"
#include "engine/filter/filter_number.h"

static const struct {
  const char *text;
  enum filter_token_kind kind;
} keywords[] = {
  { "and", TOKEN_AND }, { "or", TOKEN_OR },           { "not", TOKEN_NOT },      { "in", TOKEN_IN },
  { "has", TOKEN_HAS }, { "between", TOKEN_BETWEEN }, { "true", TOKEN_LITERAL }, { "false", TOKEN_LITERAL },
};

/* Longer ones first. */
static const struct {
  const char *text;
  enum filter_token_kind kind;
} signs[] = {
  { "!=", TOKEN_NOT_EQUAL }, { "<=", TOKEN_AT_MOST }, { ">=", TOKEN_AT_LEAST },
  { "=", TOKEN_EQUAL },      { "<", TOKEN_LESS },     { ">", TOKEN_MORE },
  { "(", TOKEN_OPEN },       { ")", TOKEN_CLOSE },    { ",", TOKEN_COMMA },
};

/* What other languages have. They are looked for before the signs above, which some of them begin with. */
static const struct {
  const char *text, *remedy;
} slips[] = {
  { "==", "=" },
  { "=<", "<=" },
  { "=>", ">=" },
  { "<>", "!=" },
  { "&&", "and" },
  { "||", "or" },
  { "\"", "a text as 'text'" },
};

enum { N_KEYWORDS = sizeof keywords / sizeof keywords[0], N_SIGNS = sizeof signs / sizeof signs[0] };
enum { N_SLIPS = sizeof slips / sizeof slips[0] };

static bool is_digit(uint8_t c)
{
  return c >= '0' && c <= '9';
}

/* Letters that no attribute has count too, so that an error names the whole word. */
static bool begins_word(uint8_t c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static bool begins_number(uint8_t c)
{
  return is_digit(c) || c == '-' || c == '+' || c == '.';
}

static bool is_space(uint8_t c)
{
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool starts_with(struct span text, const char *start)
{
  size_t n = strlen(start);

  return text.n >= n && memcmp(text.p, start, n) == 0;
}

/* Returns N_KEYWORDS if the word is none. */
static size_t find_keyword(struct span word)
{
  size_t i = 0;

  while (i < N_KEYWORDS &&
         (strlen(keywords[i].text) != word.n || strncasecmp(keywords[i].text, (const char *)word.p, word.n) != 0))
    i++;
  return i;
}

bool filter_is_keyword(struct span word)
{
  return find_keyword(word) < N_KEYWORDS;
}

static void read_word(struct span rest, struct filter_token *out)
{
  size_t n = 1;

  while (n < rest.n && (begins_word(rest.p[n]) || is_digit(rest.p[n])))
    n++;
  out->source.n = n;
  size_t keyword = find_keyword(out->source);
  out->kind = keyword < N_KEYWORDS ? keywords[keyword].kind : TOKEN_NAME;
  if (out->kind == TOKEN_LITERAL)
    out->value = (struct value){ .kind = VALUE_BOOL, .is_true = strcmp(keywords[keyword].text, "true") == 0 };
}

/* Is the byte after `n` bytes of a number part of it? So are letters, for an error that names all of "5MB". */
static bool continues_number(struct span rest, size_t n)
{
  uint8_t c = rest.p[n], before = rest.p[n - 1];

  if (c == '-' || c == '+')
    return before == 'e' || before == 'E';
  return begins_word(c) || is_digit(c) || c == '.';
}

static err_t read_number(struct span text, struct span rest, struct filter_token *out)
{
  size_t n = 1;

  while (n < rest.n && continues_number(rest, n))
    n++;
  out->kind = TOKEN_LITERAL;
  out->source.n = n;
  return filter_number_read(text, out->source, &out->value);
}

static err_t read_parameter(struct span text, struct span rest, struct filter_token *out)
{
  size_t n = 1;

  for (; n < rest.n && is_digit(rest.p[n]) && out->parameter <= QUERY_PARAMETERS_MAX; n++)
    out->parameter = 10 * out->parameter + (size_t)(rest.p[n] - '0');
  if (out->parameter < 1 || out->parameter > QUERY_PARAMETERS_MAX || rest.p[1] == '0')
    FILTER_FAIL(text, (size_t)(rest.p - text.p), "expected a parameter from $1 to $%d", QUERY_PARAMETERS_MAX);
  out->kind = TOKEN_PARAMETER;
  out->source.n = n;
  return ERR_OK;
}

/* Write the text between the quotes, with one quote for each pair. */
static err_t join_quotes(struct span inner, struct region *region, struct span *out)
{
  uint8_t *copy;
  size_t n = 0;

  TRY(region_array(region, inner.n, 1, &copy));
  for (size_t i = 0; i < inner.n; i++) {
    copy[n++] = inner.p[i];
    i += inner.p[i] == '\'';
  }
  *out = span_of(copy, n);
  return ERR_OK;
}

static err_t read_text(struct span text, struct span rest, struct region *region, struct filter_token *out)
{
  size_t n = 1, pairs = 0;

  for (; n < rest.n && (rest.p[n] != '\'' || (n + 1 < rest.n && rest.p[n + 1] == '\'')); n++) {
    pairs += rest.p[n] == '\'';
    n += rest.p[n] == '\'';
  }
  if (n >= rest.n)
    FILTER_FAIL(text, (size_t)(rest.p - text.p), "the text that begins here has no closing '");
  out->kind = TOKEN_LITERAL;
  out->source.n = n + 1;
  out->value = (struct value){ .kind = VALUE_TEXT, .text = span_of(rest.p + 1, n - 1) };
  return pairs ? join_quotes(out->value.text, region, &out->value.text) : ERR_OK;
}

static err_t read_sign(struct span text, struct span rest, struct filter_token *out)
{
  size_t offset = (size_t)(rest.p - text.p);
  char piece[FILTER_PIECE_BYTES];

  for (size_t i = 0; i < N_SLIPS; i++) {
    if (starts_with(rest, slips[i].text))
      FILTER_FAIL(text, offset, "write %s, not %s", slips[i].remedy, slips[i].text);
  }
  for (size_t i = 0; i < N_SIGNS; i++) {
    if (starts_with(rest, signs[i].text)) {
      out->kind = signs[i].kind;
      out->source.n = strlen(signs[i].text);
      return ERR_OK;
    }
  }
  FILTER_FAIL(text, offset, "%s has no meaning outside a text", filter_fail_quote(span_of(rest.p, 1), "'", piece));
}

err_t filter_token_read(struct span text, size_t at, struct region *region, struct filter_token *out)
{
  while (at < text.n && is_space(text.p[at]))
    at++;
  struct span rest = span_of(text.p + at, text.n - at);
  *out = (struct filter_token){ .kind = TOKEN_END, .source = span_of(rest.p, 0) };
  if (rest.n == 0)
    return ERR_OK;
  if (begins_number(rest.p[0]))
    return read_number(text, rest, out);
  if (rest.p[0] == '$')
    return read_parameter(text, rest, out);
  if (rest.p[0] == '\'')
    return read_text(text, rest, region, out);
  if (!begins_word(rest.p[0]))
    return read_sign(text, rest, out);
  read_word(rest, out);
  return ERR_OK;
}

size_t filter_token_end(struct span text, const struct filter_token *token)
{
  return (size_t)(token->source.p - text.p) + token->source.n;
}

const char *filter_token_describe(const struct filter_token *token, char out[FILTER_PIECE_BYTES])
{
  bool is_plain = token->kind == TOKEN_PARAMETER || (token->kind == TOKEN_LITERAL && token->value.kind != VALUE_BOOL);

  if (token->kind == TOKEN_END)
    return "the end";
  return filter_fail_quote(token->source, is_plain ? "" : "'", out);
}
