/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a rebuild that is shown, and accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/catalogue/catalogue_rebuild.h"
#include "daemon/ctl/status/ctl_rebuild.h"

static void assert_rebuild_is_printed(const char *json, const char *expected)
{
  json_t *rebuild = json ? json_loads(json, 0, NULL) : NULL;
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  ctl_rebuild_print(rebuild, out);
  fclose(out);
  assert_string_equal(text, expected);
  free(text);
  json_decref(rebuild);
}

static void a_rebuild_is_printed_with_progress_and_reason(void **state)
{
  (void)state;
  assert_rebuild_is_printed(NULL, "");
  assert_rebuild_is_printed("{\"number\":3,\"items\":12,\"live_items\":19900,\"waits\":false}",
                            "rebuild    number 3: 12 items so far; the 19,900 items of the old catalogue are served\n");
  assert_rebuild_is_printed("{\"number\":3,\"items\":12,\"live_items\":19900,\"waits\":true,\"reason\":\"too few\"}",
                            "rebuild    number 3: 12 items so far; the 19,900 items of the old catalogue are served\n"
                            "           it WAITS for `sluicectl rebuild accept`\n"
                            "           too few\n");
}

static void only_a_rebuild_that_waits_is_accepted(void **state)
{
  json_t *waits = json_loads("{\"number\":7,\"waits\":true}", 0, NULL);
  json_t *goes_on = json_loads("{\"number\":7,\"waits\":false}", 0, NULL);
  uint64_t number = 0;

  (void)state;
  assert_int_equal(ctl_rebuild_waiting(NULL, &number), ERR_SYSTEM);
  assert_int_equal(ctl_rebuild_waiting(goes_on, &number), ERR_SYSTEM);
  assert_int_equal(number, 0);
  assert_int_equal(ctl_rebuild_waiting(waits, &number), ERR_OK);
  assert_int_equal(number, 7);
  json_decref(waits);
  json_decref(goes_on);
}

static size_t count_files(const char *directory)
{
  DIR *d = opendir(directory);
  size_t n = 0;

  assert_non_null(d);
  while (readdir(d))
    n++;
  closedir(d);
  return n - 2; /* . and .. */
}

static void the_number_of_an_accepted_rebuild_is_written_whole(void **state)
{
  char directory[] = "/tmp/sluice-ctl-XXXXXX", path[64], text[32] = "";

  (void)state;
  assert_non_null(mkdtemp(directory));
  snprintf(path, sizeof path, "%s/%s", directory, CATALOGUE_REBUILD_FILE);
  assert_int_equal(ctl_rebuild_write(directory, 41), ERR_OK);
  assert_int_equal(ctl_rebuild_write(directory, 18446744073709551615u), ERR_OK); /* replaces it */
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(text, sizeof text, file));
  fclose(file);
  assert_string_equal(text, "18446744073709551615\n");
  assert_int_equal(count_files(directory), 1); /* nothing temporary is left */
  unlink(path);
  rmdir(directory);
  assert_int_equal(ctl_rebuild_write(directory, 1), ERR_SYSTEM);
  assert_non_null(strstr(err_message(), directory));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_rebuild_is_printed_with_progress_and_reason),
    cmocka_unit_test(only_a_rebuild_that_waits_is_accepted),
    cmocka_unit_test(the_number_of_an_accepted_rebuild_is_written_whole),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
