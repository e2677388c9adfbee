/* SPDX-License-Identifier: Apache-2.0 */
/* Making JSON of binary values. Thread: any. Blocks: no. */
#ifndef INGEST_JSON_MAKE_H
#define INGEST_JSON_MAKE_H

#include <jansson.h>

#include "base/err.h"
#include "base/span.h"

/* Give out a value that jansson has just made. The caller releases it with json_decref(). Returns ERR_MEMORY if it is
 * NULL. */
err_t json_make_keep(json_t *json, json_t **out);

/* Make a number; text, "NaN", "Infinity" or "-Infinity", of one that is not finite. Returns ERR_MEMORY. */
err_t json_make_real(double x, json_t **out);

/* Make text of bytes as Base64. Returns ERR_MEMORY. */
err_t json_make_base64(struct span bytes, json_t **out);

/* Put a value into an object or a list, which takes it over, also on error. Names are UTF-8. Returns ERR_MEMORY. */
err_t json_make_member(json_t *object, const char *name, json_t *value);
err_t json_make_element(json_t *list, json_t *value);

#endif
