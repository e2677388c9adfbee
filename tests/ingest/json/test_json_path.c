/* SPDX-License-Identifier: Apache-2.0 */
/* Paths: what they lead to, and what is no path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "ingest/json/json_path.h"
#include "tests/support/assert_ok.h"

/* Assert that the path leads to a value that is printed like this; NULL: to nothing. */
static void assert_leads(const char *path, const char *json, const char *due)
{
  struct json_path split = { 0 };
  json_t *root = json_loads(json, 0, NULL);

  assert_non_null(root);
  assert_ok(json_path_init(span_of_str(path), &split));
  char *found = json_dumps(json_path_find(&split, root), JSON_ENCODE_ANY | JSON_COMPACT);
  if (!due)
    assert_null(found);
  else
    assert_string_equal(found, due);
  free(found);
  json_decref(root);
  json_path_fini(&split);
}

static void a_path_leads_to_its_value(void **state)
{
  (void)state;
  assert_leads("id", "{\"id\":7}", "7");
  assert_leads("price.amount", "{\"price\":{\"amount\":9.5}}", "9.5");
  assert_leads("/price/amount", "{\"price\":{\"amount\":9.5}}", "9.5");
  assert_leads("/a.b/c~1d/~0e", "{\"a.b\":{\"c/d\":{\"~e\":true}}}", "true");
  assert_leads("v.1.x", "{\"v\":[{},{\"x\":[1]}]}", "[1]");
  assert_leads("v.1", "{\"v\":{\"1\":2}}", "2");
  assert_leads("a", "{\"a\":null}", "null");
  assert_leads("a.b.c", "{\"a\":null}", "null");
}

static void a_path_may_lead_to_nothing(void **state)
{
  (void)state;
  assert_leads("a", "{}", NULL);
  assert_leads("a.b", "{\"a\":\"b\"}", NULL);
  assert_leads("a.b.c", "{\"a\":{}}", NULL);
  assert_leads("v.2", "{\"v\":[0,1]}", NULL);
  assert_leads("v.-1", "{\"v\":[0,1]}", NULL);
  assert_leads("v.x", "{\"v\":[0,1]}", NULL);
  assert_leads("v.18446744073709551616", "{\"v\":[0,1]}", NULL);
  assert_leads("a", "[]", NULL);
}

static void assert_wrong(const char *path, size_t n, const char *words)
{
  assert_fails(json_path_verify(span_of(path, n)), ERR_CONFIG, words);
}

static void what_is_no_path_is_refused(void **state)
{
  char longest[JSON_PATH_TEXT_MAX + 1];

  (void)state;
  memset(longest, 'x', sizeof longest);
  assert_ok(json_path_verify(span_of(longest, JSON_PATH_TEXT_MAX)));
  assert_wrong(longest, JSON_PATH_TEXT_MAX + 1, "a path has 1 to 256 bytes");
  assert_wrong("", 0, "a path has 1 to 256 bytes");
  assert_wrong("a..b", 4, "not \"a..b\": a step is empty");
  assert_wrong(".", 1, "a step is empty");
  assert_wrong("a.", 2, "a step is empty");
  assert_wrong("/", 1, "a step is empty");
  assert_wrong("/a~2", 4, "in a pointer, ~ is written ~0");
  assert_wrong("/a~", 3, "in a pointer, ~ is written ~0");
  assert_wrong("a\0b", 3, "UTF-8 without zero bytes");
  assert_wrong("\xff", 1, "UTF-8 without zero bytes");
  assert_ok(json_path_verify(span_of_str("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p")));
  assert_wrong("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q", 33, "more than 16 steps");
  assert_ok(json_path_verify(span_of_str("a~2"))); /* no pointer */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_path_leads_to_its_value),
    cmocka_unit_test(a_path_may_lead_to_nothing),
    cmocka_unit_test(what_is_no_path_is_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
