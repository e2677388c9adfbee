/* SPDX-License-Identifier: Apache-2.0 */
/* Choose the columns, then print row by row. */
#include "daemon/http/pages/try_hits.h"

#include "daemon/http/print/html_print.h"
#include "daemon/queries/trial.h"

/* The attributes that have a column: those that some hit has. */
struct shown {
  struct attribute v[TRIAL_ATTRIBUTES_MAX];
  size_t n;
};

static const json_t *find_value(const json_t *hit, struct span name)
{
  return json_object_getn(json_object_get(hit, "attributes"), (const char *)name.p, name.n);
}

static bool has_value(const json_t *hits, struct span name)
{
  for (size_t i = 0; i < json_array_size(hits); i++) {
    if (find_value(json_array_get(hits, i), name))
      return true;
  }
  return false;
}

static struct shown find_shown(const struct attributes *all, const json_t *hits)
{
  struct shown shown = { .n = 0 };

  for (size_t i = 0; i < all->n && shown.n < TRIAL_ATTRIBUTES_MAX; i++) {
    if (has_value(hits, all->v[i].name))
      shown.v[shown.n++] = all->v[i];
  }
  return shown;
}

static const char *class_of(const struct attribute *attribute)
{
  return attribute->type == ATTRIBUTE_INTEGER || attribute->type == ATTRIBUTE_NUMBER ? " class=\"number\"" : "";
}

static void print_time(FILE *out, int64_t unix_ms)
{
  html_print_time(out, unix_ms);
  fputs(" UTC", out);
}

/* Print a value; nothing for NULL. */
static void print_value(FILE *out, const struct attribute *attribute, const json_t *value)
{
  for (size_t i = 0; i < json_array_size(value); i++) {
    fputs(i ? ", " : "", out);
    html_print_text(out, json_string_value(json_array_get(value, i)));
  }
  if (json_is_string(value))
    html_print_text(out, json_string_value(value));
  else if (attribute->type == ATTRIBUTE_TIME && json_is_integer(value))
    print_time(out, json_integer_value(value));
  else if (!json_is_array(value) && value)
    json_dumpf(value, out, JSON_ENCODE_ANY | JSON_REAL_PRECISION(VALUE_SHOWN_DIGITS));
}

/* A key that is not text is an object with its base64. */
static void print_hit(FILE *out, size_t rank, const json_t *hit, const struct shown *shown)
{
  const json_t *key = json_object_get(hit, "key");
  const json_t *coded = json_object_get(key, "base64");

  fprintf(out, "<tr><td class=\"number\">%zu</td><td>%s", rank, coded ? "base64 " : "");
  html_print_text(out, json_string_value(coded ? coded : key));
  fprintf(out, "</td><td class=\"number\">%.6g</td>", json_number_value(json_object_get(hit, "score")));
  for (size_t i = 0; i < shown->n; i++) {
    fprintf(out, "<td%s>", class_of(&shown->v[i]));
    print_value(out, &shown->v[i], find_value(hit, shown->v[i].name));
    fputs("</td>", out);
  }
  fputs("</tr>\n", out);
}

void try_hits_print(FILE *out, const json_t *hits, const struct attributes *attributes)
{
  struct shown shown = find_shown(attributes, hits);

  fputs(
      "<div class=\"wide\"><table><thead><tr><th class=\"number\">rank</th><th>key</th><th class=\"number\">score</th>",
      out);
  for (size_t i = 0; i < shown.n; i++)
    fprintf(out, "<th%s>%.*s</th>", class_of(&shown.v[i]), (int)shown.v[i].name.n, (const char *)shown.v[i].name.p);
  fputs("</tr></thead><tbody>\n", out);
  for (size_t i = 0; i < json_array_size(hits); i++)
    print_hit(out, i + 1, json_array_get(hits, i), &shown);
  fputs("</tbody></table></div>\n", out);
}
