/* SPDX-License-Identifier: Apache-2.0 */
/* A path to a value in JSON: `price.amount`, or, as a JSON pointer, `/price/amount`. It is split once, when it is read.
 *
 * Thread: any. Blocks: no.
 */
#ifndef INGEST_JSON_PATH_H
#define INGEST_JSON_PATH_H

#include "base/err.h"
#include "base/span.h"

enum { JSON_PATH_TEXT_MAX = 256, JSON_PATH_STEPS_MAX = 16 };

struct json_t; /* of jansson */

/* All zeros: no path. */
struct json_path {
  char *text;   /* as it was given */
  char *buffer; /* of the steps */
  const char *steps[JSON_PATH_STEPS_MAX];
  size_t n_steps;
};

/* Split a path. A pointer is for names with a dot; in it ~1 stands for / and ~0 for ~ (RFC 6901). Returns ERR_CONFIG
 * with what is wrong; ERR_MEMORY. */
err_t json_path_init(struct span text, struct json_path *out);
void json_path_fini(struct json_path *path);

/* Verify that json_path_init() would take the text. */
err_t json_path_verify(struct span text);

/* Find the value at the path. A step into a list is an index. A path through null leads to that null. Returns
 * NULL if nothing is there; the value is borrowed. */
struct json_t *json_path_find(const struct json_path *path, struct json_t *root);

#endif
