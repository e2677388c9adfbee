/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is fetched has its place beside the store. */
#include "daemon/models/model_path.h"

#include <stdio.h>

#include "store/models/model_files.h"

err_t model_path_get(const char *store_path, const struct model_generation *generation, char out[PATH_MAX])
{
  if (generation->is_in_topic)
    return model_files_path(store_path, generation->digest, "", out);
  if (snprintf(out, PATH_MAX, "%s", generation->path) >= PATH_MAX)
    FAIL(ERR_STORE, "the path %.64s... is too long", generation->path);
  return ERR_OK;
}
