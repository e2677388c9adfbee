/* SPDX-License-Identifier: Apache-2.0 */
/* One line for each generation; what is wrong with it is below its line. */
#include "daemon/ctl/ctl_model_list.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/ctl/ctl_format.h"
#include "daemon/ctl/ctl_json.h"

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

static void print_row(const json_t *row, FILE *out)
{
  char name[96];
  const char *problem = text_of(row, "problem");

  snprintf(name, sizeof name, "%s@%" PRIu64, text_of(row, "space"), ctl_json_count(row, "generation"));
  fprintf(out, "%-24s %-8s %-9s %14s %9.3f %%  %.16s", name, mark_of(row), text_of(row, "phase"),
          ctl_format_count(ctl_json_count(row, "items")).s, 100 * json_number_value(json_object_get(row, "coverage")),
          text_of(row, "digest"));
  if (json_is_integer(json_object_get(row, "derives_from")))
    fprintf(out, "  parts of @%" PRIu64, ctl_json_count(row, "derives_from"));
  fputc('\n', out);
  if (strcmp(text_of(row, "phase"), "fetching") == 0)
    fprintf(out, "  fetched %s of %s bytes\n", ctl_format_count(ctl_json_count(row, "fetched_bytes")).s,
            ctl_format_count(ctl_json_count(row, "file_bytes")).s);
  if (*problem)
    fprintf(out, "  %s\n", problem);
}

void ctl_model_list_print(const json_t *models, const char *space, FILE *out)
{
  const json_t *row;
  size_t i;

  fprintf(out, "%-24s %-8s %-9s %14s %11s  %s\n", "GENERATION", "", "PHASE", "ITEMS", "COVERAGE", "DIGEST");
  json_array_foreach(json_object_get(models, "generations"), i, row)
  {
    if (!space || strcmp(text_of(row, "space"), space) == 0)
      print_row(row, out);
  }
  if (*text_of(models, "problem"))
    fprintf(out, "the control topic is not read: %s\n", text_of(models, "problem"));
  if (*text_of(models, "refused"))
    fprintf(out, "%" PRIu64 " %s made no sense, the newest at %s\n", ctl_json_count(models, "refused_records"),
            ctl_plural(ctl_json_count(models, "refused_records"), "record", "records"), text_of(models, "refused"));
}
