/* SPDX-License-Identifier: Apache-2.0 */
/* A rebuild. The catalogue topic is not the one that the store came from. It is read from its first record into a second
 * catalogue. The former one is served until the second is complete.
 *
 * A wrong cluster, an empty topic or a wrong name look like a new topic, too. So a new catalogue that would leave too
 * few of the items, or comes from another cluster, waits until a person accepts it: `sluicectl rebuild accept` writes
 * the rebuild's number into the file `accept-rebuild` of the store's directory.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_CATALOGUE_CATALOGUE_REBUILD_H
#define DAEMON_CATALOGUE_CATALOGUE_REBUILD_H

#include "daemon/catalogue/catalogue_report.h"
#include "daemon/config/config.h"
#include "store/store.h"

/* The file of the store's directory whose number says which rebuild a person has accepted. */
#define CATALOGUE_REBUILD_FILE "accept-rebuild"

struct catalogue_rebuild {
  const struct config *config;
  struct store *store;
  char cause[REPORT_CAUSE_BYTES]; /* what showed that the topic is another one */
  bool waits;
};

void catalogue_rebuild_init(const struct config *config, struct store *store, struct catalogue_rebuild *out);

/* Begin to read the topic into a second catalogue, or begin again. */
err_t catalogue_rebuild_begin(struct catalogue_rebuild *r, const char *cause);

/* The topic has been read to its end: may the new catalogue be served? Says so once when it has to wait. */
bool catalogue_rebuild_may_end(struct catalogue_rebuild *r);

/* The new catalogue is in place. */
void catalogue_rebuild_end(struct catalogue_rebuild *r);

/* Where it stands. */
void catalogue_rebuild_report(const struct catalogue_rebuild *r, struct report_rebuild *out);

#endif
