/* SPDX-License-Identifier: Apache-2.0 */
/* Visits every item of the live catalogue in slot order, in one thread, as the simplest use of a scan. */
#ifndef TESTS_SUPPORT_STORE_VISIT_H
#define TESTS_SUPPORT_STORE_VISIT_H

#include "store/store.h"

typedef err_code_t (*store_visit)(void *context, struct item_change *changes, size_t n);

/* chunk  maximum number of items that one call of `visit` gets
 * visit  gets items that are valid during the call
 *
 * Returns the error of visit, or of the scan. */
static inline err_t store_visit_all(struct store *s, size_t chunk, store_visit visit, void *context)
{
  AUTO(region_fini) struct region region = { 0 };
  struct store_scan scan;
  struct item_change *changes;
  uint64_t first;
  size_t n;

  TRY(store_scan_begin(s, chunk, &scan));
  do {
    region_reset(&region);
    TRY(store_scan_next(&scan, &region, &first, &changes, &n));
    if (n > 0)
      TRY(visit(context, changes, n));
  } while (n > 0);
  return store_scan_end(&scan);
}

#endif
