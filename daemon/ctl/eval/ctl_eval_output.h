/* SPDX-License-Identifier: Apache-2.0 */
/* Write the answers of sluicectl eval to a file, for other programs. */
#ifndef DAEMON_CTL_CTL_EVAL_OUTPUT_H
#define DAEMON_CTL_CTL_EVAL_OUTPUT_H

#include "daemon/ctl/eval/ctl_eval_run.h"

/* Write top_ids, top_scores, exact and bound to a safetensors file, with model, method and k in its metadata. With
 * boosts it has now_unix_ms too.
 *
 * common  what all queries have
 *
 * Returns ERR_SYSTEM with the path and the reason; ERR_MEMORY. */
err_t ctl_eval_output_write(const char *path, const char *model_path, const char *method, const struct query *common,
                            const struct ctl_eval_answers *answers);

#endif
