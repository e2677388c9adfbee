/* SPDX-License-Identifier: Apache-2.0 */
/* The dead letters that a command line selects: by their places, or all that match. Thread: one. */
#ifndef DAEMON_CTL_CTL_LETTERS_H
#define DAEMON_CTL_CTL_LETTERS_H

#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/letters/ctl_letter.h"

/* A letter's place in the dead-letter topic, such as 0:17. */
struct ctl_letter_place {
  int32_t partition;
  int64_t offset;
};

struct ctl_letters_selection {
  struct ctl_letter_filter filter;
  int64_t since_unix_ms;                 /* 0: any time */
  const struct ctl_letter_place *places; /* just these; NULL: all that match */
  size_t n_places;
};

/* Read a place. Returns ERR_USAGE. */
err_t ctl_letters_place(const char *text, struct ctl_letter_place *out);

/* Called for each letter; it is valid during the call. */
typedef err_code_t (*ctl_letters_visit)(void *context, const struct ctl_letter *letter);

/* Visit the selected letters: those of places in their order, others in the order of each partition.
 *
 * newest  look only at so many records of each partition; 0: at all
 *
 * Returns the error of `visit`; ERR_SYSTEM if there is no letter at a place; the errors of Kafka. */
err_t ctl_letters_visit_all(struct ctl_context *ctx, const struct ctl_letters_selection *selection, uint64_t newest,
                            ctl_letters_visit visit, void *context);

#endif
