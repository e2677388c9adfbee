/* SPDX-License-Identifier: Apache-2.0 */
/* Filling the tables of kernels.h, level over level. */
#include "kernels/kernels.h"

#include <pthread.h>

#include "kernels/variants.h"

static struct kernels tables[N_ISAS];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
  static void (*const overlays[N_ISAS])(struct kernels *) = {
    [ISA_REF] = variant_ref,
    [ISA_AVX2] = variant_avx2,
    [ISA_AVX512] = variant_avx512,
    [ISA_AVX512_VNNI] = variant_avx512_vnni,
    [ISA_AVX512_VBMI] = variant_avx512_vbmi,
    [ISA_AMX] = variant_amx,
  };
  struct kernels table = { 0 };

  for (int isa = ISA_REF; isa <= (int)isa_detect(); isa++) {
    overlays[isa](&table);
    table.name = isa_name((enum isa)isa);
    tables[isa] = table;
  }
}

err_t kernels_get(enum isa isa, const struct kernels **out)
{
  enum isa best = isa_detect();

  if (isa > best)
    FAIL(ERR_CONFIG, "this machine has no %s, its best level is %s", isa_name(isa), isa_name(best));
  pthread_once(&tables_once, fill_tables);
  *out = &tables[isa];
  return ERR_OK;
}
