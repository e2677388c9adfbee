/* SPDX-License-Identifier: Apache-2.0 */
/* What several commands do with JSON from the daemon. Thread: any. */
#ifndef DAEMON_CTL_CTL_JSON_H
#define DAEMON_CTL_CTL_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/span.h"

/* Release a value. For AUTO. */
void ctl_json_close(json_t **json);

/* Return the whole number at `name`; 0 if it is missing, negative or not a whole number. */
uint64_t ctl_json_count(const json_t *object, const char *name);

/* Return the text at `name`, which lives as long as the object; "?" if there is none. */
const char *ctl_json_text(const json_t *object, const char *name);

/* Return why a text could not be read as JSON: words that live as long as the error. */
const char *ctl_json_reason(const json_error_t *error);

/* Is a line of JSON empty, or only white space? */
bool ctl_json_is_blank(struct span line);

#endif
