/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a command: a row for each, with its name and where its value goes. Thread: one. */
#ifndef DAEMON_CTL_CTL_OPTION_H
#define DAEMON_CTL_CTL_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* All zeros: the end of the rows. What a row does not need is zero. */
struct ctl_option {
  const char *name;  /* without dashes; before a single letter one dash will do */
  bool *is_given;    /* becomes true. An option has a value if there is one of the following */
  const char **text; /* not empty, unless it may be */
  uint64_t *number;  /* in [min, max] */
  uint64_t min, max;
  int64_t *unix_ms;                                /* as ctl_option_time() reads it */
  err_t (*take)(void *context, const char *value); /* for values of other kinds. Returns ERR_USAGE */
  void *context;
  bool may_be_bare;  /* the value may be missing */
  bool may_be_empty; /* of `text`: otherwise an empty value is an error, as of a shell's variable that is not set */
};

/* Take the options of a command line, in their order. The words that are left begin at argv[optind].
 *
 * word  what a word is that may begin with "-", such as "a key": the first word ends the options. NULL: options may
 *       stand after words too
 *
 * Returns ERR_USAGE for an option that there is not, one without its value, or one whose value is wrong; the errors of
 * `take`.
 */
err_t ctl_option_take(const struct ctl_option *options, const char *word, int argc, char **argv);

/* The same for a command that has no words. */
err_t ctl_option_take_only(const struct ctl_option *options, int argc, char **argv);

/* Read a whole number in [min, max]. Returns ERR_USAGE with the option's name. */
err_t ctl_option_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* Read a span of time: 90s, 10m, 2h or 7d, of at most nine digits. Returns false if it is none. */
bool ctl_option_read_span(const char *text, int64_t *ms);

/* Read a moment: a time as RFC 3339 has it, or how long ago it was: 90s, 10m, 2h, 7d. Returns ERR_USAGE with the
 * option's name. */
err_t ctl_option_time(const char *option, const char *text, int64_t now_unix_ms, int64_t *unix_ms);

#endif
