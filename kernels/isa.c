#include <string.h>

#include "kernels/kernels.h"

static const char *const names[N_ISAS] = {
  [ISA_REF] = "ref",
  [ISA_AVX2] = "avx2",
  [ISA_AVX512] = "avx512",
  [ISA_AVX512_VNNI] = "avx512vnni",
  [ISA_AVX512_VBMI] = "avx512vbmi",
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

/* A level needs all that the levels below it need. */
enum isa isa_detect(void)
{
  __builtin_cpu_init();
  if (!has_avx512())
    return has_avx2() ? ISA_AVX2 : ISA_REF;
  if (!__builtin_cpu_supports("avx512vnni"))
    return ISA_AVX512;
  return __builtin_cpu_supports("avx512vbmi") ? ISA_AVX512_VBMI : ISA_AVX512_VNNI;
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
