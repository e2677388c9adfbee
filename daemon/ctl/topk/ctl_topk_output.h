/* SPDX-License-Identifier: Apache-2.0 */
/* The file of answers, a line of JSON for each. A run that is ended, by kill -9 too, leaves the answers that it had;
 * the next run with the same file reads which queries they are of, and asks only the others. Thread: one. */
#ifndef DAEMON_CTL_CTL_TOPK_OUTPUT_H
#define DAEMON_CTL_CTL_TOPK_OUTPUT_H

#include "base/err.h"
#include "base/span.h"

struct ctl_topk_output;

/* Open a file, or make it, and read the ids of its answers. A last line without its end is cut off if there are answers
 * before it.
 *
 * Returns ERR_SYSTEM: another run has it, it cannot be written, or it has something else than answers. It is then left
 * as it is.
 */
err_t ctl_topk_output_open(const char *path, struct ctl_topk_output **out);

/* Write what was added, at the latest half a second ago. Returns ERR_SYSTEM. */
err_t ctl_topk_output_flush(struct ctl_topk_output *o);

/* Write everything, to the disk. Returns ERR_SYSTEM if that fails, for example because the disk is full: the file then
 * ends with the last whole line. */
err_t ctl_topk_output_finish(struct ctl_topk_output *o);
void ctl_topk_output_close(struct ctl_topk_output **o);

/* Did the file have answers when it was opened? */
bool ctl_topk_output_has_some(const struct ctl_topk_output *o);

/* Did it have one to this query? */
bool ctl_topk_output_has(const struct ctl_topk_output *o, const char *id);

/* Add an answer. ctl_topk_output_flush() writes it.
 *
 * id      of the query
 * answer  JSON: an object whose id is `asked`
 *
 * Returns ERR_SYSTEM; ERR_KAFKA if the answer is not such an object.
 */
err_t ctl_topk_output_add(struct ctl_topk_output *o, const char *id, const char *asked, struct span answer);

#endif
