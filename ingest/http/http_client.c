/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with libcurl. */
#include "ingest/http/http_client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/size.h"

/* How often a request looks whether to give up. */
enum { STEP_MS = 50 };

struct http_client {
  CURL *request;
  CURLM *connections;
  struct curl_slist *headers;
  char *body; /* of the last answer; a zero byte follows it */
  size_t body_capacity;
  size_t body_bytes;          /* that are kept at most */
  struct http_answer *answer; /* to the request that is under way */
  char trouble[CURL_ERROR_SIZE];
};

/* ---- Requests ---- */

/* Keep what has room of the body. */
static size_t on_body(char *bytes, size_t size, size_t n, void *context)
{
  struct http_client *c = context;
  struct http_answer *answer = c->answer;
  size_t n_kept = size_min(size * n, c->body_bytes - answer->n_body);

  if (mem_grow(answer->n_body + n_kept + 1, 1, &c->body_capacity, &c->body) != ERR_OK)
    return CURL_WRITEFUNC_ERROR;
  memcpy(c->body + answer->n_body, bytes, n_kept);
  answer->n_body += n_kept;
  c->body[answer->n_body] = '\0';
  answer->is_cut = answer->is_cut || n_kept < size * n;
  return size * n;
}

/* Wait for the answer. A multi handle is used because it can be left between two steps. give_up_ns may be NULL. */
static CURLcode perform(struct http_client *c, const _Atomic int64_t *give_up_ns)
{
  int n_running = 1, n_left;

  while (n_running && curl_multi_perform(c->connections, &n_running) == CURLM_OK && n_running) {
    if (give_up_ns && clock_now_ns() >= atomic_load(give_up_ns))
      return CURLE_OPERATION_TIMEDOUT;
    curl_multi_poll(c->connections, NULL, 0, STEP_MS, NULL);
  }
  const CURLMsg *message = curl_multi_info_read(c->connections, &n_left);
  return message ? message->data.result : CURLE_OUT_OF_MEMORY;
}

static bool set_request(struct http_client *c, const char *url, const struct span *post)
{
  if (curl_easy_setopt(c->request, CURLOPT_URL, url) != CURLE_OK)
    return false;
  if (!post)
    return curl_easy_setopt(c->request, CURLOPT_HTTPGET, 1L) == CURLE_OK;
  return curl_easy_setopt(c->request, CURLOPT_POSTFIELDS, (const char *)post->p) == CURLE_OK &&
         curl_easy_setopt(c->request, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->n) == CURLE_OK;
}

void http_client_ask(struct http_client *c, const char *url, const struct span *post, const _Atomic int64_t *give_up_ns,
                     struct http_answer *out)
{
  CURLcode result = CURLE_OUT_OF_MEMORY;

  *out = (struct http_answer){ 0 };
  c->body[0] = c->trouble[0] = '\0';
  c->answer = out;
  if (set_request(c, url, post)) {
    curl_multi_add_handle(c->connections, c->request);
    result = perform(c, give_up_ns);
    curl_multi_remove_handle(c->connections, c->request);
  }
  out->body = c->body;
  out->is_refused = result == CURLE_COULDNT_CONNECT;
  if (result == CURLE_OK)
    curl_easy_getinfo(c->request, CURLINFO_RESPONSE_CODE, &out->status);
  else
    snprintf(out->trouble, sizeof out->trouble, "%s", *c->trouble ? c->trouble : curl_easy_strerror(result));
}

void http_client_escape(const char *text, char *out)
{
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"; /* RFC 3986, 2.3 */

  for (; *text; text++) {
    if (strchr(plain, *text))
      *out++ = *text;
    else
      out += sprintf(out, "%%%02X", (unsigned char)*text);
  }
  *out = '\0';
}

/* ---- Opening ---- */

/* The system's authorities are in a folder beside the file. */
static bool trust_only(CURL *request, const char *ca_file)
{
  return curl_easy_setopt(request, CURLOPT_CAINFO, ca_file) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_CAPATH, NULL) == CURLE_OK;
}

static bool set_options(struct http_client *c, const struct http_options *options)
{
  CURL *request = c->request;

  return curl_easy_setopt(request, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_NOPROXY, "*") == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_TIMEOUT_MS, (long)options->timeout_ms) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_HTTPHEADER, c->headers) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_USERNAME, options->user) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_PASSWORD, options->password) == CURLE_OK &&
         (!options->ca_file || trust_only(request, options->ca_file)) &&
         curl_easy_setopt(request, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_WRITEDATA, c) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_ERRORBUFFER, c->trouble) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK; /* do not wait for a name server */
}

err_t http_client_open(const struct http_options *options, struct http_client **out)
{
  AUTO(http_client_close) struct http_client *c = NULL;

  TRY(mem_array(1, sizeof *c, &c));
  TRY(mem_grow(1, 1, &c->body_capacity, &c->body));
  c->body_bytes = options->body_bytes;
  c->request = curl_easy_init();
  c->connections = curl_multi_init();
  c->headers = options->header ? curl_slist_append(NULL, options->header) : NULL;
  if (!c->request || !c->connections || (options->header && !c->headers) || !set_options(c, options))
    FAIL(ERR_SYSTEM, "libcurl cannot be initialised");
  *out = c;
  c = NULL;
  return ERR_OK;
}

void http_client_close(struct http_client **c)
{
  if (!*c)
    return;
  curl_easy_cleanup((*c)->request);
  curl_multi_cleanup((*c)->connections);
  curl_slist_free_all((*c)->headers);
  mem_free(&(*c)->body);
  mem_free(c);
}
