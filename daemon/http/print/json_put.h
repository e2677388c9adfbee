/* SPDX-License-Identifier: Apache-2.0 */
/* Set fields of a JSON object by typed functions. json_pack() takes a format string instead, which the compiler cannot
 * check.
 *
 * If memory runs out, the field is missing. Thread: any.
 */
#ifndef DAEMON_HTTP_JSON_PUT_H
#define DAEMON_HTTP_JSON_PUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Put a value, which the object then owns; NULL: memory ran out. */
static inline void json_put(json_t *object, const char *name, json_t *value)
{
  json_object_set_new(object, name, value);
}

/* Put a text; NULL becomes null. */
static inline void json_put_text(json_t *object, const char *name, const char *text)
{
  json_put(object, name, text ? json_string(text) : json_null());
}

static inline void json_put_bool(json_t *object, const char *name, bool value)
{
  json_put(object, name, json_boolean(value));
}

static inline void json_put_integer(json_t *object, const char *name, int64_t value)
{
  json_put(object, name, json_integer(value));
}

static inline void json_put_count(json_t *object, const char *name, uint64_t value)
{
  json_put_integer(object, name, (int64_t)value);
}

static inline void json_put_real(json_t *object, const char *name, double value)
{
  json_put(object, name, json_real(value));
}

#endif
