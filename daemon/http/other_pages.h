/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a role that has no catalogue, in the place of the usual ones. */
#ifndef DAEMON_HTTP_OTHER_PAGES_H
#define DAEMON_HTTP_OTHER_PAGES_H

/* Each returns a text that the caller frees with free(), or NULL without memory. Thread: any.
 *
 * not_ready  why the daemon is not; NULL: it is ready */
struct other_pages {
  const void *context;
  char *(*page)(const void *context, const char *not_ready); /* the status page, as HTML */
  char *(*ready)(const void *context, const char *not_ready);
  char *(*status)(const void *context, const char *not_ready);
  char *(*metrics)(const void *context, const char *not_ready);
};

#endif
