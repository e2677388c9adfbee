/* SPDX-License-Identifier: Apache-2.0 */
/* A rebuild: when the catalogue topic is not the one that filled the store, it is read from its first record into a
 * second catalogue. The former one is served until the second is complete.
 *
 * A wrong cluster, an empty topic or a wrong name look like a new topic, too. So a new catalogue waits for a person if
 * it has too few of the items or comes from another cluster. `sluicectl rebuild accept` accepts it: it writes the
 * rebuild's number into the file `accept-rebuild` in the store's directory.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_CATALOGUE_CATALOGUE_REBUILD_H
#define DAEMON_CATALOGUE_CATALOGUE_REBUILD_H

#include "daemon/catalogue/catalogue_report.h"
#include "daemon/config/config.h"
#include "store/store.h"

/* File in the store's directory: the number of the rebuild that a person has accepted. */
#define CATALOGUE_REBUILD_FILE "accept-rebuild"

struct catalogue_rebuild {
  const struct config *config;
  struct store *store;
  char cause[REPORT_CAUSE_BYTES]; /* why the topic is taken for another one */
  bool waits;                     /* for a person to accept it */
};

void catalogue_rebuild_init(const struct config *config, struct store *store, struct catalogue_rebuild *out);

/* Begin a second, empty catalogue in the store. A rebuild that is under way begins again. */
err_t catalogue_rebuild_begin(struct catalogue_rebuild *r, const char *cause);

/* May the new catalogue be served, now that the topic is read to its end? If it has to wait, logs so once. */
bool catalogue_rebuild_may_end(struct catalogue_rebuild *r);

/* Forget the rebuild: its catalogue is now the served one. */
void catalogue_rebuild_end(struct catalogue_rebuild *r);

/* Describe the rebuild for the report. */
void catalogue_rebuild_report(const struct catalogue_rebuild *r, struct report_rebuild *out);

#endif
