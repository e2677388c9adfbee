/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and verifies methods in a similarity's table, and prints the table for messages. */
#include "engine/similarity/methods.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/method.h"

static unsigned n_args_of(const struct method_row *row)
{
  unsigned n = 0;

  while (n < METHOD_ARGS_MAX && row->args[n].name)
    n++;
  return n;
}

const struct method_row *methods_find(const struct methods *methods, const struct method *method)
{
  for (size_t i = 0; i < methods->n; i++) {
    const struct method_row *row = &methods->rows[i];
    if (strcmp(row->name, method->name) == 0 && n_args_of(row) == method->n_args)
      return row;
  }
  return NULL;
}

static uint32_t min_of(const struct method_arg *arg)
{
  return arg->min ? arg->min : 1;
}

static uint32_t max_of(const struct method_arg *arg, const struct model *model)
{
  if (arg->model_max)
    return arg->model_max(model);
  return arg->max ? arg->max : UINT32_MAX;
}

static bool are_args_within(const struct method_row *row, const struct model *model, const struct method *method)
{
  for (unsigned i = 0; i < method->n_args; i++) {
    if (method->args[i] < min_of(&row->args[i]) || method->args[i] > max_of(&row->args[i], model))
      return false;
  }
  return true;
}

/* A text buffer that is appended to. */
struct text {
  char *at;
  size_t room; /* bytes left, including the final zero */
};

static void append(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(struct text *text, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  int n = vsnprintf(text->at, text->room, format, args);
  va_end(args);
  size_t n_written = n >= 0 && (size_t)n < text->room ? (size_t)n : text->room - 1;
  text->at += n_written;
  text->room -= n_written;
}

static void append_row(struct text *text, const struct method_row *row)
{
  unsigned n = n_args_of(row);

  append(text, "%s", row->name);
  for (unsigned i = 0; i < n; i++)
    append(text, "%s%s%s", i ? "," : "(", row->args[i].name, i + 1 == n ? ")" : "");
}

void methods_print_row(const struct method_row *row, char *text)
{
  struct text out = { text, METHOD_TEXT_MAX };

  append_row(&out, row);
}

void methods_print(const struct methods *methods, char *text)
{
  struct text out = { text, METHODS_TEXT_MAX };

  for (size_t i = 0; i < methods->n; i++) {
    append(&out, "%s", i == 0 ? "" : i + 1 == methods->n ? " or " : ", ");
    append_row(&out, &methods->rows[i]);
  }
}

/* Were the bounds of this argument already printed? An argument of an earlier position in the table may have the same
 * name. */
static bool is_printed(const struct methods *methods, size_t row, unsigned arg)
{
  const char *name = methods->rows[row].args[arg].name;

  for (size_t r = 0; r <= row; r++) {
    for (unsigned a = 0; a < n_args_of(&methods->rows[r]) && (r < row || a < arg); a++) {
      if (strcmp(methods->rows[r].args[a].name, name) == 0)
        return true;
    }
  }
  return false;
}

/* Print the bounds that are not the usual ones, like ", with BS from 1 to 256 and PERCENT from 100". */
static void append_bounds(struct text *text, const struct methods *methods, const struct model *model)
{
  unsigned n_printed = 0;

  for (size_t r = 0; r < methods->n; r++) {
    for (unsigned a = 0; a < n_args_of(&methods->rows[r]); a++) {
      const struct method_arg *arg = &methods->rows[r].args[a];
      uint32_t max = max_of(arg, model);
      if ((min_of(arg) == 1 && max == UINT32_MAX) || is_printed(methods, r, a))
        continue;
      append(text, "%s%s from %u", n_printed++ ? " and " : ", with ", arg->name, min_of(arg));
      if (max != UINT32_MAX)
        append(text, " to %u", max);
    }
  }
}

err_t methods_verify(const struct methods *methods, const char *similarity, const struct model *model,
                     const struct method *method)
{
  const struct method_row *row = methods_find(methods, method);
  char asked[METHOD_TEXT_MAX], list[METHODS_TEXT_MAX], bounds[METHODS_TEXT_MAX] = "";
  struct text bounded = { bounds, sizeof bounds };

  if (row && are_args_within(row, model, method))
    return ERR_OK;
  method_print(method, asked);
  methods_print(methods, list);
  append_bounds(&bounded, methods, model);
  FAIL(ERR_METHOD, "a %s space has no method \"%s\": use %s%s", similarity, asked, list, bounds);
}
