/* SPDX-License-Identifier: Apache-2.0 */
/* Set one field of a JSON object, with a type that the compiler checks: the status page is built from these, because
 * json_pack() takes its arguments by a format string that no compiler reads.
 *
 * A field is left out when there is no memory for it. Thread: any.
 */
#ifndef DAEMON_HTTP_JSON_PUT_H
#define DAEMON_HTTP_JSON_PUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Put a value that was made for this field. The object takes it over; NULL: there was no memory for it. */
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
