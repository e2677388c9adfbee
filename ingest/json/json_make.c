/* SPDX-License-Identifier: Apache-2.0 */
/* What jansson says by NULL or -1 becomes an error. */
#include "ingest/json/json_make.h"

#include <math.h>

#include "base/region.h"
#include "ingest/json/base64.h"

err_t json_make_keep(json_t *json, json_t **out)
{
  if (!json)
    FAIL(ERR_MEMORY, "no memory for a value of JSON");
  *out = json;
  return ERR_OK;
}

err_t json_make_real(double x, json_t **out)
{
  if (isfinite(x))
    return json_make_keep(json_real(x), out);
  return json_make_keep(json_string(isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity"), out);
}

err_t json_make_base64(struct span bytes, json_t **out)
{
  AUTO(region_fini) struct region region = { 0 };
  char *coded;

  TRY(base64_encode(&region, bytes, &coded));
  return json_make_keep(json_string(coded), out);
}

err_t json_make_member(json_t *object, const char *name, json_t *value)
{
  if (json_object_set_new_nocheck(object, name, value) != 0)
    FAIL(ERR_MEMORY, "no memory for a member of JSON");
  return ERR_OK;
}

err_t json_make_element(json_t *list, json_t *value)
{
  if (json_array_append_new(list, value) != 0)
    FAIL(ERR_MEMORY, "no memory for an element of JSON");
  return ERR_OK;
}
