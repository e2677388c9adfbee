/* SPDX-License-Identifier: Apache-2.0 */
/* What sluicectl put and sluicectl delete share: one record, written and waited for. Thread: one. */
#ifndef DAEMON_CTL_CTL_WRITE_ONE_H
#define DAEMON_CTL_CTL_WRITE_ONE_H

#include "daemon/ctl/writer/ctl_writer.h"

/* Verify that a command line has only n_expected arguments and no options; they begin at argv[optind].
 * Returns ERR_USAGE.
 *
 * expected  the arguments in words, for the error: "a key"
 */
err_t ctl_write_one_parse(int argc, char **argv, int n_expected, const char *expected);

/* Write the record, wait until queries see it, and print what was done and how long it took.
 * Returns ERR_ITEM if the daemon refused it; the errors of the writer. */
err_t ctl_write_one(struct ctl_context *ctx, const struct ctl_record *record);

#endif
