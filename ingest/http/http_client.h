/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a server by HTTP, one after the other, on a connection that is kept. Never through a proxy, and
 * redirections are not followed.
 *
 * Thread: one. Blocks: a request, until its answer.
 */
#ifndef INGEST_HTTP_CLIENT_H
#define INGEST_HTTP_CLIENT_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/span.h"

struct http_client;

/* The caller keeps the texts until the client is open. NULL: none. */
struct http_options {
  int64_t timeout_ms; /* for each request */
  size_t body_bytes;  /* of an answer's body that are kept */
  const char *header; /* a line that each request has */
  const char *user;   /* with password: for basic authentication */
  const char *password;
  const char *ca_file; /* certificates of authorities, PEM; NULL: those of the system */
};

enum { HTTP_TROUBLE_BYTES = 256 };

struct http_answer {
  long status; /* 0: there is no answer */
  char *body;  /* ends with a zero byte, which is not counted; valid until the next request */
  size_t n_body;
  bool is_cut;                      /* the body goes on */
  bool is_refused;                  /* there is no connection to the server */
  char trouble[HTTP_TROUBLE_BYTES]; /* why there is no answer */
};

/* Returns ERR_SYSTEM; ERR_MEMORY. Nothing is sent yet. */
err_t http_client_open(const struct http_options *options, struct http_client **out);
void http_client_close(struct http_client **c);

/* Send a request and wait for the answer.
 *
 * post        the body of a POST; NULL: the request is a GET
 * give_up_ns  when to stop waiting, by clock_now_ns(), though the timeout is not over; another thread may set it
 *             meanwhile. NULL, INT64_MAX: not before
 */
void http_client_ask(struct http_client *c, const char *url, const struct span *post, const _Atomic int64_t *give_up_ns,
                     struct http_answer *out);

enum { HTTP_ESCAPED_MAX = 3 }; /* bytes for one byte of text */

/* Escape a text for a step of a URL's path.
 *
 * out  [HTTP_ESCAPED_MAX * bytes of the text + 1] */
void http_client_escape(const char *text, char *out);

#endif
