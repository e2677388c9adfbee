/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the records of dead letters back to their topics. Thread: one. */
#ifndef DAEMON_CTL_CTL_RETRY_H
#define DAEMON_CTL_CTL_RETRY_H

#include "daemon/ctl/letters/ctl_letters.h"

struct ctl_retry_options {
  bool is_dry_run;
  bool overwrites; /* write also what would replace a newer record of the item */
};

/* Write the record of each selected letter to the partition where it was, say so, and wait until the daemon has read
 * those of the catalogue. A letter is not marked: its record is written again each time that it is selected.
 *
 * Left out, with the reason, are:
 *   - letters without a value
 *   - letters of topics that the configuration does not have
 *   - items that have a newer record
 * and, unless letters were named by their places:
 *   - records that came back from an earlier retry
 *   - records of other topics than the catalogue's, if the selection names none
 *
 * Returns ERR_ITEM if the daemon refused a record again, or if a letter that was named was left out; ERR_KAFKA; the
 * errors of a writer. */
err_t ctl_retry(struct ctl_context *ctx, const struct ctl_letters_selection *selection,
                const struct ctl_retry_options *options);

#endif
