/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA cards are found among PCI devices by vendor and class, whatever else is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/device.h"
#include "tests/support/temp_dir.h"

/* Add a PCI device as the kernel shows it. vendor and class may be NULL: it has no such file. */
static void add_device(const struct temp_dir *dir, const char *name, const char *vendor, const char *class)
{
  const char *const names[] = { "vendor", "class" }, *const texts[] = { vendor, class };
  char path[PATH_MAX];

  snprintf(path, sizeof path, "%s/%s", dir->path, name);
  assert_int_equal(mkdir(path, 0700), 0);
  for (int i = 0; i < 2; i++) {
    if (!texts[i])
      continue;
    snprintf(path, sizeof path, "%s/%s/%s", dir->path, name, names[i]);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s\n", texts[i]);
    fclose(f);
  }
}

static void only_nvidia_display_controllers_count(void **state)
{
  struct temp_dir dir;

  (void)state;
  temp_dir_init(&dir);
  assert_false(device_is_in_machine(dir.path));
  add_device(&dir, "0000:00:01.0", "0x8086", "0x030000");
  add_device(&dir, "0000:00:02.0", "0x10de", "0x040300"); /* the sound of a card */
  add_device(&dir, "0000:00:03.0", "0x10de", NULL);
  add_device(&dir, "0000:00:04.0", NULL, "0x030200");
  assert_false(device_is_in_machine(dir.path));
  add_device(&dir, "0000:00:05.0", "0x10de", "0x030200");
  assert_true(device_is_in_machine(dir.path));
  temp_dir_fini(&dir);
}

static void a_machine_without_pci_has_none(void **state)
{
  (void)state;
  assert_false(device_is_in_machine("/there/is/no/such/folder"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_nvidia_display_controllers_count),
    cmocka_unit_test(a_machine_without_pci_has_none),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
