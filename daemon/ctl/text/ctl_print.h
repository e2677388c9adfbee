/* SPDX-License-Identifier: Apache-2.0 */
/* Printing text from the network, safely: it must not control the terminal. Thread: any. */
#ifndef DAEMON_CTL_CTL_PRINT_H
#define DAEMON_CTL_CTL_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/span.h"

/* Print text with control characters as \xHH, and with those that turn its direction as \uHHHH; out NULL: only count.
 * Returns the number of columns: one per character, right for most scripts. */
size_t ctl_print_text(const char *text, FILE *out);

/* The same for a key as answers have it: text, or {"base64": "..."}. */
size_t ctl_print_key(const json_t *key, FILE *out);

/* Print JSON with these characters as \uHHHH: it has the same value. */
void ctl_print_json(struct span text, FILE *out);

/* Print a value as JSON, so, and a line break. Returns false if it cannot be encoded.
 *
 * flags  of json_dumps()
 */
bool ctl_print_json_value(const json_t *json, size_t flags, FILE *out);

/* Print n spaces. */
void ctl_print_spaces(size_t n, FILE *out);

#endif
