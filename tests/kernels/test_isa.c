/* SPDX-License-Identifier: Apache-2.0 */
/* Detecting instruction sets, and the tables of all levels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/kernels.h"

static void every_level_is_found_by_its_name(void **state)
{
  static const char *const names[] = { "ref", "avx2", "avx512", "avx512vnni", "avx512vbmi", "amx" };

  (void)state;
  for (int i = ISA_REF; i < N_ISAS; i++) {
    enum isa found;
    assert_string_equal(isa_name((enum isa)i), names[i]);
    assert_true(isa_find(names[i], &found));
    assert_int_equal(found, i);
  }
}

static void an_unknown_name_is_not_found_and_writes_nothing(void **state)
{
  static const char *const names[] = { "", "AVX2", "avx", "avx5122", "auto" };

  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    enum isa found = ISA_AVX2;
    assert_false(isa_find(names[i], &found));
    assert_int_equal(found, ISA_AVX2);
  }
}

/* Does /proc/cpuinfo list all these flags? */
static bool machine_has(const char *flags)
{
  char line[8192], list[128];
  FILE *f = fopen("/proc/cpuinfo", "r");
  bool has = false;

  assert_non_null(f);
  while (fgets(line, sizeof line, f)) {
    if (strncmp(line, "flags", 5) != 0)
      continue;
    has = true;
    strcpy(list, flags);
    for (char *flag = strtok(list, " "); flag; flag = strtok(NULL, " ")) {
      char word[32];
      snprintf(word, sizeof word, " %s ", flag);
      line[strcspn(line, "\n")] = ' ';
      has = has && strstr(line, word);
    }
    break;
  }
  fclose(f);
  return has;
}

static void the_detected_level_is_the_best_that_the_system_lists(void **state)
{
  enum isa best = ISA_REF;

  (void)state;
  if (machine_has("avx2 fma"))
    best = ISA_AVX2;
  if (machine_has("avx2 fma avx512f avx512bw avx512vl avx512dq"))
    best = ISA_AVX512;
  if (best == ISA_AVX512 && machine_has("avx512_vnni"))
    best = ISA_AVX512_VNNI;
  if (best == ISA_AVX512_VNNI && machine_has("avx512vbmi"))
    best = ISA_AVX512_VBMI;
  if (best == ISA_AVX512_VBMI && machine_has("amx_tile amx_int8 amx_bf16") && isa_detect() == ISA_AMX)
    best = ISA_AMX; /* the system may also refuse it */
  assert_int_equal(isa_detect(), best);
}

static void assert_is_complete(const struct kernels *k)
{
  assert_non_null(k->linear);
  assert_non_null(k->silu);
  assert_non_null(k->gelu);
  assert_non_null(k->transpose);
  assert_non_null(k->mol_score);
  assert_non_null(k->dot_blocks);
  assert_non_null(k->pq_filter);
  assert_non_null(k->pq_cells);
  assert_non_null(k->pq_scan);
  assert_non_null(k->pq_gather);
  assert_non_null(k->pq_best);
  assert_non_null(k->pq_levels);
  assert_non_null(k->filter_ge);
  assert_non_null(k->select_range_i64);
  assert_non_null(k->select_range_u8);
  assert_non_null(k->select_set_u8);
  assert_non_null(k->list_bits);
}

static void each_level_up_to_the_detected_one_has_a_whole_table(void **state)
{
  (void)state;
  for (int i = ISA_REF; i <= (int)isa_detect(); i++) {
    const struct kernels *k = NULL, *again = NULL;
    assert_int_equal(kernels_get((enum isa)i, &k), ERR_OK);
    assert_string_equal(k->name, isa_name((enum isa)i));
    assert_is_complete(k);
    assert_int_equal(kernels_get((enum isa)i, &again), ERR_OK);
    assert_ptr_equal(k, again);
  }
}

static void a_level_above_the_detected_one_is_refused(void **state)
{
  (void)state;
  for (int i = (int)isa_detect() + 1; i <= N_ISAS; i++) { /* N_ISAS is no level */
    const struct kernels *k = NULL;
    assert_int_equal(kernels_get((enum isa)i, &k), ERR_CONFIG);
    assert_null(k);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_level_is_found_by_its_name),
    cmocka_unit_test(an_unknown_name_is_not_found_and_writes_nothing),
    cmocka_unit_test(the_detected_level_is_the_best_that_the_system_lists),
    cmocka_unit_test(each_level_up_to_the_detected_one_has_a_whole_table),
    cmocka_unit_test(a_level_above_the_detected_one_is_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
