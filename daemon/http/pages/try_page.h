/* SPDX-License-Identifier: Apache-2.0 */
/* The page /try: a form for a query by item key, and what came of it. Thread: HTTP. */
#ifndef DAEMON_HTTP_TRY_PAGE_H
#define DAEMON_HTTP_TRY_PAGE_H

#include <stdio.h>

#include "daemon/http/pages/data_page.h"
#include "daemon/queries/trial.h"

/* What a reader asks. */
struct try_form {
  uint8_t key[ITEM_KEY_MAX];
  size_t n_key;
  char space[SPACE_NAME_MAX + 1];
  uint32_t k;
};

enum { TRY_K_DEFAULT = 10 };

/* Read what a form sends. The values are percent-coded; NULL: it is not there, which is allowed for k. Returns NULL, or
 * what is wrong. What can be read is in `out` in any case. */
const char *try_form_read(const char *key, const char *space, const char *k, struct try_form *out);

/* Print the form.
 *
 * form        what is in it; NULL: nothing
 * attributes  of the element: the status page hides it until its script runs
 */
void try_form_print(FILE *out, const struct status *s, const struct try_form *form, const char *attributes);

/* Make the page.
 *
 * form     NULL: nothing is asked
 * answer   JSON of the answer; NULL: there is none
 * message  why there is none; NULL: nothing is wrong
 */
struct data_page try_page_make(const struct status *s, const struct try_form *form, const char *answer, unsigned code,
                               const char *message);

#endif
