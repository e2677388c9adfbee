/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with planted faults, each of which the model of a device must find (gpu_planted.c). */
#ifndef TESTS_GPU_PLANTED_FAULTS_H
#define TESTS_GPU_PLANTED_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum planted_fault {
  PLANTED_NOTHING,
  PLANTED_NO_WAIT,            /* a block reads its asynchronous copies before it waits for them */
  PLANTED_WAIT_FOR_OLDER,     /* it waits for all groups but the newest, and reads that one */
  PLANTED_NEVER_WAIT,         /* a thread ends before its copies */
  PLANTED_MISALIGNED_COPY,    /* an asynchronous copy from an address that is no multiple of 16 */
  PLANTED_NO_SYNCTHREADS,     /* warps read what others wrote to shared memory, without a barrier */
  PLANTED_GROUP_SYNC,         /* ... with a barrier of groups of warps, and read what other groups wrote */
  PLANTED_EARLY_REUSE,        /* warps overwrite shared memory that others may still read */
  PLANTED_NO_SYNCWARP,        /* lanes read what others wrote; only a shuffle lies between */
  PLANTED_BLOCKS_WRITE,       /* blocks write the same word */
  PLANTED_BLOCKS_READ,        /* a block reads what another wrote in the same kernel */
  PLANTED_PLAIN_COUNTER,      /* one block counts without an atomic operation, others with one */
  PLANTED_UNWRITTEN,          /* a read of device memory that nobody wrote */
  PLANTED_UNWRITTEN_SHARED,   /* a read of shared memory that only an earlier block wrote */
  PLANTED_BEHIND,             /* a read behind an array */
  PLANTED_DIVERGENT,          /* half of a block is at a barrier, the other half has ended */
  PLANTED_NO_BEGIN,           /* a kernel that does not call begin_kernel() */
  PLANTED_LATE_BEGIN,         /* ... that reads device memory before it does */
  PLANTED_MISALIGNED_LOAD,    /* a uint2 at an address that is no multiple of 8 */
  PLANTED_NO_PRODUCT_WAIT,    /* a warpgroup reads its products before it waits for them */
  PLANTED_NEVER_PRODUCT_WAIT, /* a thread ends before its products */
  PLANTED_WARP_MISSING        /* a warp of the group does not take part */
};

/* Run a kernel that writes to out[i] the sum of in[0..255] plus i, for i below 256, and in the last number a count of
 * its threads. Several blocks share the work. Without a fault that is what it does in every mode.
 *
 * in      [256] device
 * out     [257] device; the last must be 0
 */
err_code_t planted_run(struct device_stream *stream, enum planted_fault fault, const uint32_t *in, uint32_t *out);

#ifdef __cplusplus
}
#endif

#endif
