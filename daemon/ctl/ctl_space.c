/* SPDX-License-Identifier: Apache-2.0 */
/* Ask the daemon for its spaces, and choose one. */
#include "daemon/ctl/ctl_space.h"

#include <stdio.h>

#include "base/space_name.h"

enum { NAMES_BYTES = 512 };

static const char *name_of(const json_t *row)
{
  const char *name = json_string_value(json_object_get(row, "name"));

  return name ? name : "";
}

/* A space has a row for each of its generations. A plain name means the one that answers. */
static bool is_current(const json_t *row)
{
  return !json_is_false(json_object_get(row, "current"));
}

/* List the names, and return their number. */
static size_t print_names(const json_t *spaces, char *out)
{
  size_t i, n = 0, n_names = 0;
  json_t *row;

  *out = '\0';
  json_array_foreach(spaces, i, row)
  {
    if (n < NAMES_BYTES && is_current(row))
      n += (size_t)snprintf(out + n, NAMES_BYTES - n, "%s%s", n_names++ ? ", " : "", name_of(row));
  }
  return n_names;
}

static bool is_meant(const json_t *row, const struct space_name *name)
{
  if (!span_equal(span_of_str(name_of(row)), name->space))
    return false;
  return name->generation ? ctl_json_count(row, "generation") == name->generation : is_current(row);
}

/* Find the row of a space, or of the first one if `name` is NULL. Returns NULL if there is none. */
static const json_t *find_row(const json_t *spaces, const char *name)
{
  struct space_name parsed;
  size_t i;
  json_t *row;

  if (name && (strlen(name) > SPACE_NAME_MAX || !space_name_parse(span_of_str(name), &parsed)))
    return NULL;
  json_array_foreach(spaces, i, row)
  {
    if (name ? is_meant(row, &parsed) : is_current(row))
      return row;
  }
  return NULL;
}

static size_t length_of(const json_t *row, const char *name)
{
  json_int_t n = json_integer_value(json_object_get(row, name));

  return n > 0 ? (size_t)n : 0;
}

err_t ctl_space_choose(const json_t *spaces, const char *name, struct ctl_space *out)
{
  char names[NAMES_BYTES];
  size_t n = print_names(spaces, names);
  const json_t *row = find_row(spaces, name);

  if (n == 0)
    FAIL(ERR_USAGE, "the daemon has no spaces: if it is a merge, give a shard's configuration as --config FILE");
  if (n > 1 && !name)
    FAIL(ERR_USAGE, "the daemon has several spaces, so say which: --space NAME, of %s", names);
  if (!row)
    FAIL(ERR_USAGE, "--space: the daemon has no space \"%s\", but %s", name, names);
  *out = (struct ctl_space){
    .is_known = json_is_integer(json_object_get(row, "query_vector")),
    .lengths = { length_of(row, "item_vector"), length_of(row, "item_codes"), length_of(row, "subitems"),
                 length_of(row, "query_vector") },
  };
  snprintf(out->name, sizeof out->name, "%s", name ? name : name_of(row));
  return ERR_OK;
}

err_t ctl_space_find(struct ctl_context *ctx, const char *name, struct ctl_space *out)
{
  AUTO(ctl_json_close) json_t *status = NULL;

  TRY(http_get_status(ctx->http, &status));
  return ctl_space_choose(json_object_get(status, "spaces"), name, out);
}
