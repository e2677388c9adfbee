/* SPDX-License-Identifier: Apache-2.0 */
/* Printing text from the network, safely: it must not control the terminal. Thread: any. */
#ifndef DAEMON_CTL_CTL_PRINT_H
#define DAEMON_CTL_CTL_PRINT_H

#include <jansson.h>
#include <stdio.h>

/* Print text with control characters as \xHH; out NULL: only count. Returns the number of columns: one per character,
 * right for most scripts. */
size_t ctl_print_text(const char *text, FILE *out);

/* The same for a key as answers have it: text, or {"base64": "..."}. */
size_t ctl_print_key(const json_t *key, FILE *out);

/* Print n spaces. */
void ctl_print_spaces(size_t n, FILE *out);

#endif
