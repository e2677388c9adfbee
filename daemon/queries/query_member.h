/* SPDX-License-Identifier: Apache-2.0 */
/* The id that the query group knows this daemon by, kept in a file of the store's folder. After a kill, the next
 * process waits until the group has forgotten that member before it joins (ingest/readers/former_member.h).
 *
 * The file only saves time. So a file that cannot be read or written is no error.
 */
#ifndef DAEMON_QUERIES_QUERY_MEMBER_H
#define DAEMON_QUERIES_QUERY_MEMBER_H

#include "ingest/readers/query_reader.h"

/* Read the id of the process before this one.
 *
 * id  [QUERY_MEMBER_MAX + 1] "": it left the group, or there was none
 */
void query_member_read(const char *folder, char *id);

/* Keep the id. "": this process has left the group. */
void query_member_keep(const char *folder, const char *id);

#endif
