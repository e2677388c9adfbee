/* SPDX-License-Identifier: Apache-2.0 */
/* A request for /try on its way: its connection is suspended while a search worker has the query, so the thread goes on
 * with all others. There is one at a time. Thread: HTTP. */
#ifndef DAEMON_HTTP_HTTP_TRIAL_H
#define DAEMON_HTTP_HTTP_TRIAL_H

#include <microhttpd.h>

#include "daemon/http/pages/try_page.h"

/* None, waiting for the answer, or waiting for the library to ask for the page. */
enum http_trial_phase { HTTP_TRIAL_NONE, HTTP_TRIAL_WAITS, HTTP_TRIAL_IS_MADE };

/* All zeros: there is none. */
struct http_trial {
  enum http_trial_phase phase;
  struct MHD_Connection *connection;
  int64_t until_ns;
  struct try_form form;
  struct data_page page; /* in HTTP_TRIAL_IS_MADE */
};

/* Serve a request of somebody who may see data.
 *
 * Returns false if the connection was suspended: when the library asks again, http_trial_take() has the page. Else the
 * page is in `out`.
 */
bool http_trial_serve(struct http_trial *t, const struct status *s, struct MHD_Connection *connection, bool is_head,
                      struct data_page *out);

/* Take the page of a connection that was suspended. Returns false if it has none. The library also calls this for a
 * connection that ended meanwhile: then the caller frees the text. */
bool http_trial_take(struct http_trial *t, const struct MHD_Connection *connection, struct data_page *out);

/* Resume the connection if the answer has come, or if the time is up. */
void http_trial_step(struct http_trial *t, const struct status *s);

/* Resume the connection: the thread ends. */
void http_trial_end(struct http_trial *t, const struct status *s);

#endif
