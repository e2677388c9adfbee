/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's pages with data: stored items, and what is kept of users. Thread: one. */
#ifndef DAEMON_CTL_CTL_DATA_PAGE_H
#define DAEMON_CTL_CTL_DATA_PAGE_H

#include "daemon/ctl/ctl_context.h"

/* Get the page of a key.
 *
 * folder    "items" or "seen"
 * is_found  false: there is no such item; `page` is then why
 * page      valid until the next page is got; ends with a line break, and a zero byte follows it
 *
 * Returns ERR_SYSTEM with what the daemon says if it does not show the page.
 */
err_t ctl_data_page_get(struct ctl_context *ctx, const char *folder, struct span key, bool *is_found,
                        struct span *page);

/* The record that changed an item last. */
struct ctl_item_place {
  int32_t partition;
  int64_t offset;
  int64_t timestamp_ms;
};

/* Find out which record changed an item last. Errors as above. */
err_t ctl_data_page_find(struct ctl_context *ctx, struct span key, bool *is_found, struct ctl_item_place *out);

#endif
