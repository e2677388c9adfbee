/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and prints methods: those of queries and answers have the same form. */
#include "base/method.h"

#include <ctype.h>
#include <stdio.h>

#include "base/log.h"

static err_t refuse(struct span text)
{
  FAIL(ERR_METHOD, "method %s is not of the form name or name(N) or name(N1,N2) with N from 1 to 4294967295",
       log_quote(text));
}

/* Parse one argument and the character after it. */
static bool parse_arg(struct span text, size_t *i, uint32_t *arg, char *mark)
{
  uint64_t value = 0;
  size_t start = *i;

  while (*i < text.n && isdigit(text.p[*i]) && *i - start < 10)
    value = value * 10 + (uint64_t)(text.p[(*i)++] - '0');
  if (*i == start || *i == text.n || value < 1 || value > UINT32_MAX)
    return false;
  *arg = (uint32_t)value;
  *mark = (char)text.p[(*i)++];
  return true;
}

static bool parse_args(struct span text, size_t i, struct method *out)
{
  char mark = ',';

  while (mark == ',') {
    while (i < text.n && text.p[i] == ' ')
      i++;
    if (out->n_args == METHOD_ARGS_MAX || !parse_arg(text, &i, &out->args[out->n_args], &mark))
      return false;
    out->n_args++;
  }
  return mark == ')' && i == text.n;
}

err_t method_parse(struct span text, struct method *out)
{
  struct method m = { 0 };
  size_t n = 0;

  if (text.n == 0)
    text = span_of_str("exact");
  while (n < text.n && (islower(text.p[n]) || text.p[n] == '_'))
    n++;
  if (n == 0 || n >= METHOD_NAME_MAX)
    return refuse(text);
  memcpy(m.name, text.p, n);
  if (n < text.n && (text.p[n] != '(' || !parse_args(text, n + 1, &m)))
    return refuse(text);
  *out = m;
  return ERR_OK;
}

void method_print(const struct method *method, char *text)
{
  int n = snprintf(text, METHOD_TEXT_MAX, "%s", method->name);

  for (unsigned i = 0; i < method->n_args; i++)
    n += snprintf(text + n, METHOD_TEXT_MAX - (size_t)n, "%s%u", i ? "," : "(", method->args[i]);
  if (method->n_args)
    snprintf(text + n, METHOD_TEXT_MAX - (size_t)n, ")");
}
