/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as people read them. Thread: any. */
#ifndef DAEMON_CTL_CTL_ANSWER_H
#define DAEMON_CTL_CTL_ANSWER_H

#include <jansson.h>
#include <stdio.h>

/* "BAD_QUERY: k: expects at least 1", in a new string; NULL where the answer holds no error. */
char *ctl_answer_error(const json_t *answer);

/* A heading, the hits, and a line on how they came about. Control characters in keys are shown as \xHH. */
void ctl_answer_print(const json_t *answer, FILE *out);

#endif
