/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the peak rate of AMX tiles of bytes with bare instructions: two tiles of A times two of B into four sums. */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bench/bench_clock.h"
#include "tests/bench/bench_machine.h"

#if defined(__x86_64__)
#include <cpuid.h>

enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
enum { AMX_LOOPS = 20000, AMX_TILES = 4, TILE_MACS = 16 * 16 * 64 };

bool machine_has_amx(void)
{
  unsigned a, b, c, d;

  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & 1u << 24) || !(d & 1u << 25))
    return false;
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static void multiply_tiles(void)
{
  struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config = { .palette = 1 };
  long n = AMX_LOOPS;

  for (int i = 0; i < 8; i++) {
    config.row_bytes[i] = 64;
    config.rows[i] = 16;
  }
  __asm__ volatile("ldtilecfg %1\n"
                   "tilezero %%tmm0\ntilezero %%tmm1\ntilezero %%tmm2\ntilezero %%tmm3\n"
                   "tilezero %%tmm4\ntilezero %%tmm5\ntilezero %%tmm6\ntilezero %%tmm7\n"
                   "1:\n"
                   "tdpbssd %%tmm6, %%tmm4, %%tmm0\ntdpbssd %%tmm7, %%tmm4, %%tmm1\n"
                   "tdpbssd %%tmm6, %%tmm5, %%tmm2\ntdpbssd %%tmm7, %%tmm5, %%tmm3\n"
                   "dec %0\njnz 1b\ntilerelease\n"
                   : "+r"(n)
                   : "m"(config)
                   : "cc", "memory");
}

double machine_amx_peak(void)
{
  double best = 0;

  for (int i = 0; i < 50 && machine_has_amx(); i++) {
    double start = bench_cpu_ms();
    multiply_tiles();
    double rate = (double)AMX_LOOPS * AMX_TILES * TILE_MACS / (bench_cpu_ms() - start) * 1e-6;
    best = rate > best ? rate : best;
  }
  return best;
}

#else

bool machine_has_amx(void)
{
  return false;
}

double machine_amx_peak(void)
{
  return 0;
}

#endif
