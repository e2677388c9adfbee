/* SPDX-License-Identifier: Apache-2.0 */
/* What the answers to POST requests mean.
 *
 * Source: OpenTelemetry Protocol Specification 1.3, "OTLP/HTTP"
 */
#include "daemon/tracing/collector.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "ingest/http/http_client.h"

/* Answers are a few bytes; of a longer one, the beginning is kept. */
enum { BODY_BYTES = 4096, BODY_SHOWN = 300 };

struct collector {
  struct http_client *client;
  const char *url;
};

static uint64_t count_of(const json_t *number)
{
  const char *digits = json_string_value(number); /* 64-bit integers are strings in the JSON of protobuf */

  return digits ? strtoull(digits, NULL, 10) : (uint64_t)json_integer_value(number);
}

/* Note the spans that the collector rejects although it took the request. */
static void read_partial_success(const struct http_answer *answer, struct collector_answer *out)
{
  json_t *root = json_loadb(answer->body, answer->n_body, 0, NULL);
  const json_t *partial = json_object_get(root, "partialSuccess");
  const char *message = json_string_value(json_object_get(partial, "errorMessage"));

  out->n_rejected = count_of(json_object_get(partial, "rejectedSpans"));
  if (out->n_rejected)
    snprintf(out->reason, sizeof out->reason, "the collector rejects spans: %.*s", BODY_SHOWN, message ? message : "");
  json_decref(root);
}

static void read_answer(const struct http_answer *answer, struct collector_answer *out)
{
  long status = answer->status;

  if (status >= 200 && status < 300) {
    out->verdict = COLLECTOR_TOOK;
    read_partial_success(answer, out);
    return;
  }
  bool is_passing = status == 429 || status == 502 || status == 503 || status == 504;
  out->verdict = is_passing ? COLLECTOR_AWAY : COLLECTOR_REFUSED;
  snprintf(out->reason, sizeof out->reason, "HTTP status %ld: %.*s", status, BODY_SHOWN, answer->body);
}

void collector_post(struct collector *c, struct span body, const _Atomic int64_t *give_up_ns,
                    struct collector_answer *out)
{
  struct http_answer answer;

  *out = (struct collector_answer){ .verdict = COLLECTOR_AWAY };
  http_client_ask(c->client, c->url, &body, give_up_ns, &answer);
  if (answer.status)
    read_answer(&answer, out);
  else
    snprintf(out->reason, sizeof out->reason, "%s", answer.trouble);
}

err_t collector_open(const char *url, int64_t timeout_ms, struct collector **out)
{
  AUTO(collector_close) struct collector *c = NULL;
  const struct http_options options = { .timeout_ms = timeout_ms,
                                        .body_bytes = BODY_BYTES,
                                        .header = "content-type: application/json" };

  TRY(mem_array(1, sizeof *c, &c));
  c->url = url;
  TRY(http_client_open(&options, &c->client));
  *out = c;
  c = NULL;
  return ERR_OK;
}

void collector_close(struct collector **c)
{
  if (!*c)
    return;
  http_client_close(&(*c)->client);
  mem_free(c);
}
