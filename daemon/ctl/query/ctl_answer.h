/* SPDX-License-Identifier: Apache-2.0 */
/* Format answers for people. Thread: any. */
#ifndef DAEMON_CTL_CTL_ANSWER_H
#define DAEMON_CTL_CTL_ANSWER_H

#include <jansson.h>
#include <stdio.h>

/* Print a heading, a table of the hits, and a line with method, receipt and times. Control characters in keys are
 * printed as \xHH. */
void ctl_answer_print(const json_t *answer, FILE *out);

#endif
