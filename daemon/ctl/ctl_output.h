/* SPDX-License-Identifier: Apache-2.0 */
/* The file that a command writes must not be one that it reads. Thread: any. */
#ifndef DAEMON_CTL_CTL_OUTPUT_H
#define DAEMON_CTL_CTL_OUTPUT_H

#include "base/err.h"

/* A file that a command reads. */
struct ctl_input {
  const char *path; /* NULL: not given */
  const char *what; /* it has: "queries" */
};

/* Verify that a command does not write into a file that it reads, under whatever name. Paths that are not there are no
 * mistake here: opening them says so.
 *
 * option  that names the output: "--output"
 * inputs  [n]
 *
 * Returns ERR_USAGE with the path and what it has. Blocks: no, except for a slow file system.
 */
err_t ctl_output_verify(const char *option, const char *output, const struct ctl_input *inputs, size_t n);

#endif
