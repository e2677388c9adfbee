/* SPDX-License-Identifier: Apache-2.0 */
/* Short loops that measure what the machine can do at most: memory, caches, arithmetic. */
#include "tests/bench/bench_machine.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/bench/bench_clock.h"
#include "tests/bench/bench_options.h"

typedef uint64_t lanes __attribute__((vector_size(32)));

uint64_t machine_read(const void *array, size_t bytes)
{
  size_t quarter = bytes / 256 * 2;
  const lanes *a = array, *b = a + quarter, *c = b + quarter, *d = c + quarter;
  lanes sum = { 0 }, sum2 = { 0 };

  for (size_t i = 0; i < quarter; i += 2) {
    sum ^= a[i] ^ b[i] ^ c[i] ^ d[i];
    sum2 ^= a[i + 1] ^ b[i + 1] ^ c[i + 1] ^ d[i + 1];
  }
  sum ^= sum2;
  return sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
}

double machine_read_rate(size_t bytes, size_t rounds)
{
  double rates[64];
  uint8_t *array;
  uint64_t sum = 0;

  bytes = bytes / 256 * 256;
  rounds = rounds < 64 ? rounds : 64;
  bench_check(mem_array(bytes, 1, &array));
  memset(array, 1, bytes);
  for (size_t i = 0; i < rounds + 1; i++) {
    double start = bench_cpu_ms();
    sum += machine_read(array, bytes);
    rates[i ? i - 1 : 0] = (double)bytes / 1e6 / (bench_cpu_ms() - start);
  }
  __asm__ volatile("" ::"r"(sum));
  mem_free(&array);
  return bench_quantile(rates, rounds, 1);
}

/* Peak: twelve independent chains of fused multiply-adds in registers -------------------- */

enum { PEAK_LOOPS = 100000, PEAK_CHAINS = 12 };

#define CHAIN(width, i) "vfmadd231ps %%" width "14, %%" width "15, %%" width #i "\n"
#define CHAINS(w) \
  CHAIN(w, 0)     \
  CHAIN(w, 1)     \
  CHAIN(w, 2)     \
  CHAIN(w, 3) CHAIN(w, 4) CHAIN(w, 5) CHAIN(w, 6) CHAIN(w, 7) CHAIN(w, 8) CHAIN(w, 9) CHAIN(w, 10) CHAIN(w, 11)
#define PEAK_LOOP(w)                                                                                                \
  __asm__ volatile("vzeroall\n1:\n" CHAINS(w) "dec %0\njnz 1b\nvzeroupper\n"                                        \
                   : "+r"(n)                                                                                        \
                   :                                                                                                \
                   : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                     "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

static void peak_avx2(void)
{
  long n = PEAK_LOOPS;
  PEAK_LOOP("ymm");
}

static void peak_avx512(void)
{
  long n = PEAK_LOOPS;
  PEAK_LOOP("zmm");
}

double machine_fma_once(enum isa isa)
{
  double start = bench_cpu_ms(), lanes_of_level = isa >= ISA_AVX512 ? 16 : 8;

  if (isa == ISA_REF)
    return 0;
  if (isa >= ISA_AVX512)
    peak_avx512();
  else
    peak_avx2();
  return lanes_of_level * PEAK_CHAINS * PEAK_LOOPS / (bench_cpu_ms() - start) * 1e-6;
}

double machine_fma_peak(enum isa isa)
{
  double best = 0;

  for (int i = 0; i < 100; i++) {
    double found = machine_fma_once(isa);
    best = found > best ? found : best;
  }
  return best;
}

const char *machine_cpu_name(void)
{
  static char name[128] = "unknown";
  char line[256];
  FILE *file = fopen("/proc/cpuinfo", "r");

  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
      snprintf(name, sizeof name, "%.*s", (int)strcspn(strchr(line, ':') + 2, "\"\\\n"), strchr(line, ':') + 2);
      break;
    }
  }
  if (file)
    fclose(file);
  return name;
}
