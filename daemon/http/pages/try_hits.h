/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the hits of a query that is tried, with what they show of their attributes. Thread: HTTP. */
#ifndef DAEMON_HTTP_TRY_HITS_H
#define DAEMON_HTTP_TRY_HITS_H

#include <jansson.h>
#include <stdio.h>

#include "base/value.h"

/* Print hits as JSON answers have them.
 *
 * attributes  of the configuration: those that some hit has get a column
 */
void try_hits_print(FILE *out, const json_t *hits, const struct attributes *attributes);

#endif
