/* SPDX-License-Identifier: Apache-2.0 */
/* Model files in the topic of files: write one in chunks, and remove one that no generation needs. Thread: one. */
#ifndef DAEMON_CTL_CTL_MODEL_FILES_H
#define DAEMON_CTL_CTL_MODEL_FILES_H

#include "daemon/ctl/ctl_context.h"
#include "daemon/models/model_state.h"

/* Write a file in chunks, and wait until Kafka has all of them.
 *
 * digest   SHA-256 of the file, as lower-case hex digits
 * n_bytes  size of the file
 *
 * Returns ERR_CONFIG if there is no topic of files; ERR_USAGE for a file that the daemons would refuse; ERR_KAFKA with
 * the reason if a chunk was not taken.
 */
err_t ctl_model_files_upload(struct ctl_context *ctx, const char *path, const char *digest, uint64_t *n_bytes);

/* Write a tombstone for each chunk of a generation's file, unless another generation that is not retired has the same
 * file. Does nothing for a generation whose file is not in the topic. */
err_t ctl_model_files_forget(struct ctl_context *ctx, const struct model_state *state,
                             const struct model_generation *generation);

#endif
