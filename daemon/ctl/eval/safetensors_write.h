/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of .safetensors files, for what an evaluation keeps. The daemon only reads them (engine/model). */
#ifndef DAEMON_CTL_EVAL_SAFETENSORS_WRITE_H
#define DAEMON_CTL_EVAL_SAFETENSORS_WRITE_H

#include "base/err.h"
#include "engine/model/tensor.h"

struct safetensors_entry {
  const char *key;
  const char *value; /* UTF-8 */
};

/* Write a file with these tensors and metadata. The file is written beside its final path and renamed, so it appears
 * whole or not at all.
 *
 * Tensors of the widest types come first, so that every number is aligned. Tensors of one type keep the given order.
 *
 * Returns ERR_SYSTEM with the path and the reason. An earlier file at the path is then unchanged. Blocks: on disk.
 */
err_t safetensors_write(const char *path, const struct safetensors_entry *metadata, size_t n_metadata,
                        const struct tensor *tensors, size_t n_tensors);

/* Verify that a file can be written at this path, before hours of work. Returns ERR_SYSTEM with the path and the
 * reason. */
err_t safetensors_verify_writable(const char *path);

#endif
