/* SPDX-License-Identifier: Apache-2.0 */
/* One line for each generation; what is wrong with it is below its line. */
#include "daemon/ctl/model/ctl_model_list.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_json.h"

static const char *text_of(const json_t *object, const char *name)
{
  const char *text = json_string_value(json_object_get(object, name));

  return text ? text : "";
}

/* `current` answers; `next` should answer, and does not yet. */
static const char *mark_of(const json_t *row)
{
  if (json_is_true(json_object_get(row, "current")))
    return "current";
  return json_is_true(json_object_get(row, "wanted")) ? "next" : "";
}

static void print_mean(const json_t *shadow, const char *name, FILE *out)
{
  const json_t *mean = json_object_get(shadow, name);

  if (json_is_number(mean))
    fprintf(out, ", %s %.4f", name, json_number_value(mean));
}

static void print_latency(const json_t *shadow, FILE *out)
{
  int64_t p99_ns = (int64_t)ctl_json_count(json_object_get(shadow, "shadow_us"), "p99") * CLOCK_NS_PER_US;
  int64_t current_ns = (int64_t)ctl_json_count(json_object_get(shadow, "current_us"), "p99") * CLOCK_NS_PER_US;

  if (ctl_json_count(shadow, "compared") > 0)
    fprintf(out, ", p99 %s (current %s)", ctl_format_span(p99_ns).s, ctl_format_span(current_ns).s);
}

static void print_dropped(json_t *dropped, FILE *out)
{
  const char *word;
  json_t *n;

  json_object_foreach(dropped, word, n)
  {
    if (json_integer_value(n) > 0)
      fprintf(out, ", %s %s", ctl_format_count((uint64_t)json_integer_value(n)).s, word);
  }
}

/* What came of comparing it with the current generation, if it was or should be. */
static void print_shadow(const json_t *shadow, FILE *out)
{
  const char *problem = text_of(shadow, "problem"), *reason = text_of(shadow, "reason");

  if (!json_is_object(shadow))
    return;
  double share = json_number_value(json_object_get(shadow, "share"));
  if (share > 0)
    fprintf(out, "  compared for %g %% of the queries", 100 * share);
  else
    fputs("  compared no more", out);
  fprintf(out, ": %s so far", ctl_format_count(ctl_json_count(shadow, "compared")).s);
  print_mean(shadow, "overlap", out);
  print_mean(shadow, "correlation", out);
  print_latency(shadow, out);
  print_dropped(json_object_get(shadow, "dropped"), out);
  fputc('\n', out);
  if (*problem)
    fprintf(out, "  nothing is compared now: %s\n", problem);
  if (*reason)
    fprintf(out, "  the newest query that could not be compared: %s\n", reason);
}

/* The share of the current generation's items. If neither has one, it is said to be 1, which looks like a good one. */
static void print_coverage(const json_t *row, FILE *out)
{
  double coverage = json_number_value(json_object_get(row, "coverage"));

  if (coverage > 0 && ctl_json_count(row, "items") == 0)
    fprintf(out, " %11s", "-");
  else
    fprintf(out, " %9.3f %%", 100 * coverage);
}

static void print_row(const json_t *row, FILE *out)
{
  char name[96];
  const char *problem = text_of(row, "problem");

  snprintf(name, sizeof name, "%s@%" PRIu64, text_of(row, "space"), ctl_json_count(row, "generation"));
  fprintf(out, "%-24s %-8s %-9s %14s", name, mark_of(row), text_of(row, "phase"),
          ctl_format_count(ctl_json_count(row, "items")).s);
  print_coverage(row, out);
  fprintf(out, "  %.16s", text_of(row, "digest"));
  if (json_is_integer(json_object_get(row, "derives_from")))
    fprintf(out, "  parts of @%" PRIu64, ctl_json_count(row, "derives_from"));
  fputc('\n', out);
  if (strcmp(text_of(row, "phase"), "fetching") == 0)
    fprintf(out, "  fetched %s of %s bytes\n", ctl_format_count(ctl_json_count(row, "fetched_bytes")).s,
            ctl_format_count(ctl_json_count(row, "file_bytes")).s);
  if (*problem)
    fprintf(out, "  %s\n", problem);
  if (*text_of(row, "refused"))
    fprintf(out, "  %s %s refused because of its part (dead letters). The newest: %s\n",
            ctl_format_count(ctl_json_count(row, "refused_items")).s,
            ctl_format_plural(ctl_json_count(row, "refused_items"), "item was", "items were"), text_of(row, "refused"));
  print_shadow(json_object_get(row, "shadow"), out);
}

static bool is_in(const json_t *row, const char *space)
{
  return !space || strcmp(text_of(row, "space"), space) == 0;
}

static bool has_space(const json_t *models, const char *space)
{
  const json_t *row;
  size_t i;

  json_array_foreach(json_object_get(models, "generations"), i, row)
  {
    if (is_in(row, space))
      return true;
  }
  return !space;
}

err_t ctl_model_list_print(const json_t *models, const char *space, FILE *out)
{
  const json_t *row;
  size_t i;

  if (!has_space(models, space))
    FAIL(ERR_USAGE, "the daemon has no space \"%s\"; sluicectl model list shows all", space);
  fprintf(out, "%-24s %-8s %-9s %14s %11s  %s\n", "GENERATION", "", "PHASE", "ITEMS", "COVERAGE", "DIGEST");
  json_array_foreach(json_object_get(models, "generations"), i, row)
  {
    if (is_in(row, space))
      print_row(row, out);
  }
  if (*text_of(models, "problem"))
    fprintf(out, "the control topic is not read: %s\n", text_of(models, "problem"));
  if (*text_of(models, "refused"))
    fprintf(out, "%" PRIu64 " %s made no sense, the newest at %s\n", ctl_json_count(models, "refused_records"),
            ctl_format_plural(ctl_json_count(models, "refused_records"), "record", "records"),
            text_of(models, "refused"));
  return ERR_OK;
}
