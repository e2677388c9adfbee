/* SPDX-License-Identifier: Apache-2.0 */
/* Rows become those of getopt_long(), and the value of an option goes where its row says. */
#include "daemon/ctl/text/ctl_option.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rfc3339.h"

enum { OPTIONS_MAX = 32, NAME_BYTES = 64, FIRST_CODE = 256 /* above all letters */ };

/* ---- Values ---- */

err_t ctl_option_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
  char *end;

  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || errno || value < min || value > max)
    FAIL(ERR_USAGE, "%s expects a whole number from %" PRIu64 " to %" PRIu64 ", not \"%s\"", option, min, max, text);
  *out = value;
  return ERR_OK;
}

/* Return the seconds of a unit; 0: there is no such unit. */
static uint64_t seconds_of(char unit)
{
  switch (unit) {
  case 's':
    return 1;
  case 'm':
    return 60;
  case 'h':
    return 3600;
  case 'd':
    return 86400;
  default:
    return 0;
  }
}

bool ctl_option_read_span(const char *text, int64_t *ms)
{
  size_t n_digits = strspn(text, "0123456789");
  uint64_t unit_s = seconds_of(text[n_digits]);

  if (n_digits == 0 || n_digits > 9 || unit_s == 0 || text[n_digits + 1] != '\0')
    return false;
  *ms = (int64_t)(strtoull(text, NULL, 10) * unit_s * 1000);
  return true;
}

err_t ctl_option_time(const char *option, const char *text, int64_t now_unix_ms, int64_t *unix_ms)
{
  int64_t ago_ms;
  bool is_between;

  if (ctl_option_read_span(text, &ago_ms)) {
    *unix_ms = now_unix_ms - ago_ms;
    return ERR_OK;
  }
  if (rfc3339_read(span_of_str(text), unix_ms, &is_between))
    return ERR_OK;
  FAIL(ERR_USAGE, "%s expects a time, such as 2026-11-22T12:00:00Z, or how long ago it was, such as 90s, 10m, 2h or 7d",
       option);
}

/* ---- The command line ---- */

static bool has_value(const struct ctl_option *o)
{
  return o->text || o->number || o->unix_ms || o->take;
}

static bool is_letter(const struct ctl_option *o)
{
  return o->name[1] == '\0';
}

/* What getopt_long() knows of the options. */
struct known {
  struct option rows[OPTIONS_MAX + 1];
  char letters[2 * OPTIONS_MAX + 3];
};

/* ends_at_word  options may not stand after words */
static void make_known(const struct ctl_option *options, bool ends_at_word, struct known *out)
{
  size_t n_letters = 0;

  *out = (struct known){ 0 };
  if (ends_at_word)
    out->letters[n_letters++] = '+';
  out->letters[n_letters++] = ':';
  for (size_t i = 0; options[i].name; i++) {
    const struct ctl_option *o = &options[i];
    assert(i < OPTIONS_MAX);
    out->rows[i] = (struct option){
      .name = o->name,
      .has_arg = !has_value(o)    ? no_argument
                 : o->may_be_bare ? optional_argument
                                  : required_argument,
      .val = is_letter(o) ? *o->name : FIRST_CODE + (int)i,
    };
    if (is_letter(o)) {
      out->letters[n_letters++] = *o->name;
      if (has_value(o))
        out->letters[n_letters++] = ':';
    }
  }
}

static err_t take(const struct ctl_option *o, const char *value)
{
  char name[NAME_BYTES];

  snprintf(name, sizeof name, "%s%s", is_letter(o) ? "-" : "--", o->name);
  if (o->is_given)
    *o->is_given = true;
  if (!value)
    return ERR_OK;
  if (o->number)
    return ctl_option_number(name, value, o->min, o->max, o->number);
  if (o->unix_ms)
    return ctl_option_time(name, value, clock_unix_ms(), o->unix_ms);
  if (o->take)
    return o->take(o->context, value);
  if (!*value && !o->may_be_empty)
    FAIL(ERR_USAGE, "%s is empty: is a variable not set?", name);
  *o->text = value;
  return ERR_OK;
}

/* Say what is wrong with an option. Of a word of letters, getopt_long() tells the unknown one, and stays at the word.
 */
static err_t fail_option(int code, const char *word, char **argv)
{
  char letter[] = { '-', (char)optopt, '\0' };
  const char *option = argv[optind - 1];

  if (code == ':')
    FAIL(ERR_USAGE, "%s needs a value", option);
  if (optopt >= FIRST_CODE)
    FAIL(ERR_USAGE, "%s: the option takes no value", option);
  FAIL(ERR_USAGE, "%s: unknown option of %s%s%s%s", optopt ? letter : option, argv[0], word ? "; " : "",
       word ? word : "", word ? " that begins with - needs -- before it" : "");
}

/* Verify that a long option is spelt out. getopt_long() takes any beginning of it that no other one has, so that
 * --exclude would be --exclude-seen-by, and a new option could change what a script says. */
static err_t verify_spelling(const char *name, char **argv)
{
  const char *given = argv[optind - 1] == optarg ? argv[optind - 2] : argv[optind - 1];
  size_t n = strcspn(given, "=");

  if (n != 2 + strlen(name))
    FAIL(ERR_USAGE, "%.*s: unknown option of %s; is --%s meant?", (int)n, given, argv[0], name);
  return ERR_OK;
}

err_t ctl_option_take(const struct ctl_option *options, const char *word, int argc, char **argv)
{
  struct known known;
  int code, row = -1;

  make_known(options, word, &known);
  while ((code = getopt_long(argc, argv, known.letters, known.rows, &row)) != -1) {
    if (code == '?' || code == ':')
      return fail_option(code, word, argv);
    if (row >= 0)
      TRY(verify_spelling(known.rows[row].name, argv));
    row = -1;
    size_t i = 0;
    while (known.rows[i].val != code)
      i++;
    TRY(take(&options[i], optarg));
  }
  return ERR_OK;
}

err_t ctl_option_take_only(const struct ctl_option *options, int argc, char **argv)
{
  TRY(ctl_option_take(options, NULL, argc, argv));
  if (optind < argc)
    FAIL(ERR_USAGE, "%s: %s expects options only", argv[optind], argv[0]);
  return ERR_OK;
}
