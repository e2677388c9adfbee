/* SPDX-License-Identifier: Apache-2.0 */
/* docs/filters.md is correct: each of its worked examples admits the items that the page says, and each of its errors
 * is the parser's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/attributes.h"
#include "engine/filter/filter.h"
#include "tests/support/assert_ok.h"
#include "tests/support/filter_matches.h"

enum { ITEMS_MAX = 16, CELLS = 3 };

struct item {
  const char *id;
  struct value values[ATTRIBUTES_MAX];
};

/* What the page says. */
struct page {
  char *text;
  struct region region;
  struct attribute list[ATTRIBUTES_MAX];
  struct attributes attributes;
  struct item items[ITEMS_MAX];
  size_t n_items;
  json_t *json[ITEMS_MAX];
};

/* A row of a table: what its cells hold. */
struct row {
  char *cells[CELLS];
};

static char *read_page(void)
{
  FILE *f = fopen(SLUICE_SOURCE_DIR "/docs/filters.md", "rb");
  char *text = calloc(1, 1 << 20);

  assert_non_null(f);
  assert_non_null(text);
  assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
  fclose(f);
  return text;
}

/* Find what is after a line, up to the next line that starts with `end`. The caller frees it. */
static char *section(const char *text, const char *start, const char *end)
{
  const char *from = strstr(text, start);

  assert_non_null(from);
  from += strlen(start);
  const char *to = strstr(from, end);
  return to ? strndup(from, (size_t)(to - from)) : strdup(from);
}

static void convert(struct page *p, const json_t *json, struct value *out)
{
  if (json_is_boolean(json)) {
    *out = (struct value){ VALUE_BOOL, .is_true = json_is_true(json) };
  } else if (json_is_integer(json)) {
    *out = (struct value){ VALUE_INTEGER, .integer = json_integer_value(json) };
  } else if (json_is_real(json)) {
    *out = (struct value){ VALUE_NUMBER, .number = json_real_value(json) };
  } else if (json_is_string(json)) {
    *out = (struct value){ VALUE_TEXT, .text = span_of_str(json_string_value(json)) };
  } else {
    struct value *v;
    size_t n = json_array_size(json);
    assert_true(json_is_array(json));
    assert_ok(region_array(&p->region, n, sizeof *v, &v));
    for (size_t i = 0; i < n; i++)
      convert(p, json_array_get(json, i), &v[i]);
    *out = (struct value){ VALUE_LIST, .list = { v, n } };
  }
}

static void read_attributes(struct page *p)
{
  char *block = section(p->text, "\nattributes:\n", "```"), *save = NULL;

  for (char *line = strtok_r(block, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
    char name[65], type[17];
    struct span copy;
    assert_int_equal(sscanf(line, " %64[a-z]: %16s", name, type), 2);
    assert_ok(region_copy(&p->region, span_of_str(name), &copy));
    struct attribute *a = &p->list[p->attributes.n++];
    a->name = copy;
    assert_true(attribute_type_find(span_of_str(type), &a->type));
  }
  p->attributes.v = p->list;
  free(block);
}

static void read_item(struct page *p, const char *line)
{
  struct item *item = &p->items[p->n_items];
  json_t *json = json_loads(line, 0, NULL), *value;
  const char *name;

  assert_non_null(json);
  item->id = json_string_value(json_object_get(json, "id"));
  json_object_foreach(json_object_get(json, "attributes"), name, value)
  {
    size_t a = attributes_find(&p->attributes, span_of_str(name), 0);
    assert_int_not_equal(a, ATTRIBUTE_NONE);
    convert(p, value, &item->values[a]);
    if (p->list[a].type == ATTRIBUTE_NUMBER)
      item->values[a] = (struct value){ VALUE_NUMBER, .number = json_number_value(value) };
  }
  p->json[p->n_items++] = json;
}

static void read_items(struct page *p)
{
  char *block = section(p->text, "```json\n", "```"), *save = NULL;

  for (char *line = strtok_r(block, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
    assert_true(p->n_items < ITEMS_MAX);
    read_item(p, line);
  }
  free(block);
}

/* Take spaces, and the signs of code, off both ends. */
static char *trim(char *cell)
{
  cell += strspn(cell, " `");
  for (size_t n = strlen(cell); n > 0 && strchr(" `", cell[n - 1]); n--)
    cell[n - 1] = '\0';
  return cell;
}

/* Split a line of a table. Returns false if the line is no row with a filter. */
static bool read_row(char *line, struct row *out)
{
  if (strncmp(line, "| `", 3) != 0)
    return false;
  line++;
  for (size_t i = 0; i < CELLS; i++) {
    char *cell = strsep(&line, "|");
    out->cells[i] = cell ? trim(cell) : NULL;
  }
  return true;
}

static void open_page(struct page *p)
{
  p->text = read_page();
  read_attributes(p);
  read_items(p);
  assert_int_equal(p->attributes.n, 6);
  assert_int_equal(p->n_items, 4);
}

static void close_page(struct page *p)
{
  for (size_t i = 0; i < p->n_items; i++)
    json_decref(p->json[i]);
  region_fini(&p->region);
  free(p->text);
}

/* Write the items that a filter admits, as the page does. */
static void list_admitted(const struct page *p, const struct filter_node *root, char out[256])
{
  out[0] = '\0';
  for (size_t i = 0; i < p->n_items; i++) {
    if (filter_matches(root, p->items[i].values))
      snprintf(out + strlen(out), 256 - strlen(out), "%s%s", out[0] ? ", " : "", p->items[i].id);
  }
  if (!out[0])
    snprintf(out, 256, "nothing");
}

static void check_example(struct page *p, const struct row *row)
{
  json_t *json = json_loads(row->cells[1][0] ? row->cells[1] : "[]", 0, NULL);
  const struct filter_node *root;
  struct value parameters;
  char admitted[256];

  assert_non_null(json);
  convert(p, json, &parameters);
  if (filter_parse(span_of_str(row->cells[0]), parameters.list.v, parameters.list.n, &p->attributes, &p->region,
                   &root) != ERR_OK)
    fail_msg("%s: %s", row->cells[0], err_message());
  list_admitted(p, root, admitted);
  assert_string_equal(admitted, row->cells[2]);
  json_decref(json);
}

static void the_worked_examples_admit_what_the_page_says(void **state)
{
  struct page p = { 0 };
  struct row row;
  char *save = NULL;
  size_t n = 0;

  (void)state;
  open_page(&p);
  char *rows = section(p.text, "\n## Worked examples\n", "\n## ");
  for (char *line = strtok_r(rows, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
    if (read_row(line, &row)) {
      check_example(&p, &row);
      n++;
    }
  }
  assert_true(n > 15);
  free(rows);
  close_page(&p);
}

static void the_errors_are_those_of_the_parser(void **state)
{
  struct page p = { 0 };
  const struct filter_node *root;
  struct row row;
  char *save = NULL;
  size_t n = 0;

  (void)state;
  open_page(&p);
  char *rows = section(p.text, "\n## Errors\n", "\n## ");
  for (char *line = strtok_r(rows, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
    if (!read_row(line, &row))
      continue;
    assert_int_equal(filter_parse(span_of_str(row.cells[0]), NULL, 0, &p.attributes, &p.region, &root), ERR_QUERY);
    assert_string_equal(err_message(), row.cells[1]);
    n++;
  }
  assert_true(n > 5);
  free(rows);
  close_page(&p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_worked_examples_admit_what_the_page_says),
    cmocka_unit_test(the_errors_are_those_of_the_parser),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
