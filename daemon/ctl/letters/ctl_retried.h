/* SPDX-License-Identifier: Apache-2.0 */
/* The letters of items that a run has retried. What it wrote is the newest record of an item, but is as old as its
 * letter: a later letter of the same item must not be left out for it. Thread: one. */
#ifndef DAEMON_CTL_CTL_RETRIED_H
#define DAEMON_CTL_CTL_RETRIED_H

#include "base/item.h"
#include "base/region.h"
#include "daemon/ctl/ctl_data_page.h"

struct ctl_retried_letter;

/* All zeros: none. */
struct ctl_retried {
  struct ctl_retried_letter *letters;
  size_t n;
  size_t capacity;
  struct region keys;
};

void ctl_retried_fini(struct ctl_retried *r);

/* Note a letter.
 *
 * from  where its record was
 * at    where the record was written to; NULL: nowhere, in a dry run
 */
err_t ctl_retried_add(struct ctl_retried *r, struct span key, const struct ctl_item_place *from,
                      const struct position *at);

/* Was a newer record of the item retried? */
bool ctl_retried_has_newer(const struct ctl_retried *r, struct span key, const struct ctl_item_place *from);

/* Did the run write this record? */
bool ctl_retried_wrote(const struct ctl_retried *r, const struct ctl_item_place *stored);

/* Is a record newer than another? Between partitions, only their times tell. */
bool ctl_retried_is_newer(const struct ctl_item_place *record, const struct ctl_item_place *than);

#endif
