/* SPDX-License-Identifier: Apache-2.0 */
/* Which generations are to be compared with the current one, and why one cannot be. */
#ifndef DAEMON_MODELS_MODEL_SHADOWS_H
#define DAEMON_MODELS_MODEL_SHADOWS_H

#include "daemon/models/model_work.h"
#include "daemon/shadow/shadow_board.h"

/* List all generations that are not retired on the board. Returns ERR_MEMORY. Thread: catalogue. */
err_t model_shadows_list(const struct model_work *work, struct shadow_board *board);

#endif
