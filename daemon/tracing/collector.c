/* SPDX-License-Identifier: Apache-2.0 */
/* POST requests with libcurl, never through a proxy, and what their answers mean.
 *
 * Source: OpenTelemetry Protocol Specification 1.3, "OTLP/HTTP"
 */
#include "daemon/tracing/collector.h"

#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

/* How often a request looks whether to give up. Answers are a few bytes; of a longer one, the beginning is kept. */
enum { STEP_MS = 50, BODY_BYTES = 4096, BODY_SHOWN = 300 };

struct collector {
  CURL *request;
  CURLM *client; /* keeps the connection */
  struct curl_slist *headers;
  char body[BODY_BYTES + 1]; /* of the answer */
  size_t n_body;
  char trouble[CURL_ERROR_SIZE];
};

/* ---- What an answer means ---- */

static uint64_t count_of(const json_t *number)
{
  const char *digits = json_string_value(number); /* 64-bit integers are strings in the JSON of protobuf */

  return digits ? strtoull(digits, NULL, 10) : (uint64_t)json_integer_value(number);
}

/* Note the spans that the collector rejects although it took the request. */
static void read_partial_success(const struct collector *c, struct collector_answer *out)
{
  json_t *root = json_loadb(c->body, c->n_body, 0, NULL);
  const json_t *partial = json_object_get(root, "partialSuccess");
  const char *message = json_string_value(json_object_get(partial, "errorMessage"));

  out->n_rejected = count_of(json_object_get(partial, "rejectedSpans"));
  if (out->n_rejected)
    snprintf(out->reason, sizeof out->reason, "the collector rejects spans: %.*s", BODY_SHOWN, message ? message : "");
  json_decref(root);
}

static void read_answer(const struct collector *c, struct collector_answer *out)
{
  long status = 0;

  curl_easy_getinfo(c->request, CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200 && status < 300) {
    out->verdict = COLLECTOR_TOOK;
    read_partial_success(c, out);
    return;
  }
  bool is_passing = status == 429 || status == 502 || status == 503 || status == 504;
  out->verdict = is_passing ? COLLECTOR_AWAY : COLLECTOR_REFUSED;
  snprintf(out->reason, sizeof out->reason, "HTTP status %ld: %.*s", status, BODY_SHOWN, c->body);
}

/* ---- Requests ---- */

static size_t on_body(char *bytes, size_t size, size_t n, void *context)
{
  struct collector *c = context;
  size_t left = BODY_BYTES - c->n_body, kept = size * n < left ? size * n : left;

  memcpy(c->body + c->n_body, bytes, kept);
  c->n_body += kept;
  c->body[c->n_body] = '\0';
  return size * n;
}

/* Wait for the answer. A multi handle is used because it can be left between two steps. */
static CURLcode perform(struct collector *c, const _Atomic int64_t *give_up_ns)
{
  int n_running = 1, n_left;

  while (n_running && curl_multi_perform(c->client, &n_running) == CURLM_OK && n_running) {
    if (clock_now_ns() >= atomic_load(give_up_ns))
      return CURLE_OPERATION_TIMEDOUT;
    curl_multi_poll(c->client, NULL, 0, STEP_MS, NULL);
  }
  const CURLMsg *message = curl_multi_info_read(c->client, &n_left);
  return message ? message->data.result : CURLE_OUT_OF_MEMORY;
}

void collector_post(struct collector *c, struct span body, const _Atomic int64_t *give_up_ns,
                    struct collector_answer *out)
{
  *out = (struct collector_answer){ .verdict = COLLECTOR_AWAY };
  c->n_body = 0;
  c->body[0] = c->trouble[0] = '\0';
  curl_easy_setopt(c->request, CURLOPT_POSTFIELDS, (const char *)body.p);
  curl_easy_setopt(c->request, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
  curl_multi_add_handle(c->client, c->request);
  CURLcode result = perform(c, give_up_ns);
  curl_multi_remove_handle(c->client, c->request);
  if (result == CURLE_OK)
    read_answer(c, out);
  else
    snprintf(out->reason, sizeof out->reason, "%s", *c->trouble ? c->trouble : curl_easy_strerror(result));
}

/* ---- Opening ---- */

static bool set_options(struct collector *c, const char *url, int64_t timeout_ms)
{
  CURL *request = c->request;

  return curl_easy_setopt(request, CURLOPT_URL, url) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_NOPROXY, "*") == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_TIMEOUT_MS, (long)timeout_ms) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_HTTPHEADER, c->headers) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_WRITEDATA, c) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_ERRORBUFFER, c->trouble) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
         curl_easy_setopt(request, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK; /* do not wait for a name server */
}

err_t collector_open(const char *url, int64_t timeout_ms, struct collector **out)
{
  AUTO(collector_close) struct collector *c = NULL;

  TRY(mem_array(1, sizeof *c, &c));
  c->request = curl_easy_init();
  c->client = curl_multi_init();
  c->headers = curl_slist_append(NULL, "content-type: application/json");
  if (!c->request || !c->client || !c->headers || !set_options(c, url, timeout_ms))
    FAIL(ERR_SYSTEM, "libcurl cannot be initialised");
  *out = c;
  c = NULL;
  return ERR_OK;
}

void collector_close(struct collector **c)
{
  if (!*c)
    return;
  curl_easy_cleanup((*c)->request);
  curl_multi_cleanup((*c)->client);
  curl_slist_free_all((*c)->headers);
  mem_free(c);
}
