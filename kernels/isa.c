/* SPDX-License-Identifier: Apache-2.0 */
/* Detecting the instruction sets of this machine, and their names. */
#include <cpuid.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/isa.h"
#include "kernels/variants.h"

static const char *const names[N_ISAS] = {
  [ISA_REF] = "ref",
  [ISA_AVX2] = "avx2",
  [ISA_AVX512] = "avx512",
  [ISA_AVX512_VNNI] = "avx512vnni",
  [ISA_AVX512_VBMI] = "avx512vbmi",
  [ISA_AMX] = "amx",
};

static bool has_avx2(void)
{
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

/* AMX tiles are 8 KiB of registers. A process must request them from the system. */
static bool is_granted_tiles(void)
{
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static bool has_amx(void)
{
  enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25, ALL = AMX_BF16 | AMX_TILE | AMX_INT8 };
  unsigned a, b, c, d;

  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & ALL) == ALL && is_granted_tiles() && variant_amx_works();
}

/* A level also requires all levels below it. */
static enum isa find_best(void)
{
  __builtin_cpu_init();
  if (!has_avx512())
    return has_avx2() ? ISA_AVX2 : ISA_REF;
  if (!__builtin_cpu_supports("avx512vnni"))
    return ISA_AVX512;
  if (!__builtin_cpu_supports("avx512vbmi"))
    return ISA_AVX512_VNNI;
  return has_amx() ? ISA_AMX : ISA_AVX512_VBMI;
}

static enum isa best;
static pthread_once_t best_once = PTHREAD_ONCE_INIT;

static void set_best(void)
{
  best = find_best();
}

enum isa isa_detect(void)
{
  pthread_once(&best_once, set_best);
  return best;
}

const char *isa_name(enum isa isa)
{
  return (int)isa < N_ISAS ? names[isa] : "unknown";
}

bool isa_find(const char *name, enum isa *out)
{
  for (int i = 0; i < N_ISAS; i++) {
    if (strcmp(name, names[i]) == 0) {
      *out = (enum isa)i;
      return true;
    }
  }
  return false;
}
