/* SPDX-License-Identifier: Apache-2.0 */
/* Generations as a table for people. Thread: any. */
#ifndef DAEMON_CTL_CTL_MODEL_LIST_H
#define DAEMON_CTL_CTL_MODEL_LIST_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

/* Print the generations of /status's `models`, and what is wrong.
 *
 * space  NULL: of all spaces
 *
 * Returns ERR_USAGE if there is no such space.
 */
err_t ctl_model_list_print(const json_t *models, const char *space, FILE *out);

#endif
