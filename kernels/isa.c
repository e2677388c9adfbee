#include <string.h>

#include "kernels/kernels.h"

static const char *const names[] = { [ISA_REF] = "ref", [ISA_AVX2] = "avx2", [ISA_AVX512] = "avx512" };

enum { N_NAMES = sizeof names / sizeof names[0] };

static bool has_avx2(void)
{
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

enum isa isa_detect(void)
{
  __builtin_cpu_init();
  if (has_avx512())
    return ISA_AVX512;
  return has_avx2() ? ISA_AVX2 : ISA_REF;
}

const char *isa_name(enum isa isa)
{
  return (int)isa < N_NAMES ? names[isa] : "unknown";
}

bool isa_find(const char *name, enum isa *out)
{
  for (int i = 0; i < N_NAMES; i++) {
    if (strcmp(name, names[i]) == 0) {
      *out = (enum isa)i;
      return true;
    }
  }
  return false;
}
