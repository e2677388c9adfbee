/* SPDX-License-Identifier: Apache-2.0 */
/* Where the file of a generation is. Thread: any. */
#ifndef DAEMON_MODELS_MODEL_PATH_H
#define DAEMON_MODELS_MODEL_PATH_H

#include <limits.h>

#include "daemon/models/model_state.h"

/* Get the path that the control topic names, or that of a file in the topic of files, once it is fetched.
 *
 * store_path  directory of the store
 *
 * Returns ERR_STORE if it is too long.
 */
err_t model_path_get(const char *store_path, const struct model_generation *generation, char out[PATH_MAX]);

#endif
