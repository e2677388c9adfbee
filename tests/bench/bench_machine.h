/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of this machine, measured by short loops: a method's share of them says what is left. One thread. */
#ifndef TESTS_BENCH_BENCH_MACHINE_H
#define TESTS_BENCH_BENCH_MACHINE_H

#include "kernels/kernels.h"

/* Read an array once, in four streams. Returns a checksum, so that the reads happen. bytes: a multiple of 256. */
uint64_t machine_read(const void *array, size_t bytes);

/* Bytes a nanosecond of machine_read() over an array of this size, which stays in the caches where it fits: the best
 * of `rounds` passes, of processor time. */
double machine_read_rate(size_t bytes, size_t rounds);

/* Fused multiply-adds of f32 a nanosecond of processor time, by independent chains in registers of this level; one
 * short slice. 0 for ISA_REF. */
double machine_fma_once(enum isa isa);

/* Best of many slices. */
double machine_fma_peak(enum isa isa);

/* Whether the processor has AMX with bf16 and the kernel lets this process use it. */
bool machine_has_amx(void);

/* Multiply-adds of bf16 a nanosecond by AMX tiles that stay in registers; 0 without AMX. */
double machine_amx_peak(void);

/* Name of the processor; static. */
const char *machine_cpu_name(void);

#endif
