/* SPDX-License-Identifier: Apache-2.0 */
/* Peak rates of this machine, measured with short loops on one thread. A method's share of the peak shows how much
 * faster it could be. */
#ifndef TESTS_BENCH_BENCH_MACHINE_H
#define TESTS_BENCH_BENCH_MACHINE_H

#include "kernels/kernels.h"

/* Read an array once, in four streams. Return a checksum, so that the compiler keeps the reads. bytes: a multiple of
 * 256. */
uint64_t machine_read(const void *array, size_t bytes);

/* Measure machine_read() over an array of this size, which stays in cache if it fits: bytes per CPU nanosecond, the
 * best of `rounds` passes. */
double machine_read_rate(size_t bytes, size_t rounds);

/* Measure f32 fused multiply-adds per CPU nanosecond, with independent chains in registers of this level, for one short
 * slice. 0 for ISA_REF. */
double machine_fma_once(enum isa isa);

/* The best of many such slices. */
double machine_fma_peak(enum isa isa);

/* Does the processor have AMX with bytes, and may this process use it? */
bool machine_has_amx(void);

/* Measure multiply-adds of bytes per nanosecond with AMX tiles that stay in registers; 0 without AMX. */
double machine_amx_peak(void);

/* Name of the processor; static. */
const char *machine_cpu_name(void);

#endif
