/* SPDX-License-Identifier: Apache-2.0 */
/* From /status to lines of text. */
#include "daemon/ctl/status/ctl_status_catalogue.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_json.h"

/* Say which generation of a space this is, unless there is only the first. */
static void print_generation(const json_t *space)
{
  uint64_t generation = ctl_json_count(space, "generation");
  bool is_current = !json_is_false(json_object_get(space, "current"));

  if (generation > 1 || !is_current)
    printf(", generation %" PRIu64 "%s", generation, is_current ? "" : ", which is not the current one");
}

static void print_space(const json_t *space)
{
  uint64_t n_items = ctl_json_count(space, "items"), n_alive = ctl_json_count(space, "alive");

  printf("  %-16s %s, %s %s", ctl_json_text(space, "name"), ctl_json_text(space, "similarity"),
         ctl_format_count(n_items).s, ctl_format_plural(n_items, "item", "items"));
  if (json_object_get(space, "alive") && n_alive != n_items)
    printf(", %s alive", ctl_format_count(n_alive).s);
  print_generation(space);
  putchar('\n');
}

static void print_spaces(const json_t *status)
{
  size_t i;
  json_t *space;

  puts("spaces");
  json_array_foreach(json_object_get(status, "spaces"), i, space) print_space(space);
}

void ctl_status_lifetimes_print(const json_t *status)
{
  const json_t *lifetimes = json_object_get(status, "lifetimes");
  const json_t *next = json_object_get(lifetimes, "next_change_unix_ms");

  if (!json_is_object(lifetimes))
    return;
  printf("lifetimes  %s expired, %s embargoed", ctl_format_count(ctl_json_count(lifetimes, "expired")).s,
         ctl_format_count(ctl_json_count(lifetimes, "embargoed")).s);
  printf(" at %s", ctl_format_time(json_integer_value(json_object_get(lifetimes, "time_unix_ms"))).s);
  if (json_is_integer(next))
    printf("; the next change is at %s", ctl_format_time(json_integer_value(next)).s);
  putchar('\n');
}

static void print_attribute(const json_t *attribute)
{
  uint64_t n = ctl_json_count(attribute, "items");

  printf("  %-16s %s, %s %s it\n", ctl_json_text(attribute, "name"), ctl_json_text(attribute, "type"),
         ctl_format_count(n).s, ctl_format_plural(n, "item has", "items have"));
}

static void print_attributes(const json_t *status)
{
  size_t i;
  json_t *attribute;

  if (json_array_size(json_object_get(status, "attributes")))
    puts("attributes");
  json_array_foreach(json_object_get(status, "attributes"), i, attribute) print_attribute(attribute);
}

/* Print what items have under names that the configuration has not. */
static void print_unknown(const json_t *status, const char *field, const char *what, const char *counted)
{
  size_t i;
  json_t *row;

  json_array_foreach(json_object_get(status, field), i, row)
      printf("  %s %s (%s: %s)\n", what, ctl_json_text(row, "name"), counted,
             ctl_format_count(ctl_json_count(row, counted)).s);
}

static void print_unknowns(const json_t *status)
{
  if (json_array_size(json_object_get(status, "unknown_spaces")) +
          json_array_size(json_object_get(status, "unknown_attributes")) ==
      0)
    return;
  puts("what items have, and the configuration does not");
  print_unknown(status, "unknown_spaces", "space", "parts");
  print_unknown(status, "unknown_attributes", "attribute", "values");
}

static void print_partition(const json_t *row)
{
  uint64_t lag = ctl_json_count(row, "lag"), n_held_back = ctl_json_count(row, "held_back");
  double age_s = json_number_value(json_object_get(row, "age_s"));

  printf("  partition %-6" PRIu64 " %s", ctl_json_count(row, "partition"),
         ctl_format_count(ctl_json_count(row, "next")).s);
  if (lag > 0)
    printf(", %s behind the end", ctl_format_count(lag).s);
  if (age_s > 0)
    printf(", for %s", ctl_format_span((int64_t)(age_s * (double)CLOCK_NS_PER_S)).s);
  if (n_held_back > 0)
    printf(", %s held back by an open transaction", ctl_format_count(n_held_back).s);
  putchar('\n');
}

static void print_partitions(const json_t *status)
{
  size_t i;
  json_t *row;

  puts("next offset to read from the catalogue topic");
  json_array_foreach(json_object_get(status, "catalogue_log"), i, row) print_partition(row);
}

void ctl_status_catalogue_print(const json_t *status)
{
  print_spaces(status);
  print_attributes(status);
  print_unknowns(status);
  print_partitions(status);
}
