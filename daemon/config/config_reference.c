/* SPDX-License-Identifier: Apache-2.0 */
/* Print the table of settings as Markdown, for `sluicectl settings` and docs/configuration.md. */
#include <stdio.h>

#include "daemon/config/config_settings.h"

/* What a setting of a type without words may be: a text, before the bounds, or what comes after them. */
struct values {
  const char *text;
  const char *unit;
  bool has_bounds;
};

static const struct values values_of[] = {
  [SETTING_NUMBER] = { "", "", true },
  [SETTING_BOOL] = { "`true`, `false`", "", false },
  [SETTING_TEXT] = { "a string of ", " bytes", true },
  [SETTING_SECRET] = { "a string, or where it is", "", false },
  [SETTING_TOPIC] = { "a topic", "", false },
  [SETTING_PATH] = { "a path, relative to the configuration file's directory", "", false },
  [SETTING_ADDRESS] = { "numeric address:port, `[address]:port` for IPv6", "", false },
  [SETTING_URL] = { "a URL", "", false },
  [SETTING_HOSTS] = { "a list of hosts, each of ", " bytes", true },
  [SETTING_PATTERNS] = { "a list of topics; `*` matches any text, `?` one character", "", false },
  [SETTING_PROPERTIES] = { "a map of librdkafka properties", "", false },
  [SETTING_FIELD] = { "a path", "", false },
  [SETTING_FIELDS] = { "a map of names to paths", "", false },
  [SETTING_ATTRIBUTES] = { "a map of names to `bool`, `keyword`, `keywords`, `integer`, `number` or `time`", "",
                           false },
};

static void write_values(const struct setting *s, FILE *out)
{
  const struct values *values = &values_of[s->type];
  char words[SETTING_WORDS_BYTES];

  if (s->words) {
    setting_print_words(s, words);
    fputs(words, out);
    return;
  }
  fputs(values->text, out);
  if (values->has_bounds)
    fprintf(out, "%llu to %llu%s", (unsigned long long)s->min, (unsigned long long)s->max, values->unit);
}

static void write_default(const struct setting *s, FILE *out)
{
  if (!s->default_text)
    fputs("required", out);
  else if (*s->default_text)
    fprintf(out, "`%s`", s->default_text);
  else
    fputs("none", out);
}

static void write_reference(FILE *out)
{
  fputs("| setting | values | default | meaning |\n|---|---|---|---|\n", out);
  for (size_t i = 0; i < n_settings; i++) {
    fprintf(out, "| `%s` | ", settings[i].path);
    write_values(&settings[i], out);
    fputs(" | ", out);
    write_default(&settings[i], out);
    fprintf(out, " | %s |\n", settings[i].meaning);
  }
}

void config_print_reference(void)
{
  write_reference(stdout);
}
