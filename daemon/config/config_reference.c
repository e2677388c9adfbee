/* SPDX-License-Identifier: Apache-2.0 */
/* Print the table of settings as Markdown, for `sluicectl settings` and docs/configuration.md. */
#include <stdio.h>

#include "daemon/config/config_settings.h"

static void write_values(const struct setting *s, FILE *out)
{
  switch (s->type) {
  case SETTING_NUMBER:
    fprintf(out, "%llu to %llu", (unsigned long long)s->min, (unsigned long long)s->max);
    break;
  case SETTING_BOOL:
    fputs("`true`, `false`", out);
    break;
  case SETTING_CHOICE:
    fputs(s->choices, out);
    break;
  case SETTING_TEXT:
    fprintf(out, "a string of %llu to %llu bytes", (unsigned long long)s->min, (unsigned long long)s->max);
    break;
  case SETTING_TOPIC:
    fputs("a topic", out);
    break;
  case SETTING_PATH:
    fputs("a path, relative to the configuration file's directory", out);
    break;
  case SETTING_ADDRESS:
    fputs("numeric address:port, `[address]:port` for IPv6", out);
    break;
  case SETTING_LIST:
    fprintf(out, "a list of strings, each of %llu to %llu bytes", (unsigned long long)s->min,
            (unsigned long long)s->max);
    break;
  case SETTING_PATTERNS:
    fputs("a list of topics; `*` matches any text, `?` one character", out);
    break;
  case SETTING_PROPERTIES:
    fputs("a map of librdkafka properties", out);
    break;
  case SETTING_FIELD:
    fputs("a path", out);
    break;
  case SETTING_FIELDS:
    fputs("a map of names to paths", out);
    break;
  case SETTING_ATTRIBUTES:
    fputs("a map of names to `bool`, `keyword`, `keywords`, `integer`, `number` or `time`", out);
    break;
  }
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
