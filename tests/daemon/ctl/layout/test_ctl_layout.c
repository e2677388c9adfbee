/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what sluicectl layout concludes from what daemons say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "daemon/ctl/layout/ctl_layout_json.h"
#include "daemon/ctl/layout/ctl_layout_print.h"
#include "tests/support/assert_ok.h"

enum { STATUS_BYTES = 1024 };

#define KAFKA "\"kafka\":{\"query_group\":\"g\",\"query_topic\":\"q\",\"answer_topic\":\"%s\"}"

/* What daemons said, and what follows. */
struct scene {
  struct ctl_layout_daemons daemons;
  struct ctl_layouts layouts;
  struct ctl_findings findings;
};

static void scene_fini(struct scene *s)
{
  ctl_findings_fini(&s->findings);
  ctl_layouts_fini(&s->layouts);
  ctl_layout_daemons_fini(&s->daemons);
}

static void add_status(struct scene *s, const char *at, const char *status)
{
  assert_ok(ctl_layout_daemons_add(&s->daemons, at));
  assert_ok(ctl_layout_daemon_set(&s->daemons.items[s->daemons.n - 1], json_loads(status, 0, NULL)));
}

static void add_shard(struct scene *s, const char *at, int index, int of, const char *model, bool is_ready)
{
  char status[STATUS_BYTES];

  snprintf(status, sizeof status,
           "{\"ready\":%s,\"not_ready\":%s,\"shard\":{\"index\":%d,\"of\":%d},\"items\":1000,"
           "\"catalogue_log\":[{\"partition\":%d,\"next\":7,\"end\":9,\"lag\":2}],"
           "\"spaces\":[{\"name\":\"books\",\"current\":true,\"generation\":1,\"items\":500,\"model\":\"%s\"},"
           "{\"name\":\"books\",\"current\":false,\"generation\":2,\"items\":9,\"model\":\"newer\"}]," KAFKA "}",
           is_ready ? "true" : "false", is_ready ? "null" : "\"catching up\"", index, of, index, model, "partials");
  add_status(s, at, status);
}

static void add_merge(struct scene *s, const char *at, const char *heard)
{
  char status[STATUS_BYTES];

  snprintf(
      status, sizeof status,
      "{\"ready\":true,\"not_ready\":null,\"role\":\"merge\",\"shards\":[%s],\"counters\":{\"answers\":1234}," KAFKA
      "}",
      heard, "answers");
  add_status(s, at, status);
}

static void conclude(struct scene *s)
{
  assert_ok(ctl_layouts_find(&s->daemons, &s->layouts));
  assert_ok(ctl_layout_check(&s->daemons, &s->layouts, &s->findings));
}

static void assert_finding(const struct scene *s, bool is_problem, const char *text)
{
  for (size_t i = 0; i < s->findings.n; i++) {
    if (strstr(s->findings.items[i].text, text)) {
      assert_int_equal(s->findings.items[i].is_problem, is_problem);
      return;
    }
  }
  fail_msg("nothing says \"%s\"", text);
}

#define HEARD(shard, of, s) "{\"shard\":" #shard ",\"of\":" #of ",\"heard_s\":" #s "}"

static void a_whole_layout_has_no_problems(void **state)
{
  AUTO(scene_fini) struct scene s = { 0 };

  (void)state;
  add_shard(&s, "h:1", 0, 2, "m", true);
  add_shard(&s, "h:2", 1, 2, "m", true);
  add_shard(&s, "h:3", 1, 2, "m", true);
  add_merge(&s, "h:4", HEARD(0, 2, 0.5) "," HEARD(1, 2, 0.5));
  conclude(&s);
  assert_int_equal(s.findings.n, 0);
  assert_int_equal(s.layouts.n, 1);
  assert_int_equal(ctl_layout_state(&s.layouts.items[0]), CTL_LAYOUT_COMPLETE);
  assert_int_equal(s.layouts.items[0].rows[1].n_ready, 2);
  struct ctl_layout_space space = ctl_layout_space(&s.layouts.items[0], "books");
  assert_int_equal(space.n_items, 1000); /* one daemon of each shard, and the current generation only */
  assert_int_equal(space.n_rows, 2);
}

static void a_shard_that_is_not_named_must_be_heard(void **state)
{
  AUTO(scene_fini) struct scene heard = { 0 }, silent = { 0 };

  (void)state;
  add_merge(&heard, "h:4", HEARD(0, 2, 0.5) "," HEARD(1, 2, 29));
  conclude(&heard);
  assert_int_equal(heard.findings.n, 0);
  add_merge(&silent, "h:4", HEARD(0, 2, 0.5) "," HEARD(1, 2, 31));
  conclude(&silent);
  assert_finding(&silent, true, "not complete: no daemon is ready, or heard of, as shard 1");
}

static void one_ready_daemon_of_a_shard_is_enough(void **state)
{
  AUTO(scene_fini) struct scene s = { 0 };

  (void)state;
  add_shard(&s, "h:1", 0, 1, "m", false);
  add_shard(&s, "h:2", 0, 1, "m", true);
  conclude(&s);
  assert_finding(&s, true, "h:1, shard 0 of 1, is not ready: catching up");
  assert_finding(&s, false, "no merge was asked");
  assert_int_equal(s.findings.n, 2);
  assert_string_equal(s.layouts.items[0].rows[0].first->at, "h:2");
}

static void two_layouts_are_pointed_out(void **state)
{
  AUTO(scene_fini) struct scene s = { 0 };

  (void)state;
  add_shard(&s, "h:1", 1, 4, "m", true);
  add_shard(&s, "h:2", 1, 2, "m", true);
  conclude(&s);
  assert_finding(&s, false, "shard 1 is of 2 at h:2, and of 4 at h:1");
  assert_finding(&s, true, "the layout of 4 shards is not complete: no daemon is ready, or heard of, as shard 0, 2, 3");
  assert_finding(&s, true, "the layout of 2 shards is not complete: no daemon is ready, or heard of, as shard 0");
}

static void a_layout_that_was_stopped_is_no_problem(void **state)
{
  AUTO(scene_fini) struct scene s = { 0 };

  (void)state;
  add_shard(&s, "h:1", 0, 1, "m", true);
  add_merge(&s, "h:4", HEARD(0, 1, 1) "," HEARD(0, 2, 99) "," HEARD(1, 2, 98));
  conclude(&s);
  assert_finding(&s, false, "the layout of 2 shards was stopped");
  assert_int_equal(s.findings.n, 1);
}

static void different_models_of_a_space_are_pointed_out(void **state)
{
  AUTO(scene_fini) struct scene one = { 0 }, two = { 0 };

  (void)state;
  add_shard(&one, "h:1", 0, 2, "abc", true);
  add_shard(&one, "h:2", 1, 2, "def", true);
  conclude(&one);
  assert_finding(&one, true, "different models of the space books: h:1 has abc, h:2 has def");
  add_shard(&two, "h:1", 0, 1, "abc", true);
  add_shard(&two, "h:2", 0, 2, "def", true);
  add_shard(&two, "h:3", 1, 2, "def", true);
  conclude(&two);
  assert_finding(&two, false, "different models of the space books: h:1 has abc, h:2 has def");
  assert_int_equal(ctl_findings_problems(&two.findings), 0);
}

static void daemons_that_do_not_belong_together_are_pointed_out(void **state)
{
  AUTO(scene_fini) struct scene s = { 0 };

  (void)state;
  add_shard(&s, "h:1", 0, 1, "m", true);
  add_status(&s, "h:2", "{\"ready\":true,\"role\":\"merge\",\"shards\":[],\"kafka\":{\"query_group\":\"other\"}}");
  conclude(&s);
  assert_finding(&s, true, "h:1 has the query.group \"g\", and h:2 has \"other\": they do not belong together");
  assert_finding(&s, false, "the merge h:2 has not heard of shard 0 of 1");
}

static void who_has_just_started_need_not_have_been_heard(void **state)
{
  static const struct {
    const char *shard_s, *merge_s;
    size_t n_notes;
  } rows[] = { { "2", "100", 0 }, { "100", "2", 0 }, { "100", "100", 1 } };
  char text[256];

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    AUTO(scene_fini) struct scene s = { 0 };
    snprintf(text, sizeof text,
             "{\"ready\":true,\"shard\":{\"index\":0,\"of\":1},\"uptime_s\":%s,\"kafka\":{\"query_group\":\"g\"}}",
             rows[i].shard_s);
    add_status(&s, "h:1", text);
    snprintf(text, sizeof text,
             "{\"ready\":true,\"role\":\"merge\",\"shards\":[],\"uptime_s\":%s,\"kafka\":{\"query_group\":\"g\"}}",
             rows[i].merge_s);
    add_status(&s, "h:2", text);
    conclude(&s);
    assert_int_equal(s.findings.n, rows[i].n_notes);
  }
}

static void the_whole_catalogue_beside_shards_answers_twice(void **state)
{
  AUTO(scene_fini) struct scene s = { 0 };

  (void)state;
  add_status(&s, "h:1",
             "{\"ready\":true,\"shard\":null,\"kafka\":{\"query_group\":\"g\",\"answer_topic\":\"answers\"}}");
  add_merge(&s, "h:4", HEARD(0, 1, 1));
  conclude(&s);
  assert_finding(&s, true, "queries are answered twice: h:1 has the whole catalogue");
}

static void merges_without_shards_are_a_problem(void **state)
{
  AUTO(scene_fini) struct scene s = { 0 };

  (void)state;
  add_merge(&s, "h:4", "");
  conclude(&s);
  assert_finding(&s, true, "no shard is named, and the merges have heard of none");
}

static void addresses_are_lists_without_repeats(void **state)
{
  AUTO(scene_fini) struct scene s = { 0 };

  (void)state;
  assert_ok(ctl_layout_daemons_add(&s.daemons, "a:1,http://b:2/,a:1,b:2"));
  assert_int_equal(s.daemons.n, 2);
  assert_string_equal(s.daemons.items[1].at, "b:2");
  assert_fails(ctl_layout_daemons_add(&s.daemons, "c:3,"), ERR_USAGE, "--at expects address:port");
  assert_fails(ctl_layout_daemons_add(&s.daemons, "host"), ERR_USAGE, "not \"host\"");
}

static void answers_that_are_no_status_are_refused(void **state)
{
  struct ctl_layout_daemon d = { .at = "h:1" };

  (void)state;
  assert_fails(ctl_layout_daemon_set(&d, NULL), ERR_SYSTEM, "h:1 does not answer with the status of a sluiced");
  assert_fails(ctl_layout_daemon_set(&d, json_loads("[1]", 0, NULL)), ERR_SYSTEM, "the status of a sluiced");
  assert_fails(ctl_layout_daemon_set(&d, json_loads("{\"ready\":true,\"shard\":{\"index\":4,\"of\":4}}", 0, NULL)),
               ERR_SYSTEM, "h:1 says that it is shard 4 of 4, which makes no sense");
  assert_int_equal(d.role, CTL_LAYOUT_UNKNOWN);
  assert_null(d.status);
}

static void tables_show_who_is_there(void **state)
{
  AUTO(scene_fini) struct scene s = { 0 };
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  (void)state;
  add_shard(&s, "h:1", 0, 3, "0123456789abcdef", true);
  add_merge(&s, "h:4", HEARD(0, 3, 0.5) "," HEARD(1, 3, 2.5));
  assert_ok(ctl_layout_daemons_add(&s.daemons, "h:9"));
  assert_ok(mem_copy_str("nothing answers at http://h:9", &s.daemons.items[2].reason));
  conclude(&s);
  ctl_layout_print(&s.daemons, &s.layouts, &s.findings, true, out);
  fclose(out);
  assert_non_null(strstr(text, "  shard 0 of 3     h:1               1,000         2  ready; epoch 0\n"));
  assert_non_null(strstr(text, "  shard 1 of 3     not asked             -         -  heard 2.5 s ago\n"));
  assert_non_null(strstr(text, "  shard 2 of 3     not asked             -         -  NOT HEARD OF\n"));
  assert_non_null(
      strstr(text, "  merge            h:4                   -         -  ready; 1,234 answered, 0 open\n"));
  assert_non_null(strstr(text, "  ?                h:9                   -         -  NO ANSWER\n"));
  assert_non_null(strstr(text, "by one daemon of each of 3 shards"));
  assert_non_null(strstr(text, "  books            500 items in 1 of 3 shards, generation 1, model 0123456789ab\n"));
  assert_non_null(strstr(text, "          0             7             9         2  h:1, shard 0 of 3\n"));
  assert_non_null(strstr(text, "PROBLEMS\n  nothing answers at http://h:9\n"));
  free(text);
}

static void programs_get_the_same(void **state)
{
  AUTO(scene_fini) struct scene s = { 0 };

  (void)state;
  add_shard(&s, "h:1", 0, 2, "m", true);
  conclude(&s);
  AUTO(ctl_json_close) json_t *root = ctl_layout_json(&s.daemons, &s.layouts, &s.findings);
  const json_t *row = json_array_get(json_object_get(root, "daemons"), 0);
  assert_string_equal(json_string_value(json_object_get(row, "role")), "shard");
  assert_int_equal(ctl_json_count(row, "lag"), 2);
  assert_int_equal(json_array_size(json_object_get(row, "positions")), 1);
  const json_t *layout = json_array_get(json_object_get(root, "layouts"), 0);
  assert_string_equal(json_string_value(json_object_get(layout, "state")), "incomplete");
  assert_int_equal(json_array_size(json_object_get(layout, "shards")), 2);
  assert_int_equal(json_array_size(json_object_get(root, "problems")), 1);
  assert_int_equal(json_array_size(json_object_get(root, "notes")), 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_whole_layout_has_no_problems),
    cmocka_unit_test(a_shard_that_is_not_named_must_be_heard),
    cmocka_unit_test(one_ready_daemon_of_a_shard_is_enough),
    cmocka_unit_test(two_layouts_are_pointed_out),
    cmocka_unit_test(a_layout_that_was_stopped_is_no_problem),
    cmocka_unit_test(different_models_of_a_space_are_pointed_out),
    cmocka_unit_test(daemons_that_do_not_belong_together_are_pointed_out),
    cmocka_unit_test(who_has_just_started_need_not_have_been_heard),
    cmocka_unit_test(the_whole_catalogue_beside_shards_answers_twice),
    cmocka_unit_test(merges_without_shards_are_a_problem),
    cmocka_unit_test(addresses_are_lists_without_repeats),
    cmocka_unit_test(answers_that_are_no_status_are_refused),
    cmocka_unit_test(tables_show_who_is_there),
    cmocka_unit_test(programs_get_the_same),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
