/* SPDX-License-Identifier: Apache-2.0 */
/* Generations that nobody asks for any more leave.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_MODELS_MODEL_LEAVE_H
#define DAEMON_MODELS_MODEL_LEAVE_H

#include "daemon/models/model_work.h"

/* Take out what is not asked for, unless it has to answer or is being loaded. Errors as engine_remove_space(). */
err_t model_leave_behind(struct model_work *w);

#endif
