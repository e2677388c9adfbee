/* SPDX-License-Identifier: Apache-2.0 */
/* Which queries an output answers, and what they have in common, in a file beside it: answers to another file of
 * queries or to other options are not mixed with them. Thread: the one that has the output open. */
#ifndef DAEMON_CTL_CTL_TOPK_NOTE_H
#define DAEMON_CTL_CTL_TOPK_NOTE_H

#include "daemon/ctl/topk/ctl_topk_queries.h"

/* Write the note of an output that has no answers yet; else compare it with these queries. The time of boosts is not
 * noted: without --now each query has its own too. Answers without a note are reported, and gone on with.
 *
 * output       the path; OUTPUT.asked is the note
 * has_answers  of an earlier run
 *
 * Returns ERR_USAGE with the field that differs; ERR_SYSTEM if there is something else than a note, which is then left
 * as it is, or if the note cannot be read or written; ERR_MEMORY.
 */
err_t ctl_topk_note_verify(const char *output, bool has_answers, const struct ctl_topk_queries *queries);

#endif
